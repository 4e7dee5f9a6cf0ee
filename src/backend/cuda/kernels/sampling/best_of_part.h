// best_of_part.h  The best token of each row, where logits are of some blocks of the vocabulary alone.
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/rows/head_part.h"
#include "backend/cuda/kernels/sampling/sample_row.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

struct BestOfPartArgs {
  const float* logits;  // [n_rows, part.n_rows()]
  HeadPartView part;
  const SampleRow* rows;  // [n_rows]; read for `tag` and `accept_into`
  int n_rows;
  int n_vocab;
  const uint64_t* suppressed_bits;  // [ceil(n_vocab / 64)] ids that are never drawn, or null
  SampledRow* sampled;              // [n_rows]
};

// What sample_rows draws for a row that is greedy and nothing else, had it the logits of these blocks and no others.
Status best_of_part(const Stream& stream, const BestOfPartArgs& args);

}  // namespace chimere::cuda
