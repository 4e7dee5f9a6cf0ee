// attention_splits.h  A row's context in splits: where they lie, their partial results and the sum of these.
//
// A row that sees more than a page is cut into at most kMaxSplits splits of whole pages. Of each there is an unscaled
// output and (maximum, sum) of its scores. They are summed in one order, whoever does it: kChains chains of the splits
// s, s + kChains, ... in order, then the chains in order. With few splits the last block of a row's to finish sums it
// up by itself (a warp a row), with many a launch of its own does it with a block a row and head.
#pragma once

#include "backend/cuda/kernels/attention_device.h"
#include "backend/cuda/kernels/attention_fast.h"

namespace chimere::cuda::attention_detail {

inline constexpr int kChains = 8;

__device__ __forceinline__ int split_tokens(int kv_len) {
  return simt::div_up(simt::div_up(kv_len, kPageTokens), kMaxSplits) * kPageTokens;
}
__device__ __forceinline__ int splits_of(int kv_len) { return simt::div_up(kv_len, split_tokens(kv_len)); }

// Decode rows of the batch before those of a slice. By a whole warp.
__device__ __forceinline__ int first_decode_row(const BatchView& batch, int slice, int lane) {
  int n = 0;
  for (int i = lane; i < slice; i += 32) {
    const int tokens = batch.slices[i].n_tokens;
    n += tokens <= kMaxDecodeTokens ? tokens : 0;
  }
  return simt::warp_sum(n);
}

// Of a decode row and head; the statistics of all rows lie behind the outputs of all rows.
__device__ __forceinline__ int64_t partial_index(const AttentionArgs& p, int decode_row, int head) {
  return (int64_t{decode_row} * p.n_heads + head) * kMaxSplits;
}
__device__ __forceinline__ float2* partial_stats(const AttentionArgs& p, int64_t index) {
  return reinterpret_cast<float2*>(p.scratch + int64_t{p.max_decode_rows} * p.n_heads * kMaxSplits * p.head_dim_v) +
         index;
}

// The head's sink as a power of two.
__device__ __forceinline__ float sink_of(const AttentionArgs& p, int head) {
  return p.sinks != nullptr ? p.sinks[head] * kLog2E : kLowest;
}

__device__ __forceinline__ float finished(const AttentionArgs& p, float x, float total, float gate) {
  x /= total;
  return p.gated ? x * sigmoid(gate) : x;
}

// What splits weigh against each other: a lane holds the factors of splits `lane` and `lane + 32`.
struct SplitFactors {
  static_assert(kMaxSplits == 64);
  float low, high;
  float total;  // of the weights of all tokens

  __device__ SplitFactors(const AttentionArgs& p, int64_t index, int n, int head, int lane) {
    const float2* stats = partial_stats(p, index);
    const float2 none = make_float2(kLowest, 0.0f);
    const float2 a = lane < n ? stats[lane] : none, b = lane + 32 < n ? stats[lane + 32] : none;
    const float sink = sink_of(p, head);
    const float top = fmaxf(simt::warp_max(fmaxf(a.x, b.x)), sink);
    low = lane < n ? exp2f(a.x - top) : 0.0f;
    high = lane + 32 < n ? exp2f(b.x - top) : 0.0f;
    total = simt::warp_sum(__fadd_rn(__fmul_rn(a.y, low), __fmul_rn(b.y, high)));
    if (p.sinks != nullptr) total = __fadd_rn(total, exp2f(sink - top));
  }
  // By the whole warp, for the same split.
  __device__ float of(int split) const { return __shfl_sync(simt::kAllLanes, split < 32 ? low : high, split % 32); }
};

__device__ __forceinline__ void add_scaled(float2& to, float factor, float2 x) {
  to.x = fmaf(factor, x.x, to.x);
  to.y = fmaf(factor, x.y, to.y);
}

// out <- the sum of a row's splits, for one head. By a warp; a lane has columns 2 lane and 2 lane + 1 of each 64.
template <int D>
__device__ __forceinline__ void sum_splits(const AttentionArgs& p, int64_t row, int decode_row, int head, int n,
                                           int lane) {
  constexpr int kPairs = D / 64;
  constexpr int kTogether = 4;  // chains whose loads are under way at once
  const int64_t index = partial_index(p, decode_row, head);
  const float2* partials = reinterpret_cast<const float2*>(p.scratch + index * D) + lane;
  const float2* gates = reinterpret_cast<const float2*>(query(p, row, head) + D) + lane;
  float2* out = reinterpret_cast<float2*>(p.out + row * p.out_stride + int64_t{head} * D) + lane;
  float2 o[kPairs];
#pragma unroll
  for (int j = 0; j < kPairs; ++j) o[j] = make_float2(0.0f, 0.0f);
  const SplitFactors factors(p, index, n, head, lane);
#pragma unroll 1
  for (int first = 0; first < kChains && first < n; first += kTogether) {
    float2 chain[kTogether][kPairs];
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        chain[c][j] = first + c < n ? partials[(first + c) * (D / 2) + j * 32] : make_float2(0.0f, 0.0f);
      }
    }
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
      const float factor = factors.of(first + c);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        chain[c][j] = make_float2(__fmul_rn(factor, chain[c][j].x), __fmul_rn(factor, chain[c][j].y));
      }
#pragma unroll 1
      for (int s = first + c + kChains; s < n; s += kChains) {  // more splits than the launcher was told of
        const float further = factors.of(s);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) add_scaled(chain[c][j], further, partials[s * (D / 2) + j * 32]);
      }
    }
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        o[j].x += chain[c][j].x;
        o[j].y += chain[c][j].y;
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const float2 gate = p.gated ? gates[j * 32] : make_float2(0.0f, 0.0f);
    out[j * 32] = make_float2(finished(p, o[j].x, factors.total, gate.x), finished(p, o[j].y, factors.total, gate.y));
  }
}

}  // namespace chimere::cuda::attention_detail
