// gemm_few.cu   The products of gemm.cu in tiles of few rows: Q4_0, unpacked in registers into the fragments of mma
// Shapes    as gemm.cu in tiles of 64 rows, for experts or one matrix; W Q4_0, no gate projection
// Bytes     W once per row tile, x once per column tile, out once. Nemotron-3-Nano, 512 tokens: 24 rows per expert on
//           average, 360 MB of 128 experts in a product; [2688, 4096]: 168 tiles of 64 rows
// Launch    grid (row tiles, column tiles), block 128 = 4 warps, each 32 outputs of all rows; 128 columns a stage
// Smem      32 KB of x in two stages
// Numerics  as gemm.cu, bit for bit: the same f16 values in the same elements of the same fragments
// Method    a tile of weights is multiplied with one to four bands of 16 rows only, so that shared memory, a store and
//           two loads of every unpacked weight, would cost more than the products. Here four lanes load the four groups
//           of one row of a stage, 64 neighbouring bytes, while the tensor cores work on the stage before. They
//           exchange words by shuffles until each has those bytes of all four groups that belong to its elements of
//           fragments, and unpack them in registers. Only x goes through shared memory, and only bands that have rows.
// Measured  H200, Nemotron-3-Nano, prompts of 512 tokens: 17,270 tok/s without it, 17,930 with it for experts, 19,270
//           for all products of that size
// Rejected  tiles of 32 rows (experts of more unpack their weights twice)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/half_tiles.h"
#include "backend/cuda/kernels/prefill/gemm_halves.h"
#include "backend/cuda/weights/formats.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kColumns = 128;          // of a stage: four groups
constexpr int kChunks = kColumns / 8;  // of 16 bytes in a row of a stage
constexpr int kBands = kFewRows / 16;
constexpr int kEights = 4;  // a warp's 32 outputs, by eights
static_assert(kThreads / 32 * kEights * 8 == kTileOutputs);
static_assert(kThreads / kChunks == 8);  // rows of x that are copied at once

struct Stages {
  __half x[2][kFewRows * kColumns];
  const uint16_t* rows[kFewRows];  // of x, null beyond the tile
  Tile tile;                       // kept here for the stores at the end: the loop needs the registers
};

// Transposes the words of four neighbouring lanes: words[i] of lane t becomes words[t] of lane i.
__device__ __forceinline__ void trade(uint32_t (&words)[4]) {
  const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(simt::kAllLanes, odd ? words[i] : words[i + 1], 1);
    words[i] = odd ? got : words[i];
    words[i + 1] = odd ? words[i + 1] : got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t got = __shfl_xor_sync(simt::kAllLanes, upper ? words[i] : words[i + 2], 2);
    words[i] = upper ? got : words[i];
    words[i + 2] = upper ? words[i + 2] : got;
  }
}

// Lane t's bytes of a group, 2t, 2t + 8, 2t + 1 and 2t + 9, for all four t. Low nibbles are elements 0 to 15 of the
// group, high ones 16 to 31.
__device__ __forceinline__ void split_by_lane(const Words4& codes, uint32_t (&words)[4]) {
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    words[t] = pick_bytes(codes.w[t / 2], codes.w[2 + t / 2], t % 2 == 0 ? 0x5140u : 0x7362u);
  }
}

// The lane's f16 values, two in a register: first and second register of the fragment of elements 0 to 15 of a group,
// then of that of 16 to 31.
__device__ __forceinline__ void unpack(uint32_t word, __half2 scale, uint32_t (&pairs)[4]) {
  const __half2 offset = as_half2(0x64806480u);  // 1024 + 128
  const uint32_t nibbles[4] = {word << 4, word >> 4, word, word >> 8};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half2 q = __hsub2(as_half2((nibbles[i] & 0x00F000F0u) ^ 0x64806480u), offset);
    pairs[i] = as_bits(__hmul2(q, scale));
  }
}

template <bool kGated>
__global__ void __launch_bounds__(kThreads, 3) few_rows_kernel(const __grid_constant__ TileJob job) {
  auto& stages = *simt::dynamic_shared<Stages>();
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  simt::allow_next();
  simt::wait_for_previous();
  Tile tile;
  if (!find_tile(job, blockIdx.x, kFewRows, tile)) return;
  const TileOutput& output = find_output(job, blockIdx.y);
  const int column_tile = static_cast<int>(blockIdx.y) - output.first_tile;
  const int n_groups = job.width / kGroup;
  const int n_steps = simt::div_up(n_groups, 4);
  const int n_bands = simt::div_up(tile.n_rows, 16);
  if (tid == 0) stages.tile = tile;
  if (tid < kFewRows) {
    stages.rows[tid] = tid < tile.n_rows ? job.half.data + tile.input_row(job, tid) * job.half.stride : nullptr;
  }
  __syncthreads();

  const auto fetch_x = [&](int step) {
    std::byte* to = reinterpret_cast<std::byte*>(stages.x[step % 2]);
    const int chunk = tid % kChunks, column = step * kColumns + chunk * 8;
    for (int m = 0; m < n_bands; ++m) {
      // Both rows are looked up first: the compiler moves no load ahead of an asynchronous copy.
      const int r = 16 * m + tid / kChunks;
      const uint16_t* from[2] = {stages.rows[r], stages.rows[r + 8]};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool present = from[i] && column < job.half.stride;
        simt::cp_async16(to + half_tiles::tile_offset<kColumns>(r + 8 * i, chunk),
                         present ? from[i] + column : job.half.data, present);
      }
    }
    simt::cp_async_commit();
  };
  // In place of rows beyond the matrix its first one is loaded; their results are not stored.
  const uint8_t* packed = output.weight.expert_row(tile.expert, 0);
  uint32_t row_at[kEights];
#pragma unroll
  for (int n = 0; n < kEights; ++n) {
    const int row = column_tile * kTileOutputs + warp * 32 + n * 8 + lane / 4;
    row_at[n] = row < output.weight.rows ? static_cast<uint32_t>(row) * output.weight.row_bytes : 0;
  }
  format::Q4_0::Raw raw[kEights];
  const auto fetch_w = [&](int step) {
    const auto g = static_cast<uint32_t>(min(4 * step + lane % 4, n_groups - 1));
#pragma unroll
    for (int n = 0; n < kEights; ++n)
      raw[n] = format::Q4_0::load(packed + row_at[n], static_cast<uint32_t>(n_groups), g);
  };

  float sums[kBands][kEights][4] = {};
  fetch_w(0);
  fetch_x(0);
  for (int step = 0; step < n_steps; ++step) {
    simt::cp_async_wait<0>();
    __syncthreads();
    uint32_t words[kEights][4], scales[kEights];
#pragma unroll
    for (int n = 0; n < kEights; ++n) {
      split_by_lane(raw[n].a, words[n]);
      trade(words[n]);
      scales[n] = as_bits(__float2half2_rn(half_to_float(raw[n].d) * 0x1p-4f * kWeightScale));
    }
    if (step + 1 < n_steps) {
      fetch_w(step + 1);
      fetch_x(step + 1);
    }
    const std::byte* x = reinterpret_cast<const std::byte*>(stages.x[step % 2]);
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      if (4 * step + g >= n_groups) continue;
      uint32_t w[kEights][4];
#pragma unroll
      for (int n = 0; n < kEights; ++n) {
        unpack(words[n][g], as_half2(__shfl_sync(simt::kAllLanes, scales[n], g, 4)), w[n]);
      }
#pragma unroll
      for (int m = 0; m < kBands; ++m) {
        if (m >= n_bands) continue;  // the same for the whole block
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          uint32_t a[4];
          half_tiles::load_a<kColumns>(a, x, 16 * m, 2 * g + k, lane);
#pragma unroll
          for (int n = 0; n < kEights; ++n) {
            const uint32_t pair[2] = {w[n][2 * k], w[n][2 * k + 1]};
            simt::mma_f16(sums[m][n], a, pair);
          }
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kBands; ++m) store_band<kGated>(job, output, stages.tile, column_tile, 16 * m, sums[m]);
}

template <bool kGated>
Status launch(const Stream& stream, const TileJob& job, int n_row_tiles, int n_column_tiles) {
  return simt::launch(few_rows_kernel<kGated>,
                      {dim3(static_cast<unsigned>(n_row_tiles), static_cast<unsigned>(n_column_tiles)), dim3(kThreads),
                       sizeof(Stages), stream, true},
                      job);
}

}  // namespace

Status few_rows_product(const Stream& stream, const TileJob& job, int n_row_tiles, int n_column_tiles, bool gated) {
  return gated ? launch<true>(stream, job, n_row_tiles, n_column_tiles)
               : launch<false>(stream, job, n_row_tiles, n_column_tiles);
}

}  // namespace chimere::cuda
