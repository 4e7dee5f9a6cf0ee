// moe_ring.h  The expert kernels of a format, with weights that come through a ring of each warp (ring.h).
//
// Units of the shared expert come first: their weights do not depend on the choice, and are sent for before anything
// else is known. The units of all chunks are dealt to the blocks, as many at a time as these have warps: the warps of a
// block then read the same rows of activations through the L1 cache, and as the chunks with the most rows come
// first (moe_groups.h), blocks have equal numbers of each kind and end together, whether bytes or products decide.
// The next units of a block belong to another chunk, whose rows are not in the L1 cache: a warp then waits for the L2
// cache. So the up-projection has the records of all rows in shared memory where there is room (up to 32 of 2048
// elements), and one block of 16 warps an SM; the down-projection, whose rows are too many, takes more than one unit of a
// chunk before it goes to the next.
#pragma once

#include "backend/cuda/simt/simt.h"

#include <type_traits>

#include "backend/cuda/kernels/common/ring.h"
#include "backend/cuda/kernels/common/staged.h"
#include "backend/cuda/kernels/dense/matvec_device.h"
#include "backend/cuda/kernels/experts/experts_choice.h"
#include "backend/cuda/kernels/experts/moe_groups.h"

namespace chimere::cuda {

// Blocks per SM, at most; the registers of the one-row kernel leave room for a block of the next kernel.
inline constexpr int kRingBlocks = 2;

template <class S>
inline constexpr bool kHasFormat = !std::is_same_v<S, NoFormat>;

// The units of all chunks among all warps of n_blocks, of n_warps each.
inline Dealing deal_to_blocks(int tiles, int n_blocks, int n_warps = kDotWarps) { return {tiles, n_blocks * n_warps}; }
// The first unit of this warp when the first ones go to block `from`.
template <int kWarps = kDotWarps>
__device__ __forceinline__ int first_dealt(int from) {
  const int block = static_cast<int>(blockIdx.x) - from;
  return (block < 0 ? block + static_cast<int>(gridDim.x) : block) * kWarps + simt::warp_id();
}

// The block that has the first units behind the n of the shared expert.
template <int kWarps = kDotWarps>
__device__ __forceinline__ int block_behind(int n) {
  return simt::div_up(n, kWarps) % static_cast<int>(gridDim.x);
}

// Sums 2i and 2i + 1 of the kN values over each kLanes neighbouring lanes, in v[0] and v[1] of one of the lanes, which
// is told i; others are told kN. The sums are lane_sum's, bit for bit.
template <int kLanes, int kN>
__device__ __forceinline__ int scatter_two(float (&v)[kN]) {
  static_assert(kN <= 2 * kLanes, "two a lane at most");
  scatter_sums<kLanes>(v);
  const int lane = simt::lane_id() % kLanes;
  if constexpr (kN > kLanes) return lane;
  constexpr int kShare = kN > kLanes ? 1 : kLanes / kN;
  v[1] = __shfl_down_sync(simt::kAllLanes, v[0], kShare);
  return lane % (2 * kShare) == 0 ? lane / (2 * kShare) : kN;
}
// The same over each `lanes`, a power of two: store(i, first, second), once for each i, on one of the lanes. `store` is
// there once, however long it is.
template <int kN, class Store>
__device__ __forceinline__ void finish_twos(float (&v)[kN], int lanes, Store store) {
  int i = simt::lane_id() % lanes;
  if (lanes == 32) {
    i = scatter_two<32>(v);
  } else if (lanes == 16) {
    i = scatter_two<16>(v);
  } else if (lanes == 8) {
    i = scatter_two<8>(v);
  } else {
#pragma unroll
    for (float& one : v) one = lane_sum(one, lanes);
  }
#pragma unroll 1
  for (; i < kN / 2; i += lanes) {
    float first = v[0], second = v[1];
#pragma unroll
    for (int j = 1; j < kN / 2; ++j) {
      const bool is_it = lanes < 8 && i == j;
      first = is_it ? v[2 * j] : first;
      second = is_it ? v[2 * j + 1] : second;
    }
    store(i, first, second);
  }
}

// Loads behind it do not start before it: what is asked for too early takes registers that others need.
__device__ __forceinline__ void keep_order() { asm volatile("" ::: "memory"); }

Status launch_router(const Stream& stream, const MoePlan& p);
Status launch_any_up(const Stream& stream, const MoePlan& p);
Status launch_any_down(const Stream& stream, const MoePlan& p);
// residual += the weighted outputs that ring_grouped_down_kernel left.
Status launch_add_experts(const Stream& stream, const MoePlan& p);

}  // namespace chimere::cuda
