// working_memory.h  The working memory of a lowered program: buffers of activations, and scratch for its kernels.
//
// Ops run one after another on one stream, so they share every piece of scratch, and a piece is as large as the op that
// wants most of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/kernels/prefill/prefill.h"
#include "backend/ops.h"

namespace chimere::cuda {

// In bytes.
struct ScratchSizes {
  uint64_t prefill = 0;     // of prefill-class kernels
  uint64_t records = 0;     // rows quantised for matvec
  uint64_t ffn_hidden = 0;  // gate and up of decode rows, each
  uint64_t moe = 0;         // holds counters that are zero between launches
  uint64_t attention = 0;
  uint64_t recurrent = 0;
  uint64_t arrivals = 0;  // counters, zero between launches
};

inline void grow(uint64_t& size, uint64_t wanted) { size = std::max(size, wanted); }

struct WorkingMemory {
  std::vector<float*> buffers;  // by BufferId, [max_rows, width]
  PrefillScratch prefill;
  uint8_t* records;
  float *ffn_gate, *ffn_up;
  uint8_t* moe;
  float *attention, *recurrent;
  int32_t* arrivals;
  float* logits;        // [head_rows, n_vocab]
  float* hidden;        // [head_rows, d_model]
  float* draft_hidden;  // [max_rows, d_model], the input of a draft pass
  uint64_t bytes;

  // Laid out from `base` on, which need not be memory when only bytes or shapes matter. A piece of no bytes is null.
  WorkingMemory(const Program& program, const ScratchSizes& sizes, int max_rows, int head_rows, std::byte* base);
};

}  // namespace chimere::cuda
