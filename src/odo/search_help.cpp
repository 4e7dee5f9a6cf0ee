#include "odo/search_help.h"

#include <cmath>
#include <utility>

#include "base/hash.h"
#include "odo/word_chances.h"
#include "text/utf8.h"

namespace chimere::odo {
namespace {

using orchestrator::ChatRequest;

constexpr uint64_t kHelpScope = 0x6f646f2068656c70;  // "odo help"
constexpr int32_t kQueryTokens = 32;                 // of one query
constexpr size_t kMaxQueryBytesTold = 200;           // a longer line is no query
constexpr size_t kMaxGradedBytes = 4 << 10;          // of question and passage each
constexpr std::chrono::milliseconds kCancelLook{20};

std::vector<chat::Message> one_message(std::string text) {
  std::vector<chat::Message> messages(1);
  messages.front().role = "user";
  messages.front().content = std::move(text);
  return messages;
}

std::string begin_of(const std::string& text) { return text.substr(0, utf8_floor(text, kMaxGradedBytes)); }

ChatRequest help_question(const SearchHelp& help, std::string text) {
  ChatRequest request = word_question(one_message(std::move(text)), hash_mix(kHelpScope ^ help.cache_scope));
  request.owner = help.owner;
  return request;
}

// For each text whether it helps, as the model finds "+" or "-" likelier behind it.
Result<std::vector<bool>> grades_of(const SearchHelp& help, const std::string& question,
                                    const std::vector<std::string>& texts, const web::WebContext& context) {
  std::vector<bool> helps;
  for (const std::string& text : texts) {
    TRY(context.check("grade"));
    ChatRequest request = help_question(help, "Text: " + begin_of(text) + "\n\nQuestion: " + begin_of(question) +
                                                  "\n\nDoes the text help to answer the question? Answer + or -.");
    request.deadline = context.deadline;
    TRY_ASSIGN(const std::vector<double> chances, word_chances(*help.model, request, {"+", "-"}, "grade"));
    if (help.told) help.told(2);
    helps.push_back(chances[0] >= chances[1]);
  }
  return Result<std::vector<bool>>{std::move(helps)};
}

Result<std::vector<std::string>> further_queries(const SearchHelp& help, const std::string& question, size_t n,
                                                 const web::WebContext& context) {
  ChatRequest request = help_question(help, "Write " + std::to_string(n) +
                                                " short queries for a web search that help to answer this question, "
                                                "one on each line and nothing else.\n\nQuestion: " +
                                                begin_of(question));
  request.max_tokens = kQueryTokens * static_cast<int32_t>(n);
  TRY_ASSIGN(const std::string text, answer_of(help, std::move(request), context));
  std::vector<std::string> queries = queries_in(text, n);
  if (queries.empty()) return Error{Code::not_found, "the model wrote no query"};
  return Result<std::vector<std::string>>{std::move(queries)};
}

}  // namespace

std::vector<std::string> queries_in(const std::string& text, size_t n) {
  std::vector<std::string> queries;
  for (size_t begin = 0; begin < text.size() && queries.size() < n;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    // "1. ", "2) ", "- ", "* "
    const size_t digits = line.find_first_not_of("0123456789 \t");
    const size_t mark = digits == std::string::npos ? 0 : digits;
    const bool is_numbered = mark > 0 && mark + 1 < line.size() && (line[mark] == '.' || line[mark] == ')');
    if (is_numbered) line.erase(0, mark + 1);
    const size_t first = line.find_first_not_of(" \t\"'*-");
    const size_t last = line.find_last_not_of(" \t\r\"'");
    if (first == std::string::npos || last < first) continue;
    line = line.substr(first, last + 1 - first);
    if (line.size() <= kMaxQueryBytesTold) queries.push_back(std::move(line));
  }
  return queries;
}

Result<std::string> answer_of(const SearchHelp& help, ChatRequest request, const web::WebContext& context) {
  request.enable_thinking = false;
  request.sampling.temperature = 0;
  request.logprobs = false;
  request.deadline = std::min(request.deadline, context.deadline);
  const std::unique_ptr<orchestrator::ChatStream> stream = help.model->start(std::move(request));
  std::string text;
  bool is_left = false;
  for (;;) {
    if (!is_left && context.cancelled()) {
      stream->cancel();
      is_left = true;
    }
    const std::optional<orchestrator::ChatChunk> chunk = stream->wait(kCancelLook);
    if (!chunk) continue;
    text += chunk->content;
    if (!chunk->is_terminal()) continue;
    if (help.told) help.told(chunk->usage.completion_tokens);
    if (chunk->error) return *chunk->error;
    if (chunk->finish == orchestrator::Finish::cancelled) return Error{Code::cancelled, "the time was up"};
    return Result<std::string>{std::move(text)};
  }
}

web::SearchHooks hooks_of(const SearchHelp& help) {
  web::SearchHooks hooks;
  if (help.model && help.expands) {
    hooks.expand = [&help](const std::string& question, size_t n, const web::WebContext& context) {
      return further_queries(help, question, n, context);
    };
  }
  if (help.scorer) {
    hooks.score = [&help](const std::string& question, const std::vector<web::Passage>& passages,
                          const web::WebContext& context) -> Result<std::vector<double>> {
      std::vector<std::string> texts;
      for (const web::Passage& passage : passages) {
        texts.push_back(passage.title.as_data() + "\n" + passage.text.as_data());
      }
      TRY_ASSIGN(const std::vector<float> scores, help.scorer(question, texts, context.deadline));
      return std::vector<double>(scores.begin(), scores.end());
    };
  }
  if (help.model && help.grades) {
    hooks.grade = [&help](const std::string& question, const std::vector<web::Passage>& passages,
                          const web::WebContext& context) {
      std::vector<std::string> texts;
      for (const web::Passage& passage : passages) texts.push_back(passage.text.as_data());
      return grades_of(help, question, texts, context);
    };
  }
  return hooks;
}

retrieval::Grader grader_of(const SearchHelp& help, const web::WebContext& context) {
  if (!help.model || !help.grades) return {};
  return [&help, context](const std::string& question, std::span<const retrieval::Hit> hits) {
    std::vector<std::string> texts;
    for (const retrieval::Hit& hit : hits) texts.push_back(hit.text);
    return grades_of(help, question, texts, context);
  };
}

}  // namespace chimere::odo
