#include "sampling/loop_guard.h"

#include <algorithm>

namespace chimere {
namespace {

constexpr int kRepetitions = 3;
constexpr float kMaxPenalty = 64;

}  // namespace

void LoopGuard::accept(std::span<const int32_t> tokens, int32_t n_text) {
  if (!params_.is_on || tokens.empty()) return;
  ++n_seen_;
  const auto n = static_cast<int32_t>(tokens.size());
  period_ = 0;
  int32_t longest = 0;
  bool circles_in_string = false;
  for (int p = 1; p <= kMaxPeriod; ++p) {
    const bool same = p < n_seen_ && p < n && tokens[n - 1] == tokens[n - 1 - p];
    run_[p] = same ? run_[p] + 1 : 0;
    const int32_t span = run_[p] + p;
    if (period_ == 0 && span >= kRepetitions * p && span >= params_.tokens) {
      period_ = p;
      longest = span;
    }
    const int32_t in_string = std::max(params_.string_tokens, kStringRepetitions * p);
    circles_in_string |= params_.string_tokens > 0 && std::min(span, n_text) >= in_string;
  }
  const bool must_end =
      circles_in_string || (period_ > 0 && longest >= std::max(2 * params_.tokens, (kRepetitions + 1) * period_));
  state_ = must_end ? State::stuck : period_ > 0 ? State::looping : State::free;
}

void LoopGuard::restart() {
  n_seen_ = 0;
  run_ = {};
  period_ = 0;
  state_ = State::free;
}

void LoopGuard::penalise(std::span<const int32_t> tokens, std::vector<TokenBias>& bias) const {
  if (period_ == 0 || params_.penalty == 0) return;
  const int32_t rounds = (run_[period_] + period_) / period_ - kRepetitions;
  const float delta = std::min(kMaxPenalty, params_.penalty * static_cast<float>(1 << std::min(rounds, 8)));
  bias.push_back({tokens[tokens.size() - static_cast<size_t>(period_)], -delta});
}

}  // namespace chimere
