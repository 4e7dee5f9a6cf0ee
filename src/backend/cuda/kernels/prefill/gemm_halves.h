// gemm_halves.h  What the tensor-core kernels share: the scale of weights in f16, and how a warp stores its sums.
#pragma once

#include <cstring>

#include "backend/cuda/kernels/prefill/gemm_tile.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

// Of a thread block: 32 for each of warps 0 to 3; warps 4 to 7, where there are any, have the same outputs of other
// rows.
inline constexpr int kTileOutputs = 128;
inline constexpr float kWeightScale = 256.0f;  // of weights in f16
inline constexpr float kLargestHalf = 65504.0f;

__device__ __forceinline__ __half2 as_half2(uint32_t bits) {
  __half2 h;
  memcpy(&h, &bits, 4);
  return h;
}
__device__ __forceinline__ uint32_t as_bits(__half2 h) {
  uint32_t bits;
  memcpy(&bits, &h, 4);
  return bits;
}

// Stores two neighbouring outputs, at once where an even stride keeps them aligned.
__device__ __forceinline__ void store_pair(const TileOutput& output, float* out, int column, float first, float second,
                                           int expert) {
  const bool both = column + 1 < output.weight.rows;
  if (column >= output.weight.rows) return;
  if (output.bias) {
    const float* bias = output.bias + static_cast<int64_t>(expert) * output.weight.rows + column;
    first += bias[0];
    if (both) second += bias[1];
  }
  first *= output.scale;
  second *= output.scale;
  if (both && output.stride % 2 == 0) {
    float2* pair = reinterpret_cast<float2*>(out + column);
    if (output.add) {
      const float2 old = *pair;
      first += old.x;
      second += old.y;
    }
    *pair = make_float2(first, second);
    return;
  }
  out[column] = output.add ? out[column] + first : first;
  if (both) out[column + 1] = output.add ? out[column + 1] + second : second;
}

// Stores a warp's 16 rows of 32 outputs. Eight outputs of the gate projection and the same eight of the up-projection
// alternate, so that a thread has both values of an output.
template <bool kGated>
__device__ __forceinline__ void store_band(const TileJob& job, const TileOutput& output, const Tile& tile,
                                           int column_tile, int first_row, const float (&sums)[4][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool by_turns = kGated && job.up;
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    const int r = first_row + 8 * upper + lane / 4;
    if (r >= tile.n_rows) continue;
    const float scale = job.half.scale[tile.input_row(job, r)] * (1.0f / kWeightScale);
    const int64_t row = tile.output_row(job, r);
    if constexpr (kGated) {
      __half* hidden = reinterpret_cast<__half*>(job.hidden.half.data) + row * job.hidden.half.stride;
      const int64_t of_expert = static_cast<int64_t>(tile.expert) * output.weight.rows;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (by_turns && n % 2 == 1) continue;
        const int column = by_turns ? column_tile * (kTileOutputs / 2) + warp % 4 * 16 + n / 2 * 8 + lane % 4 * 2
                                    : column_tile * kTileOutputs + warp % 4 * 32 + n * 8 + lane % 4 * 2;
        float value[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const auto bias = [&](const float* of) {
            return of && column + i < output.weight.rows ? of[of_expert + column + i] : 0.0f;
          };
          const float gate = fmaf(sums[n][2 * upper + i], scale, bias(output.bias));
          const float up = by_turns ? fmaf(sums[n | 1][2 * upper + i], scale, bias(job.up_bias)) : gate;
          const float x = activated(job.activation, gate, up);
          value[i] = fminf(fmaxf(x * (1.0f / kHiddenScale), -kLargestHalf), kLargestHalf);
          // The padding of a row is zeros.
          if (column + i >= output.weight.rows) value[i] = 0.0f;
        }
        if (column < job.hidden.half.stride) {
          *reinterpret_cast<__half2*>(hidden + column) = __floats2half2_rn(value[0], value[1]);
        }
      }
      if (column_tile == 0 && warp % 4 == 0 && lane % 4 == 0) job.hidden.half.scale[row] = kHiddenScale;
    } else {
      float* out = output.out + row * output.stride;
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int column = column_tile * kTileOutputs + warp % 4 * 32 + n * 8 + lane % 4 * 2;
        store_pair(output, out, column, sums[n][2 * upper] * scale, sums[n][2 * upper + 1] * scale, tile.expert);
      }
    }
  }
}

// gemm_few.cu. REQUIRES: row tiles of kFewRows, all weights Q4_0, no gates.
inline constexpr int kFewRows = 64;
Status few_rows_product(const Stream& stream, const TileJob& job, int n_row_tiles, int n_column_tiles, bool gated);

}  // namespace chimere::cuda
