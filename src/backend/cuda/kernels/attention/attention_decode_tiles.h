// attention_decode_tiles.h  Tiles of keys and values for the decode class, one page each: copies to shared memory, and
// products with them.
//
// A block has 16 query rows and takes one tile after another: scores, weights, outputs, with barriers between.
#pragma once

#include <algorithm>

#include "backend/cuda/kernels/attention/attention_heads.h"
#include "backend/cuda/kernels/attention/attention_tiles.h"

namespace chimere::cuda::attention_detail {

inline constexpr int kQueryRows = 16;
inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kStride = kPageTokens + 8;  // of scores and of weights: rows then start in different banks

// A tile is a page's rows of a head. Keys and values have kStages buffers each; quantised ones arrive as bytes and are
// decoded to a buffer that they share, keys before the scores, values before the outputs. Until there is anything to
// decode, that buffer holds what heads are prepared with. After the last scores, gates [kQueryRows][D] in floats take
// the place of queries and keys.
template <int D, bool kHalves>
struct DecodeMemory {
  static constexpr int kStages = D == 256 ? 1 : 2;
  static constexpr int kTileBytes = kPageTokens * D * 2;
  int k_stage, v_stage, keys, values, decoded;

  __host__ __device__ explicit DecodeMemory(const AttentionArgs& p) {
    k_stage = kHalves || p.k_type == DType::F16 ? kTileBytes : kPageTokens * static_cast<int>(p.k_row_bytes);
    v_stage = kHalves || p.v_type == DType::F16 ? kTileBytes : kPageTokens * static_cast<int>(p.v_row_bytes);
    keys = kQueryRows * D * 2;  // behind the queries
    values = keys + kStages * k_stage;
    decoded = values + kStages * v_stage;
  }
  static int bytes(const AttentionArgs& p) {
    return DecodeMemory(p).decoded +
           std::max(kHalves ? 0 : kTileBytes, HeadPreparation<D>::bytes(p, p.max_decode_tokens));
  }
};

// Starts copying the first `copied` rows of a tile; those from `existing` on become zeros, those between are written by
// others. Quantised rows are all copied: decoding makes the zeros.
template <int D, bool kHalves>
__device__ __forceinline__ void issue_tile(DType type, const std::byte* rows, int row_bytes, int copied, int existing,
                                           std::byte* to, int tid) {
  if (kHalves || type == DType::F16) {
    constexpr int kChunks = D / 8, kStep = kThreads / kChunks;
    static_assert(kStep % 8 == 0, "a thread's chunks lie at the same place of their rows");
    const int first = tid / kChunks, chunk = tid % kChunks;
    const std::byte* from = rows + first * (D * 2) + chunk * 16;
    to += tile_offset<D>(first, chunk);
#pragma unroll 1
    for (int row = first; row < kPageTokens; row += kStep, from += kStep * D * 2, to += kStep * D * 2) {
      if (row < copied || row >= existing) simt::cp_async16(to, from, row < copied);
    }
  } else {
    for (int i = tid * 16; i < kPageTokens * row_bytes; i += kThreads * 16) simt::cp_async16(to + i, rows + i);
  }
}

// The tiles of a split of one KV head: [begin, end) of the context, of which [new_begin, end) is new.
template <int D, bool kHalves>
struct SplitTiles {
  static constexpr int kStages = DecodeMemory<D, kHalves>::kStages;
  const AttentionArgs& p;
  DecodeMemory<D, kHalves> memory;
  std::byte* shared;
  int k_at, v_at;  // of the KV head inside a page
  int begin = 0, end = 0, new_begin;

  __device__ __forceinline__ SplitTiles(const AttentionArgs& args, std::byte* memory_begin, int kv_head, int pos)
      : p(args),
        memory(args),
        shared(memory_begin),
        k_at(static_cast<int>(args.k_offset + args.k_row_bytes * kPageTokens * kv_head)),
        v_at(static_cast<int>(args.v_offset + args.v_row_bytes * kPageTokens * kv_head)),
        new_begin(pos) {}

  // The split of `size` tokens from split_begin on, of a context of kv_len. Tiles before that of first_seen add
  // nothing.
  __device__ __forceinline__ void take(int split_begin, int size, int kv_len, int first_seen) {
    end = split_begin + size < kv_len ? split_begin + size : kv_len;
    const int lowest = first_seen / kPageTokens * kPageTokens;
    begin = lowest > split_begin ? (lowest < end ? lowest : end) : split_begin;
  }
  __device__ int existing(int i) const {
    const int n = end - (begin + i * kPageTokens);
    return n < kPageTokens ? n : kPageTokens;
  }
  __device__ int old(int i) const {
    const int n = new_begin - (begin + i * kPageTokens);
    return n < 0 ? 0 : n;
  }
  // Whether new rows are written to the tile in shared memory directly, by the warps that prepare them.
  __device__ bool is_direct(DType type, int i) const { return (kHalves || type == DType::F16) && i == 0; }
  // Whether a tile can only be copied after its new rows have been stored.
  __device__ bool is_late(DType type, int i) const { return !is_direct(type, i) && old(i) < existing(i); }

  __device__ std::byte* k_stage(int i) const { return shared + memory.keys + i % kStages * memory.k_stage; }
  __device__ std::byte* v_stage(int i) const { return shared + memory.values + i % kStages * memory.v_stage; }
  __device__ void issue_keys(int i, const std::byte* page, int tid) const {
    issue_tile<D, kHalves>(p.k_type, page + k_at, static_cast<int>(p.k_row_bytes),
                           is_direct(p.k_type, i) ? old(i) : existing(i), existing(i), k_stage(i), tid);
  }
  __device__ void issue_values(int i, const std::byte* page, int tid) const {
    issue_tile<D, kHalves>(p.v_type, page + v_at, static_cast<int>(p.v_row_bytes),
                           is_direct(p.v_type, i) ? old(i) : existing(i), existing(i), v_stage(i), tid);
  }
  // Starts copying the first kStages of n tiles: those that have to wait for their new rows if `late`, else the others.
  // `first_page` is pages[0], read already.
  __device__ void issue_first(std::byte* const* pages, const std::byte* first_page, int n, bool late, int tid) const {
#pragma unroll 1
    for (int i = 0; i < kStages && i < n; ++i) {
      const std::byte* page = i == 0 ? first_page : pages[i];
      if (is_late(p.k_type, i) == late) issue_keys(i, page, tid);
      if (is_late(p.v_type, i) == late) issue_values(i, page, tid);
    }
  }
  // Decodes a tile that has arrived, if it is quantised: by the whole block, with a barrier if it was.
  __device__ const std::byte* decoded(DType type, const std::byte* raw, uint64_t row_bytes, int i, int tid) const {
    if (kHalves || type == DType::F16) return raw;
    std::byte* to = shared + memory.decoded;
    decode_rows<D, kPageTokens, kThreads>(type, raw, static_cast<int>(row_bytes), existing(i), to, tid);
    __syncthreads();
    return to;
  }
};

// scores [kQueryRows][kStride] of a tile's keys. A warp takes eight tokens.
template <int D>
__device__ __forceinline__ void make_scores(const std::byte* queries, const std::byte* keys, float* scores, int tid) {
  const int lane = tid % 32, warp = tid / 32;
  float score[2][4] = {};
  // Chunks repeat their permutation every eight: so do the offsets of a lane.
#pragma unroll 1
  for (int at = 0; at < D * 2; at += 128) {
#pragma unroll
    for (int step = 0; step < 4; step += 2) {
      uint32_t a0[4], a1[4], b[4];
      half_tiles::load_a<D>(a0, queries + at, 0, step, lane);
      half_tiles::load_a<D>(a1, queries + at, 0, step + 1, lane);
      // Four chunks of eight tokens: two steps at once.
      simt::ldmatrix_x4(b, keys + at + tile_offset<D>(warp * 8 + lane % 8, 2 * step + lane / 8));
      const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
      simt::mma_f16(score[0], a0, b0);
      simt::mma_f16(score[1], a1, b1);
    }
  }
  float2* to = reinterpret_cast<float2*>(scores + lane / 4 * kStride + warp * 8) + lane % 4;
  to[0] = make_float2(score[0][0] + score[1][0], score[0][1] + score[1][1]);
  to[8 * kStride / 2] = make_float2(score[0][2] + score[1][2], score[0][3] + score[1][3]);
}

// The state of a block's query rows, in shared memory.
struct QueryRows {
  int2 place[kQueryRows];  // token and head
  float max[kQueryRows];   // of the scores so far
  float sum[kQueryRows];   // of the weights so far
  float keep[kQueryRows];  // factor by which the last tile scaled the earlier weights
};

// weights [kQueryRows][kStride] of a tile, whose first token is at `begin`; those before `end` exist. A warp takes
// every kWarps-th row, a lane two tokens.
__device__ __forceinline__ void make_weights(const AttentionArgs& p, int pos, int n_rows, int begin, int end,
                                             const float* scores, __half* weights, QueryRows& rows, int tid) {
  const int lane = tid % 32, first = begin + 2 * lane;
#pragma unroll
  for (int r = tid / 32; r < kQueryRows; r += kWarps) {
    if (r >= n_rows) break;
    const int own = pos + rows.place[r].x;
    const int seen_begin = first_seen_by(p, own), seen_end = own < end ? own + 1 : end;
    const float2 of_row = reinterpret_cast<const float2*>(scores + r * kStride)[lane];
    const float s0 = first >= seen_begin && first < seen_end ? of_row.x : kLowest;
    const float s1 = first + 1 >= seen_begin && first + 1 < seen_end ? of_row.y : kLowest;
    const float old_max = rows.max[r], new_max = fmaxf(old_max, simt::warp_max(fmaxf(s0, s1)));
    const float w0 = s0 > kLowest ? exp2f(s0 - new_max) : 0.0f, w1 = s1 > kLowest ? exp2f(s1 - new_max) : 0.0f;
    const float sum = simt::warp_sum(w0 + w1);
    reinterpret_cast<__half2*>(weights + r * kStride)[lane] = __floats2half2_rn(w0, w1);
    __syncwarp();  // all lanes have read the maximum
    if (lane == 0) {
      const float keep = exp2f(old_max - new_max);
      rows.keep[r] = keep;
      rows.max[r] = new_max;
      rows.sum[r] = rows.sum[r] * keep + sum;
    }
  }
}

// o <- o keep + weights values. A warp takes D / 8 columns.
template <int D>
__device__ __forceinline__ void add_values(float (&o)[D / 64][4], const std::byte* values, const __half* weights,
                                           const float* row_keep, int tid) {
  constexpr int kBlocks = D / 64;
  const int lane = tid % 32, warp = tid / 32;
  const float keep_low = row_keep[lane / 4], keep_high = row_keep[lane / 4 + 8];
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) {
    o[b][0] *= keep_low;
    o[b][1] *= keep_low;
    o[b][2] *= keep_high;
    o[b][3] *= keep_high;
  }
#pragma unroll
  for (int step = 0; step < kPageTokens / 16; ++step) {
    uint32_t a[4];
    simt::ldmatrix_x4(a, weights + lane % 16 * kStride + step * 16 + lane / 16 * 8);
    if constexpr (kBlocks == 1) {
      uint32_t v[2];
      simt::ldmatrix_x2_trans(v, values + tile_offset<D>(step * 16 + lane % 16, warp));
      simt::mma_f16(o[0], a, v);
    } else {
#pragma unroll
      for (int b = 0; b < kBlocks; b += 2) {
        uint32_t v[4];
        half_tiles::load_b_transposed<D>(v, values, step * 16, warp * kBlocks + b, lane);
        half_tiles::mma_pair(o[b], o[b + 1], a, v);
      }
    }
  }
}

// Hides the value of x from the compiler, so that what depends on it is computed where it is used. Loop-invariant
// addresses would otherwise be hoisted, and take more registers than there are.
__device__ __forceinline__ int forgotten(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

}  // namespace chimere::cuda::attention_detail
