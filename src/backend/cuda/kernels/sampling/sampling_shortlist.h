// sampling_shortlist.h  The tokens of a row that may be among its best k, and a draw from them. For sampling_short.cu.
//
// A block is kScoreBlock neighbouring tokens here, its height the best of their scores as an integer; the threads of a
// launch are a thread block.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <bit>

#include "backend/cuda/kernels/sampling/sampling_step.h"

namespace chimere::cuda::sampling {

inline constexpr int kMostNeighbours = 2;  // log2 of the threads that give one height together, at most
inline constexpr int kLeastParts = kThreads >> kMostNeighbours;
inline constexpr int kMaxBlocks = 512;  // whose tokens are read again
inline constexpr int kMaxListed = 512;  // tokens that are ranked
static_assert(2 * kShortTop <= kThreads, "the bound is the k-th best of twice as many");

// Scores as integers in the same order. REQUIRES: not -0
__device__ __forceinline__ uint32_t height_of(float score) {
  const uint32_t bits = __float_as_uint(score);
  return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
}
__device__ __forceinline__ float score_of_height(uint32_t height) {
  return __uint_as_float(height & 0x80000000u ? height & 0x7fffffffu : ~height);
}
inline constexpr uint32_t kNoHeight = 0x007fffffu;  // of kNoScore

__device__ __forceinline__ int32_t id_of(u64 key) { return static_cast<int32_t>(key & ((u64{1} << kIdBits) - 1)); }
__device__ __forceinline__ float score_of(u64 key) { return score_of_height(~static_cast<uint32_t>(key >> kIdBits)); }

__device__ __forceinline__ uint32_t* heights_of(const Pool& pool, int row) {
  return pool.list + static_cast<size_t>(row) * pool.padded;
}

// A row's scores as the draw sees them: without masked and suppressed tokens.
struct Scores {
  const float* from;
  const uint64_t* mask;
  const uint64_t* suppressed;
  int n_vocab;

  __device__ Scores(const Step& step, int row, bool loaded, const uint64_t* allowed_bits)
      : from(loaded ? step.pool.scores + static_cast<size_t>(row) * step.pool.padded
                    : step.logits + static_cast<size_t>(row) * step.n_vocab),
        mask(allowed_bits),
        suppressed(loaded ? nullptr : step.suppressed_bits),
        n_vocab(step.n_vocab) {}

  __device__ __forceinline__ bool takes_all() const { return !mask && !suppressed; }
  // A bit for each token of the block. Does not depend on the previous kernel.
  __device__ __forceinline__ uint64_t takes(int block) const {
    if (block * kScoreBlock >= n_vocab) return 0;
    return (mask ? mask[block] : ~uint64_t{0}) & (suppressed ? ~suppressed[block] : ~uint64_t{0});
  }
  __device__ __forceinline__ float load(int32_t id) const { return id < n_vocab ? __ldcg(from + id) : kNoScore; }
  __device__ __forceinline__ u64 key(int32_t id) const {
    const float score = (takes(id / kScoreBlock) >> (id % kScoreBlock)) & 1 ? clean(load(id)) : kNoScore;
    return score == kNoScore ? kAll : key_of(score, id);
  }
};

// What the threads of short_kernel share.
struct alignas(16) Shortlist {  // parts are read four at a time
  uint32_t parts[kThreads];
  uint32_t bound, top, n_blocks, n_keys;
  uint32_t blocks[kMaxBlocks];
  u64 keys[kMaxListed];       // in any order
  u64 weights[kMaxListed];    // of top-p
  double sums[kMaxListed];    // score and noise; kNoScore where min-p excludes it
  uint16_t order[kShortTop];  // indices into keys, the best first
};

// list.bound <- the `wanted`-th best of the heights that threads have seen: at least that many tokens reach it; at most
// kNoHeight when fewer have a score. Neighbouring threads give one height together, as many as still leave twice as
// many heights as are wanted: few comparisons, and few more tokens than are wanted reach the bound.
__device__ __forceinline__ void find_bound(Shortlist& list, uint32_t highest, int wanted) {
  int shift = kMostNeighbours;
  while (shift > 0 && 2 * wanted << shift > kThreads) --shift;
#pragma unroll
  for (int i = 0; i < kMostNeighbours; ++i) {
    const uint32_t other = __shfl_xor_sync(simt::kAllLanes, highest, 1 << i);
    if (i < shift) highest = max(highest, other);
  }
  const int n = kThreads >> shift, thread = threadIdx.x;
  list.parts[thread >> shift] = highest;
  __syncthreads();
  if (thread < n) {
    const uint32_t mine = list.parts[thread];
    int higher = 0;
#pragma unroll 1
    for (int begin = 0; begin < n; begin += kLeastParts) {
      const uint4* parts = reinterpret_cast<const uint4*>(list.parts + begin);
#pragma unroll
      for (int i = 0; i < kLeastParts / 4; ++i) {
        const uint4 four = parts[i];
        higher += (four.x > mine ? 1 : 0) + (four.y > mine ? 1 : 0) + (four.z > mine ? 1 : 0) + (four.w > mine ? 1 : 0);
      }
    }
    if (higher == 0) list.top = mine;
    const uint32_t lowest = __reduce_min_sync(simt::kAllLanes, higher < wanted ? mine : ~0u);
    if (thread % 32 == 0) atomicMin(&list.bound, lowest);
  }
  __syncthreads();
}

__device__ __forceinline__ void add_key(Shortlist& list, u64 key) {
  const uint32_t at = atomicAdd(&list.n_keys, 1u);
  if (at < kMaxListed) list.keys[at] = key;
}

// Lists the tokens that reach the bound, out of the blocks that do.
__device__ __forceinline__ void list_keys(Shortlist& list, const Scores& scores, uint32_t bound) {
  constexpr int kLanes = 8, kAtOnce = kScoreBlock / kLanes;  // of a block
  const int lane = threadIdx.x % kLanes;
  const float least = bound > kNoHeight ? score_of_height(bound) : -kMaxScore;
#pragma unroll 1
  for (uint32_t i = threadIdx.x / kLanes; i < list.n_blocks; i += kThreads / kLanes) {
    const auto block = static_cast<int>(list.blocks[i]);
    const int32_t first = block * kScoreBlock + lane;
    float loaded[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) loaded[j] = scores.load(first + j * kLanes);
    uint32_t reach = 0;  // a bit for each token that does; NaN does not
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) reach |= loaded[j] >= least ? 1u << j : 0u;
    if (reach && !scores.takes_all()) {
      const uint64_t takes = scores.takes(block) >> lane;
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) reach &= ~((takes >> (j * kLanes)) & 1 ? 0u : 1u << j);
    }
#pragma unroll 1
    for (; reach; reach &= reach - 1) {
      const int at = __ffs(static_cast<int>(reach)) - 1;
      float score = loaded[0];
#pragma unroll
      for (int j = 1; j < kAtOnce; ++j) score = at == j ? loaded[j] : score;
      add_key(list, key_of(clean(score), first + at * kLanes));
    }
  }
}

// The same by a radix selection over the row, where too many tokens reach the bound: few threads saw all the best, or
// many scores are equal.
__device__ __attribute__((noinline)) inline void list_selected(Shortlist& list, const Scores& scores, int wanted) {
  const auto visit = [&](const auto& take) {
    for (int32_t id = threadIdx.x; id < scores.n_vocab; id += kThreads) {
      const u64 key = scores.key(id);
      if (key != kAll) take(key, [] { return u64{1}; });
    }
  };
  const u64 last = select_key(static_cast<u64>(wanted), visit);
  if (threadIdx.x == 0) list.n_keys = 0;
  __syncthreads();
  visit([&](u64 key, const auto&) {
    if (key <= last) add_key(list, key);
  });
  __syncthreads();
}

// Ranks the best `wanted` of n keys. By the lower half of the thread block: eight lanes count the keys before one.
__device__ __forceinline__ void order_keys(Shortlist& list, int n, int wanted) {
  constexpr int kLanes = 8;
  const int lane = threadIdx.x % kLanes;
#pragma unroll 1
  for (int begin = 0; begin < n; begin += kThreads / 2 / kLanes) {
    const int i = begin + static_cast<int>(threadIdx.x) / kLanes;
    const u64 key = list.keys[min(i, n - 1)];
    int before = 0;
#pragma unroll 4
    for (int j = lane; j < n; j += kLanes) before += list.keys[j] < key ? 1 : 0;
    for (int step = 1; step < kLanes; step *= 2) before += __shfl_xor_sync(simt::kAllLanes, before, step);
    if (i < n && lane == 0 && before < wanted) list.order[before] = static_cast<uint16_t>(i);
  }
}

// The weight of every listed token, and its score with Gumbel noise. By the upper half of the thread block.
__device__ __forceinline__ void add_noise(Shortlist& list, int n, const SampleRow& wish) {
  const float max = score_of_height(list.top);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) - kThreads / 2; i < n; i += kThreads / 2) {
    const u64 key = list.keys[i];
    const float t = tempered(score_of(key), max, wish.scale);
    list.weights[i] = weight_units(t);
    const bool survives = wish.min_p <= 0.0f || device_exp(t) >= wish.min_p;
    const double sum = static_cast<double>(t) + gumbel(random_bits(wish, id_of(key)));
    list.sums[i] = survives ? sum : static_cast<double>(kNoScore);
  }
}

// The sum over a warp of numbers below 2^48.
__device__ __forceinline__ u64 warp_total(u64 mine) {
  const uint32_t low = __reduce_add_sync(simt::kAllLanes, static_cast<uint32_t>(mine) & 0xffffffu);
  const uint32_t high = __reduce_add_sync(simt::kAllLanes, static_cast<uint32_t>(mine >> 24));
  return (static_cast<u64>(high) << 24) + low;
}

// Doubles as integers in the same order.
__device__ __forceinline__ u64 ascending(double x) {
  const u64 bits = std::bit_cast<u64>(x + 0.0);
  return bits >> 63 ? ~bits : bits | u64{1} << 63;
}

// Draws one of the best n tokens, out of those that top-p and min-p keep. By a warp.
__device__ __forceinline__ int32_t draw_in_order(const Shortlist& list, int n, float top_p) {
  const int lane = threadIdx.x;
  u64 need = kAll;
  if (top_p < 1.0f) {
    u64 mine = 0;
#pragma unroll 1
    for (int i = lane; i < n; i += 32) mine += list.weights[list.order[i]];
    need = nucleus(top_p, warp_total(mine));
  }
  u64 best = 0, before = 0;
  uint32_t best_id = ~0u;
#pragma unroll 1
  for (int begin = 0; begin < n; begin += 32) {
    const bool is_token = begin + lane < n;
    const int at = list.order[is_token ? begin + lane : 0];
    const u64 weight = is_token ? list.weights[at] : 0;
    u64 inclusive = weight;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const u64 other = __shfl_up_sync(simt::kAllLanes, inclusive, step);
      if (lane >= step) inclusive += other;
    }
    const u64 sum = ascending(list.sums[at]);
    const auto id = static_cast<uint32_t>(id_of(list.keys[at]));
    if (is_token && before + inclusive - weight < need && (sum > best || (sum == best && id < best_id))) {
      best = sum;
      best_id = id;
    }
    before += __shfl_sync(simt::kAllLanes, inclusive, 31);
  }
  // The largest sum, and of those that have it the lowest id.
  const auto high = static_cast<uint32_t>(best >> 32), low = static_cast<uint32_t>(best);
  const bool is_high = high == __reduce_max_sync(simt::kAllLanes, high);
  const uint32_t best_low = __reduce_max_sync(simt::kAllLanes, is_high ? low : 0u);
  return static_cast<int32_t>(__reduce_min_sync(simt::kAllLanes, is_high && low == best_low ? best_id : ~0u));
}

}  // namespace chimere::cuda::sampling
