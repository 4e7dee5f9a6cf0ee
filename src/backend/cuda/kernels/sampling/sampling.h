// sampling.h  The sampler of src/sampling on the device: same logits, settings and seed, same token.
//
// The order of the stages is that of sampling/sampler.h. No stage needs the host: histories, masks and the lists of a
// request are in the card's memory; only token ids come back, and the figures (logprob, entropy, best tokens) that were
// asked for. Sums of weights are integers (weight.h), so that top-p keeps the same tokens in whatever order they were
// added; Gumbel noise is drawn in double wherever it can decide. Two things may differ from the host by the rounding of
// a double function: the score of a token that a memory entry names, and the figures, whose sums have another order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/sampling/sample_row.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// Working memory of the sampler, one pool for all rows. Zeroed once when allocated; every step leaves it clean.
struct SampleScratch {
  std::byte* memory = nullptr;  // sample_scratch_bytes, 16-byte aligned, zeroed
  int max_rows = 0;
};
size_t sample_scratch_bytes(int n_vocab, int max_rows);

struct SampleArgs {
  const float* logits;    // [n_rows, n_vocab]
  const SampleRow* rows;  // [n_rows]
  int n_rows;
  int n_vocab;
  const int32_t* suppressed;        // [n_suppressed], null when there are none
  const uint64_t* suppressed_bits;  // the same ids as a bitset [ceil(n_vocab / 64)]
  int n_suppressed;
  SampleNeeds needs;      // of all rows together
  SampleScratch scratch;  // more rows than it holds are sampled in groups
  SampledRow* sampled;    // [n_rows]
  TokenLogprob* top;      // [n_rows, top_stride], best first; may be null without needs.top_logprobs
  int top_stride;
};

Status sample_rows(const Stream& stream, const SampleArgs& args);

}  // namespace chimere::cuda
