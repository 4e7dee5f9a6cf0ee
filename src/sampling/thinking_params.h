// thinking_params.h  How a thought is steered, token by token (engine/answer_state.h).
//
//   budget      so many tokens, then the thought is closed; a phrase that says so may come a little before
//   adaptive    a model that is certain ends early; one that ends its thought in doubt is made to go on
//   reflection  words that begin a reconsideration ("Wait") can not be drawn while the model is certain, or end the
//               thought there
//   loop        a repetition is made unlikely, then ends the thought, then the answer
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "sampling/loop_guard.h"

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
  // Instead of that, one that begins a sentence or line ends the thought, behind `least` tokens.
  bool closes_at_reflection = false;
  std::shared_ptr<const std::vector<std::vector<int32_t>>> triggers;  // words as ids; null: none

  LoopGuardParams loop;

  bool needs_stats() const { return max_entropy > 0; }
  // Whether a thought stands behind a line or sentence after this token.
  bool is_break(int32_t id) const {
    const auto word = static_cast<size_t>(id) / 64;
    return !breaks || (word < breaks->size() && ((*breaks)[word] >> (id % 64) & 1) != 0);
  }
  // Call once when a request is admitted.
  Status validate(int32_t n_vocab) const;
};

}  // namespace chimere
