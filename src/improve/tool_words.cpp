#include "improve/tool_words.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr size_t kFewestConversations = 3;  // conversations that show what a word stands for
constexpr double kNearlyAlways = 0.9;       // of those with the word the value is this one
constexpr size_t kMaxValueBytes = 200;

std::set<std::string> words_in(std::string_view text) {
  std::set<std::string> words;
  std::string word;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool is_large = c >= 'A' && c <= 'Z';
    if (is_large || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0) {
      word += is_large ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

bool names(const std::set<std::string>& words, const std::string& value) {
  const std::set<std::string> parts = words_in(value);
  return std::includes(words.begin(), words.end(), parts.begin(), parts.end());
}

struct Use {
  std::string conversation, value;
  std::set<std::string> words;  // of the question
};
using Uses = std::map<std::pair<std::string, std::string>, std::vector<Use>>;  // by tool and argument

Uses uses_in(const std::vector<TaughtAnswer>& train) {
  Uses uses;
  for (const TaughtAnswer& example : train) {
    const std::set<std::string> words = words_in(question_in(example.asked.messages));
    for (const chat::ToolCall& call : example.wanted.calls) {
      const auto arguments = parse_json(call.arguments_json);
      if (!arguments || !arguments->is_object()) continue;
      for (const auto& [name, value] : arguments->items()) {
        if (!value.is_string() || value.get_ref<const std::string&>().size() > kMaxValueBytes) continue;
        uses[{call.name, name}].push_back({example.conversation, value.get<std::string>(), words});
      }
    }
  }
  return uses;
}

// The names of the tools that are offered.
std::set<std::string> offered(const std::vector<chat::Tool>& tools) {
  std::set<std::string> all;
  for (const chat::Tool& tool : tools) {
    const auto json = parse_json(tool.json);
    if (!json || !json->is_object()) continue;
    const Json& function = json->contains("function") ? (*json)["function"] : *json;
    if (function.is_object() && function.contains("name") && function["name"].is_string()) {
      all.insert(function["name"].get<std::string>());
    }
  }
  return all;
}

}  // namespace

std::vector<ToolWord> tool_words_of(const std::vector<TaughtAnswer>& train) {
  std::vector<ToolWord> found;
  for (const auto& [slot, uses] : uses_in(train)) {
    struct Count {
      std::set<std::string> conversations;
      size_t n = 0;
    };
    std::map<std::string, size_t> of_word;
    std::map<std::string, std::map<std::string, Count>> of_value;  // then by word
    for (const Use& use : uses) {
      // What the question says itself needs no other word.
      const bool is_named = names(use.words, use.value);
      for (const std::string& word : use.words) {
        ++of_word[word];
        if (is_named) continue;
        Count& count = of_value[use.value][word];
        count.conversations.insert(use.conversation);
        ++count.n;
      }
    }
    for (const auto& [value, words] : of_value) {
      const std::string* best = nullptr;
      size_t most = 0;
      for (const auto& [word, count] : words) {
        const bool is_sure = static_cast<double>(count.n) >= kNearlyAlways * static_cast<double>(of_word[word]);
        if (count.conversations.size() < kFewestConversations || !is_sure || count.n <= most) continue;
        best = &word;
        most = count.n;
      }
      // A word that goes with every use goes with none of the values.
      if (best && of_word[*best] < uses.size()) found.push_back({*best, slot.first, slot.second, value});
    }
  }
  if (found.size() > kMaxToolWords) found.resize(kMaxToolWords);
  return found;
}

std::string tool_words_bytes(const std::vector<ToolWord>& words) {
  Json list = Json::array();
  for (const ToolWord& w : words) {
    list.push_back({{"word", w.word}, {"tool", w.tool}, {"argument", w.argument}, {"value", w.value}});
  }
  return to_text(Json{{"words", std::move(list)}}) + "\n";
}

Result<std::vector<ToolWord>> read_tool_words(std::string_view bytes) {
  TRY_ASSIGN(const Json json, parse_json(bytes));
  const Error broken{Code::corrupt,
                     "words for tools: expected {\"words\": [{\"word\", \"tool\", \"argument\", \"value\"}]}"};
  if (!json.is_object() || !json.contains("words") || !json["words"].is_array()) return broken;
  if (json["words"].size() > kMaxToolWords) return broken;
  std::vector<ToolWord> words;
  for (const Json& one : json["words"]) {
    ToolWord word;
    for (const auto& [name, to] : {std::pair("word", &word.word), std::pair("tool", &word.tool),
                                   std::pair("argument", &word.argument), std::pair("value", &word.value)}) {
      if (!one.is_object() || !one.contains(name) || !one[name].is_string()) return broken;
      *to = one[name].get<std::string>();
    }
    words.push_back(std::move(word));
  }
  return Result<std::vector<ToolWord>>{std::move(words)};
}

std::string with_tool_words(const std::string& question, const std::vector<chat::Tool>& tools,
                            const std::vector<ToolWord>& words) {
  const std::set<std::string> names = offered(tools), said = words_in(question);
  std::map<std::string, std::set<std::string>> values;  // by argument
  for (const ToolWord& word : words) {
    if (names.count(word.tool) && said.count(word.word)) values[word.argument].insert(word.value);
  }
  std::string told;
  for (const auto& [argument, meant] : values) {
    if (meant.size() == 1) told += (told.empty() ? "" : ", ") + argument + ": " + *meant.begin();
  }
  return told.empty() ? question : question + " (" + told + ")";
}

void tell_tool_words(const std::vector<ToolWord>& words, const std::vector<chat::Tool>& tools,
                     std::vector<chat::Message>& messages) {
  if (words.empty() || tools.empty() || messages.empty()) return;
  chat::Message& last = messages.back();
  if (last.role == "user" && last.content) last.content = with_tool_words(*last.content, tools, words);
}

}  // namespace chimere::improve
