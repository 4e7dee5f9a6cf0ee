// mamba1.h  Mamba-1 on the device: op::CausalConv and op::SelectiveScan, for all slices of a pass at once.
#pragma once

#include <cstdint>

#include "backend/cuda/batch_view.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// All pointers are device memory. Rows of one buffer are `*_stride` floats apart.
struct CausalConvArgs {
  BatchView batch = {};
  const float* in = nullptr;  // [n_rows][>= channels]
  int64_t in_stride = 0;
  const float* conv = nullptr;  // [channels][taps]
  const float* bias = nullptr;  // [channels] or null
  int channels = 0, taps = 0;
  int64_t conv_offset = 0;  // of this layer in the recurrent blob, in floats
  int64_t replay_offset = 0, replay_stride = 0;
  float* out = nullptr;  // [n_rows][channels]
  int64_t out_stride = 0;
  bool dependent = false;
};

// out = silu(conv), and the window of every slice moves on; inputs are recorded where a slice has a replay.
Status causal_conv(const Stream& stream, const CausalConvArgs& args);
Status causal_conv_replay(const Stream& stream, const CausalConvArgs& args, float* recurrent, const float* recorded,
                          int n_tokens);

struct SelectiveScanArgs {
  BatchView batch = {};
  const float* x = nullptr;  // [n_rows][channels]
  const float* dt = nullptr;
  int64_t x_stride = 0, dt_stride = 0;
  const float *b = nullptr, *c = nullptr;  // [n_rows][d_state]
  int64_t b_stride = 0, c_stride = 0;
  const float* z = nullptr;  // [n_rows][channels]
  int64_t z_stride = 0;
  const float* a = nullptr;                          // [channels][d_state]
  const float* d = nullptr;                          // [channels]
  const float *b_norm = nullptr, *c_norm = nullptr;  // [d_state] or null
  float eps = 0;
  int channels = 0, d_state = 0;
  int64_t matrix_offset = 0;  // of this layer in the recurrent blob, in floats
  int64_t replay_offset = 0;  // of what the scan records, behind the conv's input
  int64_t replay_stride = 0;
  float* out = nullptr;  // [n_rows][channels]
  int64_t out_stride = 0;
  bool dependent = false;
};

Status selective_scan(const Stream& stream, const SelectiveScanArgs& args);
Status selective_scan_replay(const Stream& stream, const SelectiveScanArgs& args, float* recurrent,
                             const float* recorded, int n_tokens);

}  // namespace chimere::cuda
