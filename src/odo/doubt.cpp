#include "odo/doubt.h"

#include <utility>
#include <vector>

namespace chimere::odo {
namespace {

// The beginning of the direct answer, until it is known whether it is one.
class HeldBack {
 public:
  HeldBack(const DoubtRule& rule, bool shows_tokens, const std::function<bool(const ChatChunk&)>& on_delta)
      : rule_(rule), shows_tokens_(shows_tokens), on_delta_(on_delta) {}

  // Whether the answer shall go on.
  bool take(const ChatChunk& chunk) {
    for (const orchestrator::TokenInfo& token : chunk.tokens) {
      if (n_ == rule_.n_tokens) break;
      sum_ += static_cast<double>(token.entropy);
      ++n_;
    }
    ChatChunk kept = chunk;
    if (!shows_tokens_) kept.tokens.clear();
    if (is_decided_) return show(kept);
    held_.push_back(std::move(kept));
    return n_ < rule_.n_tokens || decide();
  }
  // Also at an end that comes before all of its tokens. Gives whether the direct answer is kept.
  bool decide() {
    if (is_decided_) return !is_in_doubt();
    is_decided_ = true;
    if (is_in_doubt()) return false;
    bool goes_on = true;
    for (const ChatChunk& chunk : held_) goes_on = show(chunk) && goes_on;
    held_.clear();
    return goes_on;
  }

  double entropy() const { return n_ == 0 ? 0 : sum_ / static_cast<double>(n_); }
  bool is_in_doubt() const { return n_ > 0 && entropy() >= static_cast<double>(rule_.threshold); }

 private:
  bool show(const ChatChunk& chunk) const { return !on_delta_ || on_delta_(chunk); }

  const DoubtRule rule_;
  const bool shows_tokens_;
  const std::function<bool(const ChatChunk&)>& on_delta_;
  std::vector<ChatChunk> held_;
  double sum_ = 0;
  size_t n_ = 0;
  bool is_decided_ = false;
};

}  // namespace

DoubtedTurn ask_in_doubt(orchestrator::ChatService& chat, const orchestrator::ChatRequest& request,
                         const DoubtRule& rule, RunTeller& teller, int step,
                         const std::function<bool(const ChatChunk&)>& on_delta) {
  HeldBack held(rule, request.token_stats || request.logprobs || request.token_ids, on_delta);
  orchestrator::ChatRequest direct = request;
  direct.enable_thinking = false;
  direct.token_stats = true;
  DoubtedTurn doubted;
  doubted.turn =
      ask_model(chat, std::move(direct), teller, step, [&held](const ChatChunk& chunk) { return held.take(chunk); });
  const bool is_kept = held.decide();
  doubted.entropy = held.entropy();
  doubted.thinks = !is_kept && held.is_in_doubt() && !doubted.turn.has_failed() && !teller.is_cancelled();
  doubted.looked_up = request.looked_up;
  if (!doubted.thinks) return doubted;
  orchestrator::ChatRequest thinking = request;
  thinking.enable_thinking = true;
  if (rule.look_up) rule.look_up(thinking);
  doubted.looked_up = thinking.looked_up;
  doubted.turn = ask_model(chat, std::move(thinking), teller, step, on_delta);
  return doubted;
}

}  // namespace chimere::odo
