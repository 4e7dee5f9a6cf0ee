// sample_row.h  What the device sampler reads and writes for one row, and how a request is packed into it.
//
// Device code sees plain structs of pointers. The host keeps a PackedSampleRow for each row: the parts of a request
// that need work on the host (sorting, one power per length of a repetition) are done here once, when the request
// or its inputs change, and not in every step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampler.h"

namespace chimere::cuda {

// All pointers are device pointers, or null. The history is the sequence's tokens in the card's memory: the rows that
// verify one draft share it and differ in n_history.
struct SampleRow {
  float temperature;
  float scale;  // 1 / temperature, 1 when greedy
  float top_p;
  float min_p;
  int32_t top_k;   // 0: off
  int32_t forced;  // -1: none
  int32_t wants_stats;
  int32_t top_logprobs;

  uint64_t seed;
  uint64_t position;
  uint32_t choice;
  int32_t n_bias;
  const TokenBias* bias;  // sorted by id; entries of one id stay in the order in which they act
  const MemoryEntry* memory;
  const uint64_t* mask;
  int32_t n_memory;

  int32_t n_history;
  int32_t n_prompt;
  int32_t counts_start;  // n_history when the counting penalties are off
  int32_t dry_start;     // n_history when DRY is off
  float repetition_penalty;
  float presence_penalty;
  float frequency_penalty;
  const int32_t* history;

  int32_t dry_allowed_length;
  int32_t n_dry_penalties;
  int32_t n_dry_breakers;
  uint32_t tag;                 // comes back with the token
  const float* dry_penalties;   // [n_dry_penalties] by length - allowed length; the last one serves all longer ones
  const int32_t* dry_breakers;  // sorted
  int32_t* accept_into;         // where the drawn id is written as well: a place of a history, the next step's token
};

enum class SampleStatus : int32_t { ok = 0, no_logits = 1, nothing_allowed = 2 };

// Written at once: whoever sees the tag sees the rest.
struct alignas(16) SampledToken {
  int32_t id;
  SampleStatus status;
  uint32_t tag;  // of the SampleRow
  uint32_t reserved;
};

struct SampledRow : SampledToken {
  float logprob;
  float entropy;
  float max_prob;
  int32_t n_top;
};

// Rows whose top_k is at most this, or that take the best token, are drawn in a single pass over the logits.
inline constexpr int kShortTop = 128;

// The stages that at least one row of a step asks for: what nobody asks for is not launched. A captured graph is valid
// for every step whose needs are covered by those it was captured with.
struct SampleNeeds {
  bool stats = false;
  bool top_logprobs = false;
  bool memory = false;
  bool edits = false;
  bool whole = false;  // some draw needs the whole row: top-k is off or above kShortTop, or comes with a mask
  bool draw = false;
  bool truncation = false;  // top-k, top-p or min-p
  bool two_cuts = false;    // top-k and top-p in one row
  bool retry = false;       // a mask and truncation in one row

  void add(const SampleNeeds& other);
  // Rounded up to one of a few sets: each set needs a captured graph of its own, and requests come in many mixtures.
  SampleNeeds rounded() const;
  bool figures() const { return stats || top_logprobs || memory; }  // of the row as the model gave it
  bool operator==(const SampleNeeds&) const = default;
};

// The host's half of a row: flat arrays to be copied to the device beside the row.
struct PackedSampleRow {
  SampleRow row{};  // pointers null until placed
  SampleNeeds needs;
  std::vector<TokenBias> bias;
  std::vector<MemoryEntry> memory;
  std::vector<float> dry_penalties;
  std::vector<int32_t> dry_breakers;
};

// `n_history` tokens of the sequence, of which `n_prompt` are the prompt, lie on the device already.
// REQUIRES: params passed validate(n_vocab); a forced token lies in the vocabulary.
PackedSampleRow pack_sample_row(const SamplingParams& params, const RowInputs& inputs, int32_t n_vocab,
                                int32_t n_history, int32_t n_prompt, uint64_t position);

// What the host sampler would return: the error of a row without logits or of a mask that allows nothing.
Status sample_status(const SampledRow& row, int32_t n_vocab, uint64_t position);

}  // namespace chimere::cuda
