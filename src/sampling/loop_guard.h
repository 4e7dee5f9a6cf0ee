// loop_guard.h  Notices while a text grows that it goes round in circles.
//
// For each period p it is known how many of the last tokens equal the one p before them: `run`. The text ends in
// (run + p) / p repetitions of the same p tokens. One comparison a period and token.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampling_params.h"

namespace chimere {

struct LoopGuardParams {
  bool is_on = false;
  // A loop: at least three times the same, and at least so many tokens in all. Twice as many and it must end.
  int32_t tokens = 32;
  // Taken from the logit of the token that would go on with the loop, twice as much each period; 0: none.
  float penalty = 4;
  // In one string or number of a form, a loop of so many tokens that is LoopGuard::kStringRepetitions times the same
  // must end; 0: as anywhere.
  int32_t string_tokens = 0;
};

class LoopGuard {
 public:
  static constexpr int kMaxPeriod = 96;
  static constexpr int kStringRepetitions = 32;
  enum class State { free, looping, stuck };

  LoopGuard() = default;
  explicit LoopGuard(const LoopGuardParams& params) : params_(params) {}

  bool is_on() const { return params_.is_on; }
  // `tokens` is all of the text, the new token last; so many of the last are in one string (TokenConstraint::n_text).
  void accept(std::span<const int32_t> tokens, int32_t n_text = 0);
  // What comes next is another text: a thought was closed.
  void restart();
  State state() const { return state_; }
  // The tokens that would go on with a loop, with what they lose. `tokens` as for accept(). Empty while free.
  void penalise(std::span<const int32_t> tokens, std::vector<TokenBias>& bias) const;

 private:
  LoopGuardParams params_;
  int32_t n_seen_ = 0;                         // since the start
  std::array<int32_t, kMaxPeriod + 1> run_{};  // [period]
  int period_ = 0;                             // of the loop: the shortest
  State state_ = State::free;
};

}  // namespace chimere
