// mamba2.h  Mamba-2 on the device: op::Mamba2Mix, for all slices of a pass at once.
//
// Both classes run the recurrence token by token with the state in registers: a state has no sums across its rows
// before the output, so tokens follow one another without a barrier, and a prompt costs no more in order than in
// chunks. The gated norm of a group needs several blocks' outputs: in decode passes it is left to the reader where that
// can divide, else a separate launch does it.
#pragma once

#include <cstdint>

#include "backend/cuda/batch_view.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// All pointers are device memory. Rows of one buffer are `*_stride` floats apart.
struct Mamba2Args {
  BatchView batch = {};
  const float* z = nullptr;                                    // [n_rows][d_inner]
  const float* xbc = nullptr;                                  // [n_rows][channels]: x, then B and C of every group
  const float* dt = nullptr;                                   // [n_rows][n_heads]
  int64_t in_stride = 0;                                       // of the three
  const float* conv = nullptr;                                 // [channels][taps]
  const float* conv_bias = nullptr;                            // [channels] or null
  const float *a = nullptr, *d = nullptr, *dt_bias = nullptr;  // [n_heads]
  const float* norm = nullptr;                                 // [d_inner] or null
  float eps = 0;
  int n_heads = 0, d_head = 0, n_groups = 0, d_state = 0;
  int taps = 0;               // of the conv: inputs remembered + 1
  int64_t conv_offset = 0;    // of this layer in the recurrent blob, in floats
  int64_t matrix_offset = 0;  // likewise
  int64_t replay_offset = 0;  // of this layer in a token's record
  int64_t replay_stride = 0;  // floats of a token's record
  float* out = nullptr;       // [n_rows][d_inner]
  int64_t out_stride = 0;
  // mamba2_arrivals() counters, zero before the first call and again after each.
  int32_t* arrivals = nullptr;
  // mamba2_scratch_floats() floats: of decode passes the sums of squares of each 32 columns of out before the norm's
  // weights, [n_rows][d_inner / 32].
  float* scratch = nullptr;
  bool is_decode = true;    // all slices are of the decode class
  int max_tokens = 16;      // bound of a slice; of the decode class, at most 16
  bool leave_norm = false;  // mamba2_can_leave_norm(): rows of decode passes are left without 1 / rms (head_squares.h)
  bool dependent = false;   // launch as a programmatic dependent of the kernel before

  constexpr int d_inner() const { return n_heads * d_head; }
  constexpr int channels() const { return d_inner() + 2 * n_groups * d_state; }
  constexpr int group_width() const { return d_inner() / n_groups; }  // that a norm is over
};

// Whether whoever reads out of a decode pass may be asked to multiply by 1 / rms of each group. If not, out is finished
// here.
bool mamba2_can_leave_norm(const Mamba2Args& layer);

// Sizes of the working memory that a layer needs for the largest pass.
int64_t mamba2_arrivals(const Mamba2Args& layer, int max_slices);
int64_t mamba2_scratch_floats(const Mamba2Args& layer, int max_decode_rows);

// What a pass moves at least: for benches and profiles.
uint64_t mamba2_bytes(const Mamba2Args& layer, int n_slices, int n_rows);

// out and the recurrent states of every slice; inputs are recorded where a slice has a replay. A slice without tokens
// is left alone.
Status mamba2_mix(const Stream& stream, const Mamba2Args& args);

// Advances one layer's part of `recurrent` over n_tokens recorded inputs, bit for bit as decode-class slices did.
Status mamba2_replay(const Stream& stream, const Mamba2Args& args, float* recurrent, const float* recorded,
                     int n_tokens);

}  // namespace chimere::cuda
