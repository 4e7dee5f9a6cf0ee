// penalties.h  The stages that look back: repetition, presence, frequency, and DRY.
#pragma once

#include <cstdint>
#include <vector>

#include "sampling/sampler_state.h"
#include "sampling/sampling_params.h"
#include "sampling/score_row.h"

namespace chimere {

// A longer repetition than this many logits' worth of penalty is not told apart: the scores must stay finite.
inline constexpr double kMaxDryPenalty = 1e6;

// Owns the counters the penalties need, one entry a token, so that a step allocates nothing in the steady state.
// Costs one pass over the window (all of the history with the default of -1), nothing when the penalties are off.
class Penalties {
 public:
  explicit Penalties(std::int32_t n_vocab)
      : counts_(static_cast<std::size_t>(n_vocab)), longest_(counts_.size()), breaker_(counts_.size()) {}

  // Both leave the maxima of the row stale and return whether they changed it. Tokens outside the vocabulary
  // (image placeholders) take part in no penalty.
  bool apply_counts(const SamplingParams& params, const SamplerState& state, ScoreRow& row);
  bool apply_dry(const SamplingParams& params, const SamplerState& state, ScoreRow& row);

 private:
  struct Count {
    std::int32_t all = 0;
    std::int32_t generated = 0;
  };

  std::vector<Count> counts_;           // [n_vocab], zero between calls
  std::vector<std::int32_t> longest_;   // [n_vocab], zero between calls; DRY: the longest repetition a token lengthens
  std::vector<std::uint8_t> breaker_;   // [n_vocab], zero between calls; DRY: 1 for a sequence breaker
  std::vector<std::int32_t> touched_;   // the ids with a non-zero entry
  std::vector<std::int32_t> reversed_;  // DRY: the window, last token first
  std::vector<std::int32_t> matches_;   // DRY: length of the repetition that ends at each place of reversed_
};

}  // namespace chimere
