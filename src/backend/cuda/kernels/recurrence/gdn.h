// gdn.h  Gated DeltaNet on the device: op::GdnMix, for all slices of a batch at once.
//
// Decode class: one launch. Prefill class: conv and norms of all tokens, then the recurrence in chunks on tensor cores
// (or token by token, in exact mode and when a batch has more prefill slices than planned for), then the gated norm.
// Sums of one output are taken in an order that depends on nothing but the shape of the layer.
#pragma once

#include <cstdint>

#include "backend/cuda/batch_view.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// All pointers are device memory. Rows of one buffer are `*_stride` floats apart.
struct GdnArgs {
  BatchView batch;
  const float* qkv = nullptr;  // [n_rows][channels]
  int64_t qkv_stride = 0;
  const float* z = nullptr;  // [n_rows][n_value_heads * d_head]
  int64_t z_stride = 0;
  const float* alpha = nullptr;  // [n_rows][n_value_heads]
  int64_t alpha_stride = 0;
  const float* beta = nullptr;
  int64_t beta_stride = 0;
  const float* conv = nullptr;  // [channels][taps]
  const float* a = nullptr;     // [n_value_heads]
  const float* dt_bias = nullptr;
  const float* norm = nullptr;  // [d_head]
  float eps = 0;
  int n_key_heads = 0, n_value_heads = 0, d_head = 0;
  int taps = 0;  // of the conv: inputs remembered + 1
  bool tiled_heads = false;
  int64_t conv_offset = 0;    // of this layer in the recurrent blob, in floats
  int64_t matrix_offset = 0;  // likewise
  int64_t replay_offset = 0;  // of this layer in a token's record
  int64_t replay_stride = 0;  // floats of a token's record
  float* out = nullptr;       // [n_rows][n_value_heads * d_head]
  int64_t out_stride = 0;
  // One counter a slice and key head: gdn_arrivals(). Zero before the first call, zero again after each. Two calls that
  // may overlap need two sets.
  int32_t* arrivals = nullptr;
  // gdn_scratch_floats() floats, 16-byte aligned: of prefill slices; of decode slices the sums of squares of each 32
  // columns of out, [n_rows][n_value_heads * d_head / 32].
  float* scratch = nullptr;
  int max_prefill_slices = 0;  // that the scratch was made for
  bool exact = false;          // float32 throughout: the recurrence token by token for both classes
  bool has_decode = true;      // whether the batch has slices of the class: what is not there is not launched
  int max_decode_tokens = 16;  // of a decode slice: shared memory is sized by it; a slice with more is prefill class
  int n_prefill_slices = 0;    // of the batch
  int max_prefill_tokens = 0;  // bound of a prefill slice that sizes the grid; 0: n_rows
  bool leave_norm = false;     // gdn_can_leave_norm(): rows of decode slices are left without 1 / rms (head_squares.h)
  bool dependent = false;      // launch as a programmatic dependent of the kernel before

  constexpr int channels() const { return (2 * n_key_heads + n_value_heads) * d_head; }
};

// What a batch moves at least: for benches and profiles.
uint64_t gdn_bytes(const GdnArgs& layer, int n_slices, int n_rows);

// Whether whoever reads out may be asked to multiply by 1 / rms of each head. If not, out is finished here.
bool gdn_can_leave_norm(const GdnArgs& layer);

// Sizes of the working memory that a layer needs for the largest batch.
int64_t gdn_arrivals(const GdnArgs& layer, int max_slices);
int64_t gdn_scratch_floats(const GdnArgs& layer, int max_rows, int max_prefill_slices);

// out and the recurrent states of every slice; inputs are recorded where a slice has a replay. A slice without tokens
// is left alone.
Status gdn_mix(const Stream& stream, const GdnArgs& args);

// Advances one layer's part of `recurrent` over n_tokens recorded inputs, bit for bit as decode-class slices did.
// Of the args, weights, sizes, offsets and arrivals are used. `recorded` is the first token's record.
Status gdn_replay(const Stream& stream, const GdnArgs& args, float* recurrent, const float* recorded, int n_tokens);

}  // namespace chimere::cuda
