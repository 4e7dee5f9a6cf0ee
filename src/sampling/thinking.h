// thinking.h  Control of a thought, token by token: how long it may be, when the model is sure enough to end it, and
// when to let it doubt.
//
//   budget      so many tokens, then the thought is closed; a phrase that says so may come a little before
//   adaptive    a model that is certain ends early; one that ends its thought in doubt is made to go on
//   reflection  words that begin a reconsideration ("Wait") can not be drawn while the model is certain
//   loop        a repetition is made unlikely, then ends the thought, then the answer
//
// The engine asks before a token is drawn and tells what was drawn. Everything is a value that follows from the tokens
// and their figures: the same alone and in a batch, streamed or not, and a copy goes on by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sampling/certainty.h"
#include "sampling/loop_guard.h"
#include "sampling/sampler.h"

namespace chimere {

inline constexpr float kNever = 2.0f;  // no certainty comes up to it

struct ThinkingParams {
  std::vector<int32_t> warning;  // written into the thought when `warn_before` tokens of the budget are left behind it
  int32_t warn_before = 0;       // 0: no warning
  int32_t answer_tokens = 0;     // of all tokens of the request, those a thought leaves for the answer

  int32_t window = 32;         // tokens that certainty is taken over
  float max_entropy = 0;       // ln of the vocabulary; 0: nothing that needs certainty is on
  int32_t least = 0;           // tokens of a thought before it is closed for certainty
  float close_above = kNever;  // certainty at which it is closed
  float extend_below = -1;     // certainty below which the model may not end it
  int32_t max_extensions = 0;
  std::vector<int32_t> extension;  // written instead of that end
  // Tokens that end a line or a sentence, as bits: a thought is closed for certainty behind one of these. Null: any.
  std::shared_ptr<const std::vector<uint64_t>> breaks;

  float suppress_above = kNever;  // certainty from which `triggers` can not be drawn
  float release_below = 0;        // and below which they can again
  std::shared_ptr<const std::vector<std::vector<int32_t>>> triggers;  // words as ids; null: none

  LoopGuardParams loop;

  bool needs_figures() const { return max_entropy > 0; }
  // Call once when a request is admitted.
  Status validate(int32_t n_vocab) const;
};

class ThinkingControl {
 public:
  enum class Wish { nothing, warn, close };

  ThinkingControl() = default;
  explicit ThinkingControl(const ThinkingParams& params);

  // What should come before the next token of an open thought of so far `n_thought` tokens. A warning is given once.
  Wish before(int32_t n_thought, int32_t budget);
  // Whether a thought that the model wants to end should go on with ThinkingParams::extension instead; counts it.
  bool extends(const ThinkingParams& params, int32_t n_thought, int32_t budget);
  // Biases of the next token. They live until the next call.
  std::span<const TokenBias> bias(const ThinkingParams& params, std::span<const int32_t> tokens, bool in_thought);
  // `tokens` is all of the text, the new one last. `was_forced`: its figures say nothing about the model's mind.
  void accept(const Sampled& token, std::span<const int32_t> tokens, bool in_thought, bool was_forced);
  // The thought is over.
  void close() { loop_.restart(); }

  LoopGuard::State loop() const { return loop_.state(); }
  bool is_suppressing() const { return suppresses_; }

 private:
  bool is_certain() const { return window_.is_full() && window_.certainty() >= close_above_; }

  CertaintyWindow window_;
  LoopGuard loop_;
  std::shared_ptr<const std::vector<uint64_t>> breaks_;
  float close_above_ = kNever, suppress_above_ = kNever, release_below_ = 0;
  int32_t least_ = 0, warn_before_ = 0, warning_tokens_ = 0;
  int32_t n_extensions_ = 0;
  bool is_at_break_ = false, was_warned_ = false, suppresses_ = false;
  std::vector<TokenBias> bias_;
};

}  // namespace chimere
