// attention_tiles.h  Tiles of keys and values in shared memory, as tensor cores need them.
//
// A tile is [kTileTokens][D] halves; the 16-byte chunks of a row are permuted by chunk ^ (row % 8), so that ldmatrix,
// which reads the same chunk of eight rows, hits eight different groups of banks. f16 rows are copied straight to
// their place by cp.async; quantised rows arrive as bytes and are then decoded to a second place. Rows past the end of
// the context are zeros: a weight of zero times what lies there must not be NaN.
#pragma once

#include "backend/cuda/kernels/attention/attention_device.h"
#include "backend/cuda/kernels/common/half_tiles.h"

namespace chimere::cuda::attention_detail {

using half_tiles::tile_offset;

inline constexpr int kTileTokens = 32;

// Where things lie in dynamic shared memory, in bytes: queries, decoded tiles, then stages of [keys | values].
template <int D>
struct TileMemory {
  static constexpr int kTileBytes = kTileTokens * D * 2;
  int queries, k_decoded, v_decoded, stages;
  int k_stage, v_stage;

  __host__ __device__ TileMemory(const AttentionArgs& p, int query_rows) {
    const bool k_raw = p.k_type != DType::F16, v_raw = p.v_type != DType::F16;
    queries = 0;
    k_decoded = query_rows * D * 2;
    v_decoded = k_decoded + (k_raw ? kTileBytes : 0);
    stages = v_decoded + (v_raw ? kTileBytes : 0);
    k_stage = k_raw ? kTileTokens * static_cast<int>(p.k_row_bytes) : kTileBytes;
    v_stage = v_raw ? kTileTokens * static_cast<int>(p.v_row_bytes) : kTileBytes;
  }
  __host__ __device__ int bytes(int n_stages) const { return stages + n_stages * (k_stage + v_stage); }
};

__device__ __forceinline__ __half2 as_halves(uint32_t bits) {
  __half2 h;
  memcpy(&h, &bits, sizeof(h));
  return h;
}

// Two codes as halves: under the exponent of 1024 a byte is an integer, which leaves with the bias. Conversions proper
// run at a quarter of the speed. The product is rounded once, as in floats.
__device__ __forceinline__ uint32_t scaled_pair(uint32_t codes, uint32_t bias, __half2 scale) {
  const __half2 h = __hmul2(__hsub2(as_halves(codes), as_halves(bias)), scale);
  uint32_t bits;
  memcpy(&bits, &h, sizeof(bits));
  return bits;
}

// Starts copying a tile's rows; the first `valid` of them exist.
template <int D, int kThreads>
__device__ __forceinline__ void issue_rows(DType type, const std::byte* rows, int row_bytes, int valid, std::byte* to,
                                           int tid) {
  if (type == DType::F16) {
    for (int i = tid; i < kTileTokens * D / 8; i += kThreads) {
      const int row = i / (D / 8), chunk = i % (D / 8);
      simt::cp_async16(to + tile_offset<D>(row, chunk), rows + row * (D * 2) + chunk * 16, row < valid);
    }
  } else {
    for (int i = tid * 16; i < kTileTokens * row_bytes; i += kThreads * 16) simt::cp_async16(to + i, rows + i);
  }
}

// Decodes kTokens rows that came as bytes.
template <int D, int kTokens, int kThreads>
__device__ __forceinline__ void decode_rows(DType type, const std::byte* raw, int row_bytes, int valid, std::byte* to,
                                            int tid) {
  for (int i = tid; i < kTokens * D / 8; i += kThreads) {
    const int row = i / (D / 8), chunk = i % (D / 8), part = chunk % 4;
    uint4 packed = make_uint4(0, 0, 0, 0);
    if (row < valid) {
      const std::byte* block = raw + row * row_bytes + chunk / 4 * (type == DType::Q8_0 ? 34 : 18);
      const __half2 scale = __half2half2(*reinterpret_cast<const __half*>(block));
      const bool bytes = type == DType::Q8_0;
      const uint16_t* codes = reinterpret_cast<const uint16_t*>(block + 2) + (bytes ? part : part % 2) * 4;
      uint32_t low = codes[0] | static_cast<uint32_t>(codes[1]) << 16;
      uint32_t high = codes[2] | static_cast<uint32_t>(codes[3]) << 16;
      uint32_t bias = 0x64806480u;  // 1024 + 128
      if (bytes) {
        low ^= 0x80808080u;
        high ^= 0x80808080u;
      } else {
        const int shift = part / 2 * 4;
        low = low >> shift & 0x0F0F0F0Fu;
        high = high >> shift & 0x0F0F0F0Fu;
        bias = 0x64086408u;  // 1024 + 8
      }
      packed = make_uint4(scaled_pair(__byte_perm(low, 0x64646464u, 0x4140), bias, scale),
                          scaled_pair(__byte_perm(low, 0x64646464u, 0x4342), bias, scale),
                          scaled_pair(__byte_perm(high, 0x64646464u, 0x4140), bias, scale),
                          scaled_pair(__byte_perm(high, 0x64646464u, 0x4342), bias, scale));
    }
    *reinterpret_cast<uint4*>(to + tile_offset<D>(row, chunk)) = packed;
  }
}

// The tiles of one KV head of one slice, kStages of them in flight, for a block of kThreads.
template <int D, int kStages, int kThreads>
struct Tiles {
  const AttentionArgs& p;
  const DeviceSlice& slice;
  int kv_head;
  TileMemory<D> memory;
  std::byte* shared;
  int tid;

  __device__ std::byte* stage(int i) const {
    return shared + memory.stages + i % kStages * (memory.k_stage + memory.v_stage);
  }
  // Starts copying the tile of positions first .. first + kTileTokens, of which those before `end` exist.
  __device__ void issue(int i, int first, int end) const {
    const int in_page = first % kPageTokens, valid = end - first;
    issue_rows<D, kThreads>(p.k_type, k_page(p, slice, first, kv_head) + in_page * p.k_row_bytes,
                            static_cast<int>(p.k_row_bytes), valid, stage(i), tid);
    issue_rows<D, kThreads>(p.v_type, v_page(p, slice, first, kv_head) + in_page * p.v_row_bytes,
                            static_cast<int>(p.v_row_bytes), valid, stage(i) + memory.k_stage, tid);
  }
  // Decodes a tile that has arrived, where it needs to be. By the whole block, with a barrier if there was need.
  __device__ void decode(int i, int first, int end) const {
    const bool k_raw = p.k_type != DType::F16, v_raw = p.v_type != DType::F16;
    if (k_raw) {
      decode_rows<D, kTileTokens, kThreads>(p.k_type, stage(i), static_cast<int>(p.k_row_bytes), end - first,
                                            shared + memory.k_decoded, tid);
    }
    if (v_raw) {
      decode_rows<D, kTileTokens, kThreads>(p.v_type, stage(i) + memory.k_stage, static_cast<int>(p.v_row_bytes),
                                            end - first, shared + memory.v_decoded, tid);
    }
    if (k_raw || v_raw) __syncthreads();
  }
  __device__ const std::byte* keys(int i) const {
    return p.k_type != DType::F16 ? shared + memory.k_decoded : stage(i);
  }
  __device__ const std::byte* values(int i) const {
    return p.v_type != DType::F16 ? shared + memory.v_decoded : stage(i) + memory.k_stage;
  }
};

}  // namespace chimere::cuda::attention_detail
