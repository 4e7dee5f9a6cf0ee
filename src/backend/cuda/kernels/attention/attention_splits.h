// attention_splits.h  A row's context in splits: where they lie, their partial results and the sum of these.
//
// The context of a row that sees more than a page is cut into at most kMaxSplits splits of whole pages. Each yields an
// unscaled output and (maximum, sum) of its scores. They are summed in one fixed order: chains of kChain neighbouring
// splits in order, then the chains in order. With few splits the last block of the row to finish sums them (a warp per
// row and head); with many, a separate launch does, with a block per row and head.
#pragma once

#include "backend/cuda/kernels/attention/attention_device.h"
#include "backend/cuda/kernels/attention/attention_fast.h"

namespace chimere::cuda::attention_detail {

inline constexpr int kChain = 8;

__device__ __forceinline__ int split_tokens(int kv_len) {
  return simt::div_up(simt::div_up(kv_len, kPageTokens), kMaxSplits) * kPageTokens;
}
__device__ __forceinline__ int splits_of(int kv_len) { return simt::div_up(kv_len, split_tokens(kv_len)); }

// The number of decode rows of the batch before those of a slice. Called by a whole warp.
__device__ __forceinline__ int first_decode_row(const BatchView& batch, int slice, int lane) {
  int n = 0;
  for (int i = lane; i < slice; i += 32) {
    const int tokens = batch.slices[i].n_tokens;
    n += tokens <= kMaxDecodeTokens ? tokens : 0;
  }
  return simt::warp_sum(n);
}

// The partial results of a decode row and head; the statistics of all rows come after the outputs of all rows.
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

// x, scaled and gated. The gate has a few bits less than a float, which is lost in the quantisation of the next product
// anyway; an exact division would be half of the code.
__device__ __forceinline__ float finished(const AttentionArgs& p, float x, float scale, float gate) {
  x *= scale;
  return p.gated ? x * __fdividef(1.0f, 1.0f + exp2f(gate * -kLog2E)) : x;
}

// The relative weights of splits: a lane holds the factors of splits `lane` and `lane + 32`.
struct SplitFactors {
  static_assert(kMaxSplits == 64);
  float low, high;
  float scale;  // 1 / the weights of all tokens

  __device__ SplitFactors(const AttentionArgs& p, int64_t index, int n, int head, int lane) {
    const float2* stats = partial_stats(p, index);
    const float2 none = make_float2(kLowest, 0.0f);
    const float2 a = lane < n ? stats[lane] : none, b = lane + 32 < n ? stats[lane + 32] : none;
    const float sink = sink_of(p, head);
    const float top = fmaxf(simt::warp_max(fmaxf(a.x, b.x)), sink);
    low = lane < n ? exp2f(a.x - top) : 0.0f;
    high = lane + 32 < n ? exp2f(b.x - top) : 0.0f;
    float total = simt::warp_sum(__fadd_rn(__fmul_rn(a.y, low), __fmul_rn(b.y, high)));
    if (p.sinks != nullptr) total = __fadd_rn(total, exp2f(sink - top));
    scale = 1.0f / total;
  }
  // By the whole warp, for the same split.
  __device__ float of(int split) const { return __shfl_sync(simt::kAllLanes, split < 32 ? low : high, split % 32); }
};

__device__ __forceinline__ void add_scaled(float4& to, float factor, float4 x) {
  to.x = fmaf(factor, x.x, to.x);
  to.y = fmaf(factor, x.y, to.y);
  to.z = fmaf(factor, x.z, to.z);
  to.w = fmaf(factor, x.w, to.w);
}

// out <- the sum of a row's splits, for one head. By a warp; a lane has columns 4 lane .. 4 lane + 4 of each 128.
template <int D>
__device__ __forceinline__ void sum_splits(const AttentionArgs& p, int64_t row, int decode_row, int head, int n,
                                           int lane) {
  constexpr int kQuads = D < 128 ? 1 : D / 128;
  constexpr int kTogether = 4;  // splits whose loads are in flight at once
  static_assert(kChain == 2 * kTogether);
  const bool has_columns = lane * 4 < D;
  const int64_t index = partial_index(p, decode_row, head);
  const float4* partials = reinterpret_cast<const float4*>(p.scratch + index * D) + lane;
  const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 o[kQuads], chain[kQuads];
#pragma unroll
  for (int j = 0; j < kQuads; ++j) o[j] = chain[j] = zero;
  const SplitFactors factors(p, index, n, head, lane);
#pragma unroll 1
  for (int s = 0; s < n; s += kTogether) {
    float4 x[kTogether][kQuads];
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
#pragma unroll
      for (int j = 0; j < kQuads; ++j) {
        x[c][j] = s + c < n && has_columns ? partials[(s + c) * (D / 4) + j * 32] : zero;
      }
    }
#pragma unroll
    for (int c = 0; c < kTogether; ++c) {
      const float factor = factors.of(s + c);
#pragma unroll
      for (int j = 0; j < kQuads; ++j) add_scaled(chain[j], factor, x[c][j]);
    }
    if (s % kChain == 0 && s + kTogether < n) continue;
#pragma unroll
    for (int j = 0; j < kQuads; ++j) {
      add_scaled(o[j], 1.0f, chain[j]);
      chain[j] = zero;
    }
  }
  if (!has_columns) return;
  const float4* gates = reinterpret_cast<const float4*>(query(p, row, head) + D) + lane;
  float4* out = reinterpret_cast<float4*>(p.out + row * p.out_stride + int64_t{head} * D) + lane;
#pragma unroll
  for (int j = 0; j < kQuads; ++j) {
    const float4 g = p.gated ? gates[j * 32] : zero;
    out[j * 32] = make_float4(finished(p, o[j].x, factors.scale, g.x), finished(p, o[j].y, factors.scale, g.y),
                              finished(p, o[j].z, factors.scale, g.z), finished(p, o[j].w, factors.scale, g.w));
  }
}

}  // namespace chimere::cuda::attention_detail
