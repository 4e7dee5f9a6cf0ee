// sampling_params.h  What a request asks of the sampler. The defaults change nothing: they draw from the model's own
// distribution. The order in which the settings act is documented in sampler.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace chimere {

struct TokenBias {
  std::int32_t id;
  float delta;  // added to the logit; -infinity bans the token
};

inline constexpr float kGreedyBelow = 1e-4f;  // temperatures below this mean "take the best token"
inline constexpr int kMaxTopLogprobs = 256;

struct SamplingParams {
  float temperature = 1.0f;  // 0 = greedy
  int top_k = 0;             // keep the k best tokens; 0 or -1 = off
  float top_p = 1.0f;        // keep the fewest best tokens that hold this share of the probability; 1 = off
  float min_p = 0.0f;        // keep tokens at least this share as likely as the best one; 0 = off

  // Repetition looks at prompt and answer, presence and frequency at the answer alone (the meanings of Hugging Face
  // and of OpenAI). All look at the last `penalty_last_n` tokens: -1 = all, 0 = off.
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  int penalty_last_n = -1;

  // DRY: a token that would lengthen a repetition of L >= allowed_length tokens (prompt and answer) loses
  // multiplier * base^(L - allowed_length). A repetition never reaches across a sequence breaker.
  float dry_multiplier = 0.0f;  // 0 = off
  float dry_base = 1.75f;
  int dry_allowed_length = 2;
  int dry_penalty_last_n = -1;  // -1 = all, 0 = off
  std::vector<std::int32_t> dry_sequence_breakers;

  std::uint64_t seed = 0;
  std::uint32_t choice = 0;  // which of the `n` answers of one request this is: same seed, other draws

  bool stats = false;    // fill Sampled::logprob, entropy and max_prob (one more pass over the vocabulary)
  int top_logprobs = 0;  // how many entries of Sampled::top; more than 0 implies stats
  std::vector<TokenBias> logit_bias;

  // Call once when a request is admitted; Sampler::sample trusts what passed.
  Status validate(std::int32_t n_vocab) const;
};

}  // namespace chimere
