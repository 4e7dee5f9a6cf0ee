#include "odo/few_shot.h"

#include <algorithm>
#include <utility>

#include "orchestrator/recall.h"
#include "retrieval/question.h"
#include "retrieval/word_index.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;

constexpr int kLookedAt = 512;          // the newest that somebody accepted
constexpr float kLeastCovered = 0.15f;  // of what the question says
constexpr size_t kMaxExampleBytes = 4 << 10;
constexpr int kAccepted = 4;  // of 5

// Its only question; empty: it had several, or none.
std::string only_question(const store::KeptAnswer& kept) {
  const auto messages = parse_json(kept.messages);
  std::string question;
  if (!messages || !messages->is_array()) return question;
  for (const Json& message : *messages) {
    const std::string role = message.is_object() ? message.value("role", "") : "";
    if (role == "system" || role == "developer") continue;
    const bool is_first = role == "user" && question.empty();
    if (!is_first || !message.contains("content") || !message["content"].is_string()) return {};
    question = message["content"].get<std::string>();
  }
  return question;
}

// What its owner holds for right; empty: nothing.
std::string accepted_text(const store::KeptAnswer& kept) {
  if (kept.rating() >= kAccepted) return kept.answer;
  const auto correction = std::find_if(kept.feedback.rbegin(), kept.feedback.rend(),
                                       [](const auto& said) { return said.kind == "correction"; });
  return correction == kept.feedback.rend() ? std::string() : correction->text;
}

}  // namespace

Result<std::vector<Example>> examples_for(store::Journal& journal, const std::string& owner,
                                          const std::string& question, size_t n, const Tokenizer& tokenizer) {
  TRY_ASSIGN(const std::vector<store::KeptAnswer> accepted, journal.accepted(owner, kLookedAt));
  std::vector<Example> all;
  for (const store::KeptAnswer& kept : accepted) {
    Example example{kept.id, only_question(kept), accepted_text(kept)};
    const bool is_short = example.question.size() + example.answer.size() <= kMaxExampleBytes;
    if (is_short && !example.question.empty() && !example.answer.empty()) all.push_back(std::move(example));
  }
  retrieval::WordIndex index;
  std::vector<std::string_view> questions;
  for (const Example& example : all) questions.emplace_back(example.question);
  index.add(questions);
  std::vector<Example> best;
  const auto words = retrieval::asked_words(question, orchestrator::rarity_by(tokenizer));
  for (const auto& match : index.best(words, kLeastCovered, n)) best.push_back(all[match.text]);
  // What is nearest to the question stands nearest to it.
  std::reverse(best.begin(), best.end());
  return Result<std::vector<Example>>{std::move(best)};
}

void show_examples(store::Journal* journal, const std::string& owner, int n, const orchestrator::ChatService& chat,
                   RunTeller& teller, orchestrator::ChatRequest& request) {
  if (n <= 0) return;
  const int step = teller.begin("few_shot", "looks for accepted answers", false);
  if (!journal) return teller.end(step, State::skipped, "this server keeps no answers (serve --learn)");
  if (!journal->keeps(owner)) return teller.end(step, State::skipped, "nothing is kept of those who did not agree");
  const std::string question = orchestrator::question_of(request.messages);
  const auto examples = examples_for(*journal, owner, question, static_cast<size_t>(n), chat.tokenizer());
  if (!examples) return teller.end(step, State::failed, examples.error().message);
  auto room = static_cast<size_t>(std::max(0, chat.context_length()));  // bytes: a token has about four
  std::vector<chat::Message> turns;
  Json shown = Json::array();
  for (const Example& example : *examples) {
    const size_t bytes = example.question.size() + example.answer.size();
    if (bytes > room) continue;
    room -= bytes;
    for (const auto& [role, text] : {std::pair("user", &example.question), std::pair("assistant", &example.answer)}) {
      chat::Message& message = turns.emplace_back();
      message.role = role;
      message.content = *text;
    }
    shown.push_back({{"answer", example.id}, {"question", example.question.substr(0, 200)}});
  }
  const bool has_system = !request.messages.empty() && request.messages.front().role == "system";
  request.messages.insert(request.messages.begin() + (has_system ? 1 : 0), turns.begin(), turns.end());
  teller.end(step, State::done, std::to_string(shown.size()) + (shown.size() == 1 ? " example" : " examples"),
             to_text(Json{{"examples", shown}}));
}

}  // namespace chimere::odo
