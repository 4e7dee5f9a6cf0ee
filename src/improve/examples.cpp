#include "improve/examples.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "improve/near_duplicates.h"
#include "improve/proof.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr int kAccepted = 4;
constexpr int kAnswersPage = 200;

bool is_exact(const std::string& scorer) { return scorer == "sum" || scorer == "json"; }

std::vector<chat::ToolCall> calls_in(const Json& list) {
  std::vector<chat::ToolCall> calls;
  if (!list.is_array()) return calls;
  for (const Json& one : list) {
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string() || !one.contains("arguments")) return {};
    const Json& arguments = one["arguments"];
    if (!arguments.is_string() && !arguments.is_object()) return {};
    calls.push_back({"", one["name"].get<std::string>(),
                     arguments.is_string() ? arguments.get<std::string>() : to_text(arguments)});
  }
  return calls;
}

// The correction as calls; none: it is a text.
std::vector<chat::ToolCall> corrected_calls(const std::string& correction) {
  const auto json = parse_json(correction);
  if (!json || !json->is_object() || !json->contains("tool_calls")) return {};
  return calls_in((*json)["tool_calls"]);
}

}  // namespace

std::string Wanted::shown() const {
  std::string all = text;
  for (const chat::ToolCall& call : calls) {
    all += std::string(all.empty() ? "" : "\n") + "{\"name\": \"" + call.name +
           "\", \"arguments\": " + call.arguments_json + "}";
  }
  return all;
}

std::vector<std::string> Examples::conversations() const {
  std::set<std::string> names;
  for (const TaughtAnswer& example : train) names.insert(example.conversation);
  return {names.begin(), names.end()};
}

Result<std::vector<store::KeptAnswer>> all_answers(store::Journal& journal, const std::string& owner, size_t most) {
  std::vector<store::KeptAnswer> all;
  int64_t before = 0;
  while (all.size() < most) {
    TRY_ASSIGN(auto page, journal.list(owner, before, kAnswersPage));
    if (page.empty()) break;
    before = page.back().id;
    all.insert(all.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
  }
  if (all.size() > most) all.resize(most);
  return Result<std::vector<store::KeptAnswer>>{std::move(all)};
}

std::vector<chat::Message> messages_of(const store::KeptAnswer& kept) {
  std::vector<chat::Message> messages;
  const auto json = parse_json(kept.messages);
  if (!json || !json->is_array()) return messages;
  for (const Json& one : *json) {
    if (!one.is_object()) return {};
    chat::Message message;
    message.role = one.value("role", "");
    message.content = one.value("content", "");
    for (const Json& call : one.value("tool_calls", Json::array())) {
      message.tool_calls.push_back({"", call.value("name", ""), call.value("arguments", "{}")});
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

std::vector<chat::Tool> tools_of(const store::KeptAnswer& kept) {
  std::vector<chat::Tool> tools;
  if (kept.tools.empty()) return tools;
  const auto json = parse_json(kept.tools);
  if (!json || !json->is_array()) return tools;
  for (const Json& one : *json) tools.push_back({to_text(one)});
  return tools;
}

std::vector<chat::ToolCall> calls_of(const store::KeptAnswer& kept) {
  const auto json = parse_json(kept.tool_calls);
  return json ? calls_in(*json) : std::vector<chat::ToolCall>{};
}

bool has_foreign(const store::KeptAnswer& kept) { return !kept.foreign.empty() && kept.foreign != "[]"; }

std::string question_in(const std::vector<chat::Message>& messages) {
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->role == "user") return message->content.value_or("");
  }
  return {};
}

Examples examples_from(const std::string& owner, const std::vector<store::KeptAnswer>& answers) {
  Examples examples;
  NearDuplicates known;
  std::map<std::string, size_t> of_conversation;
  // The oldest first: what is said again later is the duplicate, so that what was learned stays when more comes.
  std::vector<const store::KeptAnswer*> ordered;
  for (const store::KeptAnswer& kept : answers) ordered.push_back(&kept);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  for (const store::KeptAnswer* kept : ordered) {
    const int said = kept->rating();
    const std::string* correction = kept->correction();
    const bool is_corrected = correction && said < kAccepted && !correction->empty();
    const bool is_accepted = said >= kAccepted;
    const bool is_checked = said == 0 && kept->scored >= kAccepted && is_exact(kept->scorer);
    if (!is_corrected && !is_accepted && !is_checked) {
      examples.foreign += said == 0 && has_foreign(*kept);
      continue;
    }
    if (is_checked && has_foreign(*kept)) {
      ++examples.foreign;
      continue;
    }
    TaughtAnswer example;
    example.id = kept->id;
    example.conversation = kept->conversation;
    example.route = kept->route;
    example.created = kept->created;
    example.asked = {messages_of(*kept), tools_of(*kept)};
    example.given = kept->answer;
    example.given_tokens = kept->completion_tokens;
    if (is_corrected && !example.asked.tools.empty()) example.wanted.calls = corrected_calls(*correction);
    if (!is_corrected) example.wanted.calls = calls_of(*kept);
    if (example.wanted.calls.empty()) example.wanted.text = is_corrected ? *correction : kept->answer;
    example.score = is_corrected ? 5 : std::max<int>(said, static_cast<int>(kept->scored));
    example.is_correction = is_corrected;
    const std::string wanted = example.wanted.shown();
    if (example.asked.messages.empty() || wanted.empty() || wanted.size() > kMaxWantedBytes) continue;
    if (!known.add(question_in(example.asked.messages) + "\n" + wanted)) {
      ++examples.duplicates;
      continue;
    }
    if (++of_conversation[example.conversation] > kMaxPerConversation) {
      ++examples.crowded;
      continue;
    }
    example.is_held_out = is_held_out(owner, example.conversation);
    (example.is_held_out ? examples.held_out : examples.train).push_back(std::move(example));
  }
  return examples;
}

Result<Examples> examples_of(store::Journal& journal, const std::string& owner) {
  TRY_ASSIGN(const auto answers, all_answers(journal, owner, kMaxTaught));
  return examples_from(owner, answers);
}

}  // namespace chimere::improve
