// sampler.h  From a row of logits to a token.
//
// The stages and their order are part of the contract; host and device keep to it.
//
//   0  stats       logprob, top-N, entropy and largest probability of the model's own distribution: softmax of the raw
//                  logits, before anything below touches them
//   1  memory      p' = (1 - A) p + a, with a_i the sum of weight * probability of token i and A the sum of all a_i,
//                  scaled down to kMaxMemoryShare when it is larger. First, because it corrects the model: bans,
//                  penalties and temperature then act on memory and model alike, and greedy decoding sees it too
//   2  suppressed  ids that stand for no text (padding of the vocabulary) are banned
//   3  bias        SamplingParams::logit_bias, then RowInputs::bias
//   4  penalties   repetition (divides a positive logit, multiplies a negative one), then presence and frequency
//   5  DRY
//   6  temperature t_i = (score_i - max) / temperature; below kGreedyBelow the best allowed token is taken at once
//   7  top-k, then 8 top-p, then 9 min-p (truncation.h)
//   10 mask        candidates whose bit is 0 are dropped. If none is left (truncation does not know the grammar),
//                  stages 7 to 9 run again over the allowed tokens alone. A masked token is never drawn
//   11 draw        Gumbel-max (gumbel.h)
//
// Equal scores always go to the lower token id. A forced token wins over everything, the mask included; its stats are
// still the model's own.
//
// Odd numbers: NaN and -infinity logits are never drawn; +infinity counts as 1e30. A row without a finite logit is an
// error, as is a mask that allows nothing. If every token that the mask allows is banned, the mask wins: the allowed
// token with the largest raw logit is taken (the lowest allowed id when those are all -infinity).
// Entries of RowInputs with ids outside the vocabulary or with NaN are ignored: they come from files.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/penalties.h"
#include "sampling/sampler_state.h"
#include "sampling/sampling_params.h"
#include "sampling/score_row.h"

namespace chimere {

inline constexpr double kMaxMemoryShare = 0.999;

struct MemoryEntry {
  std::int32_t id;
  float probability;  // what the memory gives this token, 0 to 1
  float weight;       // how much of the whole distribution this memory may claim, 0 to 1
};

// The inputs of one row beside its logits. Views: the caller keeps the storage alive during the call.
struct RowInputs {
  std::span<const std::uint64_t> mask;  // bit id % 64 of word id / 64: 1 = allowed; empty = all allowed
  std::span<const TokenBias> bias;
  std::span<const MemoryEntry> memory;
  std::optional<std::int32_t> forced;
};

struct TokenLogprob {
  std::int32_t id;
  float logprob;
};

struct Sampled {
  std::int32_t id = -1;
  // NaN unless SamplingParams::stats or top_logprobs asked for them. Natural logarithms.
  float logprob = std::numeric_limits<float>::quiet_NaN();
  float entropy = std::numeric_limits<float>::quiet_NaN();
  float max_prob = std::numeric_limits<float>::quiet_NaN();
  std::vector<TokenLogprob> top;  // best first
};

// Holds scratch space for one row, allocated once; no state carries over between calls. One per thread.
class Sampler {
 public:
  // For sizes that come from a file: refuses a vocabulary of no tokens or of more than kMaxVocab (weight.h).
  static Result<Sampler> create(std::int32_t n_vocab, std::span<const std::int32_t> suppressed = {});
  // REQUIRES: 0 < n_vocab <= kMaxVocab; suppressed ids outside the vocabulary are ignored.
  explicit Sampler(std::int32_t n_vocab, std::span<const std::int32_t> suppressed = {});

  // `position` is that of the token to be drawn, counted from the start of the sequence. The state is not changed: call
  // state.accept(id) once the token is part of the sequence.
  // REQUIRES: logits.size() == n_vocab, params passed validate(n_vocab), a mask is empty or has a bit for every token.
  Result<Sampled> sample(std::span<const float> logits, const SamplingParams& params, const SamplerState& state,
                         const RowInputs& inputs, std::uint64_t position);

 private:
  void fill_stats(const Mass& mass, int top_n, Sampled& sampled);
  bool mix_memory(const Mass& mass, std::span<const MemoryEntry> memory);
  bool apply_bias(std::span<const TokenBias> bias);
  std::int32_t choose(const SamplingParams& params, const RowInputs& inputs, std::uint64_t position);
  Result<std::int32_t> last_resort(std::span<const float> logits, std::span<const std::uint64_t> mask) const;

  ScoreRow row_;
  Penalties penalties_;
  std::vector<std::int32_t> suppressed_;  // sorted
  std::vector<Candidate> candidates_;
};

}  // namespace chimere
