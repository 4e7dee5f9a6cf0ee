// host_rows.h  Copies rows to the host's pinned memory and reads results back, through addresses both sides use.
#pragma once

#include <cstdint>

#include "backend/cuda/runtime/host_lane.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// Rows, or RMSNorm(row) * norm, the experts they chose and their weights, to pinned memory. Then it rings, a block a
// row.
struct HandOverArgs {
  const float* x;     // [n_rows, width]
  const float* norm;  // [width] or null
  float eps;
  const int32_t* ids;    // [n_rows, n_used]
  const float* weights;  // [n_rows, n_used], rows weights_stride apart
  int weights_stride;
  int n_rows, width, n_used;
  float* host_x;  // the same three, dense
  int32_t* host_ids;
  float* host_weights;
  HostBell bell;
};
Status hand_over(const Stream& stream, const HandOverArgs& args);

// out[t] (+)= scale (host_sums[t] + shared_gate[t gate_stride] shared[t]), when the host has done its work.
struct TakeBackArgs {
  const float* host_sums = nullptr;    // [n_rows, width], pinned
  const float* shared = nullptr;       // [n_rows, width] or null
  const float* shared_gate = nullptr;  // or null: 1
  int gate_stride = 1;
  float* out;  // [n_rows, width]
  int n_rows, width;
  bool add = true;
  float scale = 1;
  HostBell bell = {};
};
Status take_back(const Stream& stream, const TakeBackArgs& args);

}  // namespace chimere::cuda
