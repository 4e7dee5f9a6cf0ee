// gemm_exact.cu   The products of gemm.cu in f32 throughout: router logits, --exact, and any size
// Shapes    x [rows, width] f32; W of any format, mixed in one launch; out f32; any rows, outputs, widths
// Bytes     as gemm.cu, x in f32
// Launch    grid (row tiles, column tiles). Tiles of 64 x 64, 32 columns a stage: block 256, 4 x 4 outputs a thread.
//           Tiles of 32 x 16, 64 columns a stage: block 128, 2 x 2 outputs a thread, for products with so few large
//           tiles that most SMs would idle: a router of 128 experts over 512 rows has 16
// Smem      18 KB, 15 KB
// Numerics  f32 fused multiply-add in the order of the columns, weights decoded exactly as tensor/dequantize does: a
//           row's bits depend neither on the tile size nor on the other rows
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/decode_group.h"
#include "backend/cuda/kernels/prefill/gemm_tile.h"

namespace chimere::cuda {
namespace {

constexpr int kFewTiles = 96;  // with fewer large tiles than this, small ones finish sooner

// In a stage columns are the outer index; the pitches keep stores and reads free of bank conflicts.
struct Large {
  static constexpr int kRows = kExactTile, kOutputs = kExactTile, kSide = 4, kColumns = 32;
  static constexpr int kXPitch = 72, kWPitch = 72;
};
struct Small {
  static constexpr int kRows = 32, kOutputs = 16, kSide = 2, kColumns = 64;
  static constexpr int kXPitch = 40, kWPitch = 20;
};
template <class Shape>
constexpr int kThreadsOf = Shape::kRows* Shape::kOutputs / (Shape::kSide * Shape::kSide);

// One column of the kSide rows of x, or of the kSide weight rows, whose products a thread has.
template <int kSide>
__device__ __forceinline__ void read_side(float (&to)[kSide], const float* from) {
  if constexpr (kSide == 4) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else {
    const float2 v = *reinterpret_cast<const float2*>(from);
    to[0] = v.x, to[1] = v.y;
  }
}

template <class Shape, bool kGated>
__global__ void __launch_bounds__(kThreadsOf<Shape>) exact_kernel(const __grid_constant__ TileJob job) {
  constexpr int kRows = Shape::kRows, kOutputs = Shape::kOutputs, kSide = Shape::kSide, kColumns = Shape::kColumns;
  constexpr int kThreads = kThreadsOf<Shape>;
  simt::allow_next();
  simt::wait_for_previous();
  SIMT_SHARED(float4, x_stage, kColumns * Shape::kXPitch / 4);
  SIMT_SHARED(float4, w_stage, kColumns * Shape::kWPitch / 4);
  float* x = reinterpret_cast<float*>(x_stage);
  float* w = reinterpret_cast<float*>(w_stage);
  Tile tile;
  if (!find_tile(job, blockIdx.x, kRows, tile)) return;
  const TileOutput& output = find_output(job, blockIdx.y);
  const int column_tile = static_cast<int>(blockIdx.y) - output.first_tile;
  const int tid = threadIdx.x;
  // Rows of the gate and of the up-projection alternate, so that a thread has both values of an output.
  const bool by_turns = kGated && job.up;
  const auto weight_row = [&](int o) {
    return by_turns ? column_tile * (kOutputs / 2) + o / 2 : column_tile * kOutputs + o;
  };

  // kXTurns threads share a row of x, and kWTurns a weight row: each takes every kXTurns-th or kWTurns-th column.
  constexpr int kXTurns = kThreads / kRows, kWTurns = kThreads / kOutputs;
  constexpr int kXEach = kColumns / kXTurns, kWEach = kColumns / kWTurns, kWGroup = kGroup / kWTurns;
  const int x_mine = tid / kXTurns, x_turn = tid % kXTurns, w_mine = tid / kWTurns, w_turn = tid % kWTurns;
  const float* x_row = x_mine < tile.n_rows ? job.exact + tile.input_row(job, x_mine) * job.width : nullptr;
  const Weight& weight = by_turns && w_mine % 2 == 1 ? job.up : output.weight;
  const bool in_matrix = weight_row(w_mine) < weight.rows;
  const uint8_t* w_row = weight.expert_row(tile.expert, in_matrix ? weight_row(w_mine) : 0);
  float next_x[kXEach], next_w[kWEach] = {};
  const auto fetch = [&](int step) {
#pragma unroll
    for (int i = 0; i < kXEach; ++i) {
      const int column = step * kColumns + kXTurns * i + x_turn;
      next_x[i] = x_row && column < job.width ? x_row[column] : 0.0f;
    }
    if (!in_matrix) return;
    if (weight.is_float()) {
#pragma unroll
      for (int i = 0; i < kWEach; ++i) {
        const int column = step * kColumns + kWTurns * i + w_turn;
        next_w[i] = column < job.width ? decode_float(weight.type, w_row, column) : 0.0f;
      }
      return;
    }
#pragma unroll
    for (int h = 0; h < kColumns / kGroup; ++h) {
      float values[kGroup] = {};
      const int g = step * (kColumns / kGroup) + h;
      if (g * kGroup < job.width) decode_group(weight, w_row, g, values);
#pragma unroll
      for (int i = 0; i < kWGroup; ++i) {
#pragma unroll
        for (int turn = 0; turn < kWTurns; ++turn) {
          if (turn == w_turn) next_w[h * kWGroup + i] = values[kWTurns * i + turn];
        }
      }
    }
  };

  float sums[kSide][kSide] = {};
  constexpr int kAcross = kOutputs / kSide;
  const int n_steps = simt::div_up(job.width, kColumns);
  fetch(0);
  for (int step = 0; step < n_steps; ++step) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kXEach; ++i) x[(kXTurns * i + x_turn) * Shape::kXPitch + x_mine] = next_x[i];
#pragma unroll
    for (int i = 0; i < kWEach; ++i) w[(kWTurns * i + w_turn) * Shape::kWPitch + w_mine] = next_w[i];
    __syncthreads();
    if (step + 1 < n_steps) fetch(step + 1);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      float a[kSide], b[kSide];
      read_side(a, x + c * Shape::kXPitch + tid / kAcross * kSide);
      read_side(b, w + c * Shape::kWPitch + tid % kAcross * kSide);
#pragma unroll
      for (int i = 0; i < kSide; ++i) {
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    const int r = tid / kAcross * kSide + i;
    if (r >= tile.n_rows) continue;
    const int64_t row = tile.output_row(job, r);
#pragma unroll
    for (int j = 0; j < kSide; ++j) {
      const int column = weight_row(tid % kAcross * kSide + j);
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

template <class Shape, bool kGated>
Status launch_exact(const Stream& stream, TileJob& job, int n_row_tiles) {
  int n_column_tiles = 0;
  for (int i = 0; i < job.n_outputs; ++i) {
    TileOutput& output = job.outputs[i];
    output.first_tile = n_column_tiles;
    n_column_tiles += simt::div_up(output.weight.rows, kGated && job.up ? Shape::kOutputs / 2 : Shape::kOutputs);
  }
  return simt::launch(exact_kernel<Shape, kGated>,
                      {dim3(static_cast<unsigned>(n_row_tiles), static_cast<unsigned>(n_column_tiles)),
                       dim3(static_cast<unsigned>(kThreadsOf<Shape>)), 0, stream, true},
                      job);
}

}  // namespace

Status exact_product(const Stream& stream, TileJob job, int n_row_tiles, bool gated) {
  if (gated) return launch_exact<Large, true>(stream, job, n_row_tiles);
  int n_tiles = 0;
  for (int i = 0; i < job.n_outputs; ++i) {
    n_tiles += n_row_tiles * simt::div_up(job.outputs[i].weight.rows, Large::kOutputs);
  }
  // The experts' plan is made for large tiles.
  if (job.pairs || n_tiles >= kFewTiles) return launch_exact<Large, false>(stream, job, n_row_tiles);
  return launch_exact<Small, false>(stream, job, simt::div_up(job.n_rows, Small::kRows));
}

}  // namespace chimere::cuda
