// row_maker.h  In the staged kernels of a few rows: their records, made by a block for itself.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/dot_device.h"

namespace chimere::cuda {

// Records of a few rows, made by all warps of a block: each half of them makes every second row, as kDotThreads threads
// do (dot_device.h), and loads a chunk of a row while it quantises the one before.
struct RowMaker {
  static constexpr int kPieces = 2, kChunk = kPieces * kDotThreads;  // of float4
  static_assert(kOneThreads == 2 * kDotThreads);

  struct Chunk {
    float4 v[kPieces];
    float squares;
  };

  const InputRows& in;
  int n4 = in.width / 4, warp = simt::warp_id() % kDotWarps, thread = simt::thread_id() % kDotThreads;
  float4 norm[kPieces];  // the norm's weights for the first chunk: loaded before the rows are there

  __device__ __forceinline__ explicit RowMaker(const InputRows& in) : in(in) {
#pragma unroll
    for (int j = 0; j < kPieces; ++j) norm[j] = load_norm(j * kDotThreads + thread);
  }
  __device__ __forceinline__ float4 load_norm(int i) const {
    return in.norm && i < n4 ? __ldg(reinterpret_cast<const float4*>(in.norm) + i) : make_float4(0, 0, 0, 0);
  }

  __device__ __forceinline__ Chunk load(int t, int base) const {
    const int64_t row = in.gather ? in.gather[t] : t;
    const auto* x4 = reinterpret_cast<const float4*>(in.x + row * in.width);
    Chunk c;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const int i = base + j * kDotThreads + thread;
      c.v[j] = i < n4 ? x4[i] : make_float4(0, 0, 0, 0);
    }
    c.squares = 0.0f;
    if (in.head_squares) {
      const int n = in.width / kSquaresColumns, piece = (base + simt::lane_id() / 4 * kDotThreads) / 32 + warp;
      c.squares = quarter_of_squares(in.head_squares + row * n, n, piece, in.head_width);
    }
    return c;
  }

  __device__ __forceinline__ void quantise(const Chunk& c, int base, uint8_t* record) const {
    const float inverses = in.head_squares ? head_inverse(c.squares, in.head_width, in.eps) : 1.0f;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const int i = base + j * kDotThreads + thread;
      if (i - simt::lane_id() >= n4) break;
      float4 v = c.v[j];
      if (in.norm) v = times_each(v, base == 0 ? norm[j] : load_norm(i));
      if (in.head_squares) v = times_all(v, __shfl_sync(simt::kAllLanes, inverses, 4 * j + simt::lane_id() / 8));
      quantise_quad(v, static_cast<uint32_t>(i), i < n4, row_groups(in.width), record);
    }
  }

  // All threads; a barrier has to follow. row_inverse() then gives 1 / rms.
  __device__ __forceinline__ void make(int n_rows, uint8_t* records) const {
    const uint32_t bytes = record_bytes(in.width);
    int t = simt::warp_id() / kDotWarps, base = 0;
    if (t >= n_rows) return;
    Chunk next = load(t, base);
    float sum = 0.0f;
#pragma unroll 1
    while (t < n_rows) {
      const Chunk here = next;
      uint8_t* record = records + static_cast<uint32_t>(t) * bytes;
      const int at = base;
      base += kChunk;
      const bool ends = base >= n4;
      if (ends) {
        base = 0;
        t += 2;
      }
      if (t < n_rows) next = load(t, base);
      quantise(here, at, record);
      if (!in.norm) continue;
#pragma unroll
      for (int j = 0; j < kPieces; ++j) sum = square_sum(here.v[j], sum);
      if (!ends) continue;
      sum = simt::warp_sum(sum);
      if (simt::lane_id() == 0) reinterpret_cast<float*>(record + record_squares_offset(in.width))[warp] = sum;
      sum = 0.0f;
    }
  }
};

}  // namespace chimere::cuda
