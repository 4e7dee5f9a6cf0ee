#include "odo/few_shot.h"

#include <algorithm>
#include <set>
#include <utility>

#include "orchestrator/recall.h"
#include "text/json.h"

namespace chimere::odo {
namespace {

using State = StepReport::State;

constexpr int kLookedAt = 512;        // the newest that somebody accepted
constexpr double kLeastShared = 0.4;  // of the words that either of two questions has
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

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    const bool is_large = c >= 'A' && c <= 'Z';
    const bool is_of_word = is_large || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0;
    if (is_of_word) {
      word += is_large ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

// Words that both have, of all that either has. Examples teach a form, so small words count as much as names.
double shared(const std::set<std::string>& a, const std::set<std::string>& b) {
  const auto n_both = std::count_if(a.begin(), a.end(), [&](const std::string& word) { return b.count(word) > 0; });
  const size_t n_all = a.size() + b.size() - static_cast<size_t>(n_both);
  return n_all == 0 ? 0 : static_cast<double>(n_both) / static_cast<double>(n_all);
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
                                          const std::string& question, size_t n) {
  TRY_ASSIGN(const std::vector<store::KeptAnswer> accepted, journal.accepted(owner, kLookedAt));
  std::vector<Example> all;
  for (const store::KeptAnswer& kept : accepted) {
    Example example{kept.id, only_question(kept), accepted_text(kept)};
    const bool is_short = example.question.size() + example.answer.size() <= kMaxExampleBytes;
    if (is_short && !example.question.empty() && !example.answer.empty()) all.push_back(std::move(example));
  }
  const std::set<std::string> asked = words_of(question);
  std::vector<std::pair<double, size_t>> near;  // how much they share
  for (size_t i = 0; i < all.size(); ++i) {
    const double share = shared(asked, words_of(all[i].question));
    if (share >= kLeastShared) near.emplace_back(share, i);
  }
  // Of those that are equally near the newest.
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  near.resize(std::min(near.size(), n));
  std::vector<Example> best;
  for (const auto& [share, i] : near) best.push_back(std::move(all[i]));
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
  const auto examples = examples_for(*journal, owner, question, static_cast<size_t>(n));
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
