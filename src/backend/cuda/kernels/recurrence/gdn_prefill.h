// gdn_prefill.h  The prefill class of Gated DeltaNet, for heads of 64 and 128.
#pragma once

#include "backend/cuda/kernels/recurrence/gdn.h"

namespace chimere::cuda::gdn {

// Floats of a row of working memory: q and k normalised, v, log decays, betas. Whole 16-byte words.
constexpr int64_t prepared_stride(const GdnArgs& args) {
  return args.channels() + (2 * args.n_value_heads + 3) / 4 * 4;
}

// Floats of what a chunk of 64 tokens and a value head keep between the two launches of gdn_chunk.cu.
inline constexpr int kRecordFloats = 64 * 64 + 2 * 64;

// Chunks that a batch can have at most: a slice has one for every 64 tokens, and two that it shares with others.
constexpr int64_t max_chunks(int max_rows, int max_prefill_slices) {
  return max_rows / 64 + 2 * int64_t{max_prefill_slices};
}

Status launch_prefill(const Stream& stream, const GdnArgs& args);
// The recurrence in chunks, from prepared rows to outputs before their norm.
Status launch_chunks(const Stream& stream, const GdnArgs& args);

}  // namespace chimere::cuda::gdn
