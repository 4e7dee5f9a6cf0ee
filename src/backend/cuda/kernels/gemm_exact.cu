// gemm_exact.cu   The products of gemm.cu in float32 throughout: router logits, --exact, and any size
// Shapes    x [rows, width] f32; W of any type, mixed in one launch; out f32; any rows, outputs, widths
// Bytes     as gemm.cu, x in floats
// Launch    grid (row tiles of 64, column tiles of 64), block 256: 4 x 4 outputs a thread, 32 columns a stage
// Smem      18 KB
// Numerics  f32 fused multiply-add in the order of the columns, weights decoded exactly as tensor/dequantize does
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/decode_group.h"
#include "backend/cuda/kernels/gemm_tile.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRows = kExactTile;
constexpr int kOutputs = kExactTile;
constexpr int kPitch = 72;  // columns are the outer index; 72 = 8 mod 32 keeps both stores and reads free of conflicts
constexpr int kPerThread = kRows * kGroup / kThreads;

template <bool kGated>
__global__ void __launch_bounds__(kThreads) exact_kernel(const __grid_constant__ TileJob job) {
  simt::allow_next();
  simt::wait_for_previous();
  SIMT_SHARED(float4, x_stage, kGroup * kPitch / 4);
  SIMT_SHARED(float4, w_stage, kGroup * kPitch / 4);
  float* x = reinterpret_cast<float*>(x_stage);
  float* w = reinterpret_cast<float*>(w_stage);
  Tile tile;
  if (!find_tile(job, blockIdx.x, kRows, tile)) return;
  const TileOutput& output = find_output(job, blockIdx.y);
  const int column_tile = static_cast<int>(blockIdx.y) - output.first_tile;
  const int tid = threadIdx.x;
  // Gate and up take turns, so that a thread has both of an output.
  const bool by_turns = kGated && job.up;
  const auto weight_row = [&](int o) {
    return by_turns ? column_tile * (kOutputs / 2) + o / 2 : column_tile * kOutputs + o;
  };

  // A thread brings every fourth column of one row of x and of one row of weights.
  const int mine = tid / 4, quarter = tid % 4;
  const float* x_row = mine < tile.n_rows ? job.exact + tile.input_row(job, mine) * job.width : nullptr;
  const Weight& weight = by_turns && mine % 2 == 1 ? job.up : output.weight;
  const bool in_matrix = weight_row(mine) < weight.rows;
  const uint8_t* w_row = weight.row(tile.expert, in_matrix ? weight_row(mine) : 0);
  float next_x[kPerThread], next_w[kPerThread] = {};
  const auto fetch = [&](int g) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const int column = g * kGroup + 4 * i + quarter;
      next_x[i] = x_row && column < job.width ? x_row[column] : 0.0f;
    }
    if (!in_matrix) return;
    if (weight.is_float()) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        const int column = g * kGroup + 4 * i + quarter;
        next_w[i] = column < job.width ? decode_float(weight.type, w_row, column) : 0.0f;
      }
    } else {
      float values[kGroup];
      decode_group(weight, w_row, g, values);
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        next_w[i] = quarter < 2 ? (quarter == 0 ? values[4 * i] : values[4 * i + 1])
                                : (quarter == 2 ? values[4 * i + 2] : values[4 * i + 3]);
      }
    }
  };

  float sums[4][4] = {};
  const int n_groups = simt::div_up(job.width, kGroup);
  fetch(0);
  for (int g = 0; g < n_groups; ++g) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      x[(4 * i + quarter) * kPitch + mine] = next_x[i];
      w[(4 * i + quarter) * kPitch + mine] = next_w[i];
    }
    __syncthreads();
    if (g + 1 < n_groups) fetch(g + 1);
#pragma unroll
    for (int c = 0; c < kGroup; ++c) {
      const float4 a4 = x_stage[(c * kPitch) / 4 + tid / 16], b4 = w_stage[(c * kPitch) / 4 + tid % 16];
      const float a[4] = {a4.x, a4.y, a4.z, a4.w}, b[4] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int r = tid / 16 * 4 + i;
    if (r >= tile.n_rows) continue;
    const int64_t row = tile.output_row(job, r);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = weight_row(tid % 16 * 4 + j);
      if (column >= output.weight.rows || (by_turns && j % 2 == 1)) continue;
      const int64_t of_expert = static_cast<int64_t>(tile.expert) * output.weight.rows + column;
      const float value = sums[i][j] + (output.bias ? output.bias[of_expert] : 0.0f);
      if constexpr (kGated) {
        const float up = by_turns ? sums[i][j | 1] + (job.up_bias ? job.up_bias[of_expert] : 0.0f) : value;
        job.hidden.exact[row * output.weight.rows + column] = activated(job.activation, value, up);
      } else {
        float& out = output.out[row * output.stride + column];
        out = output.add ? fmaf(value, output.scale, out) : value * output.scale;
      }
    }
  }
}

}  // namespace

Status exact_product(const Stream& stream, const TileJob& job, int n_row_tiles, bool gated) {
  int n_column_tiles = 0;
  for (int i = 0; i < job.n_outputs; ++i) {
    n_column_tiles += simt::div_up(job.outputs[i].weight.rows, gated && job.up ? kOutputs / 2 : kOutputs);
  }
  const simt::Launch at{dim3(static_cast<unsigned>(n_row_tiles), static_cast<unsigned>(n_column_tiles)), dim3(kThreads),
                        0, stream, true};
  return gated ? simt::launch(exact_kernel<true>, at, job) : simt::launch(exact_kernel<false>, at, job);
}

}  // namespace chimere::cuda
