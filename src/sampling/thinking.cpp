#include "sampling/thinking.h"

#include <algorithm>
#include <limits>
#include <string>

namespace chimere {

Status ThinkingParams::validate(int32_t n_vocab) const {
  constexpr int32_t kMaxWindow = 4096;
  if (window < 1 || window > kMaxWindow) {
    return Error{Code::invalid_argument, "thinking window: expected 1 to " + std::to_string(kMaxWindow) +
                                             " tokens, found " + std::to_string(window)};
  }
  if (loop.tokens < 4) {
    return Error{Code::invalid_argument,
                 "loop guard: expected at least 4 tokens, found " + std::to_string(loop.tokens)};
  }
  for (const std::vector<int32_t>* phrase : {&warning, &extension}) {
    for (const int32_t id : *phrase) {
      if (id < 0 || id >= n_vocab) {
        return Error{Code::invalid_argument, "a phrase of a thought: id " + std::to_string(id) +
                                                 " is outside the vocabulary of " + std::to_string(n_vocab)};
      }
    }
  }
  return Ok{};
}

ThinkingControl::ThinkingControl(const ThinkingParams& p)
    : loop_(p.loop),
      breaks_(p.breaks),
      close_above_(p.close_above),
      suppress_above_(p.suppress_above),
      release_below_(p.release_below),
      least_(p.least),
      warn_before_(p.warn_before),
      warning_tokens_(static_cast<int32_t>(p.warning.size())) {
  if (p.needs_figures()) window_ = CertaintyWindow(p.window, p.max_entropy);
}

ThinkingControl::Wish ThinkingControl::before(int32_t n_thought, int32_t budget) {
  if (loop_.state() == LoopGuard::State::stuck) return Wish::close;
  if (n_thought >= least_ && is_at_break_ && is_certain()) return Wish::close;
  if (warn_before_ == 0 || was_warned_ || budget < 0) return Wish::nothing;
  // The warning and what follows it must fit into the budget, which stays exact; a late start is no start.
  const int32_t left = budget - n_thought - warning_tokens_;
  if (left > warn_before_ || left < 0) return Wish::nothing;
  was_warned_ = true;
  return Wish::warn;
}

bool ThinkingControl::extends(const ThinkingParams& p, int32_t n_thought, int32_t budget) {
  if (n_extensions_ >= p.max_extensions || p.extension.empty() || !window_.is_full()) return false;
  // One token of its own at least, or the phrase would be for nothing.
  const auto phrase = static_cast<int32_t>(p.extension.size());
  if (budget >= 0 && n_thought + phrase >= budget) return false;
  if (window_.certainty() >= p.extend_below) return false;
  ++n_extensions_;
  window_.clear();
  return true;
}

std::span<const TokenBias> ThinkingControl::bias(const ThinkingParams& p, std::span<const int32_t> tokens,
                                                 bool in_thought) {
  bias_.clear();
  if (in_thought && suppresses_ && p.triggers) {
    for (const std::vector<int32_t>& word : *p.triggers) {
      // A word of several tokens loses its last one where the others stand already.
      const size_t before = word.size() - 1;
      if (before > tokens.size() || !std::equal(word.begin(), word.end() - 1, tokens.end() - static_cast<long>(before)))
        continue;
      bias_.push_back({word.back(), -std::numeric_limits<float>::infinity()});
    }
  }
  loop_.penalise(tokens, bias_);
  return bias_;
}

void ThinkingControl::accept(const Sampled& token, std::span<const int32_t> tokens, bool in_thought, bool was_forced) {
  loop_.accept(tokens);
  if (!in_thought) return;
  const auto word = static_cast<size_t>(token.id) / 64;
  is_at_break_ = !breaks_ || (word < breaks_->size() && ((*breaks_)[word] >> (token.id % 64) & 1) != 0);
  if (was_forced) return;
  window_.push(token.max_prob, token.entropy);
  if (!window_.is_full()) return;
  const float certainty = window_.certainty();
  if (certainty >= suppress_above_) suppresses_ = true;
  if (certainty < release_below_) suppresses_ = false;
}

}  // namespace chimere
