// attention.h  Grouped-query attention on the device: op::Attention over paged keys and values.
//
// Two families. The exact one computes in float32, takes any head size and any cache type, one block a row and head.
// The fast one multiplies on tensor cores in f16 with float32 sums and softmax, for heads of 64, 128 and 256 that are
// the same for keys and values, over f16, q8_0 and q4_0 in any combination:
//   decode class   partial results of whole splits of the context and their sum in order: one launch where there are
//                  few splits, two where there are many. A split's size depends on a row's position alone, so a row's
//                  bits depend on nothing else in the batch.
//   prefill class  two launches: rows prepared and stored, then one pass over the pages for tiles of queries.
// Slices of the decode class that are read in both directions, short texts and blocks of drafts, go the exact way.
#pragma once

#include <cstdint>

#include "backend/cuda/batch_view.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"
#include "tensor/dtype.h"

namespace chimere::cuda {

// All pointers are device memory. Rows of one buffer are `*_stride` floats apart.
struct AttentionArgs {
  BatchView batch;
  // [n_rows][n_heads (gated ? 2 : 1) head_dim_k]. Null: keys and values are stored, and nothing else is done.
  const float* q = nullptr;
  int64_t q_stride = 0;
  const float* k = nullptr;
  int64_t k_stride = 0;
  const float* v = nullptr;
  int64_t v_stride = 0;
  int n_heads = 0, n_kv_heads = 0, head_dim_k = 0, head_dim_v = 0;
  bool gated = false;
  const float* q_norm = nullptr;  // [head_dim_k], null: no norm
  const float* k_norm = nullptr;
  float eps = 0;
  const float* inv_freq = nullptr;  // [n_rot / 2], null: no rope
  int n_rot = 0;
  float rope_magnitude = 1.0f;
  bool rope_adjacent = false;  // pairs (2k, 2k + 1) instead of (k, k + n_rot / 2)
  float scale = 1.0f;
  const float* sinks = nullptr;  // [n_heads] or null: one more logit a head, of a key without a value
  int window = 0;                // a row at p sees p - window + 1 .. p; 0: all up to p
  // Every row sees all of its slice, and what is before it: all slices of one class, a window in the decode class alone.
  bool bidirectional = false;
  DType k_type = DType::F16, v_type = DType::F16;  // F32, F16, Q8_0 or Q4_0
  bool rotate = false;                             // KvFormat::rotate
  // Of the layer inside a page, in bytes: StateLayout::k_offset(layer, 0) and so on. Heads lie kPageTokens rows apart.
  uint64_t k_offset = 0, v_offset = 0;
  uint64_t k_row_bytes = 0, v_row_bytes = 0;
  float* out = nullptr;  // [n_rows][n_heads * head_dim_v]
  int64_t out_stride = 0;
  float* scratch = nullptr;  // attention_scratch_floats() floats, 16-byte aligned
  int max_decode_rows = 0;   // that the scratch was made for
  // attention_arrivals() counters, zero before the first call and again after each.
  int32_t* arrivals = nullptr;
  bool exact = false;      // float32 throughout
  bool has_decode = true;  // whether the batch has slices of the class: what is not there is not launched
  bool has_prefill = true;
  // Bounds over the batch that size the grid.
  int max_decode_tokens = 16;   // of a decode-class slice
  int max_decode_kv = 1 << 30;  // positions that a decode-class row sees; a row that sees more is slow, not wrong
  int max_prefill_tokens = 0;   // of a prefill slice; 0: n_rows
  bool dependent = false;       // launch as a programmatic dependent of the kernel before
};

// What a batch moves at least, where its rows see kv_rows rows of every KV head in all: for benches and profiles.
uint64_t attention_bytes(const AttentionArgs& layer, int64_t kv_rows, int n_rows);

// The working memory a layer needs for the largest batch.
int64_t attention_scratch_floats(const AttentionArgs& layer, int max_rows, int max_decode_rows);

// Counters for batches of so many slices.
int64_t attention_arrivals(const AttentionArgs& layer, int max_slices);

// Stores the new keys and values, then writes out. A slice without tokens is left alone.
Status attention(const Stream& stream, const AttentionArgs& args);

}  // namespace chimere::cuda
