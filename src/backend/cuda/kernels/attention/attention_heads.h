// attention_heads.h  Norm, RoPE and rotation of the heads that the projections wrote, for the decode class.
//
// The same as prepare_head(), but everything that does not come from the previous kernel (norm weights, sines and
// cosines of all tokens of the slice) is in shared memory before the wait for it.
#pragma once

#include "backend/cuda/kernels/attention/attention_device.h"

namespace chimere::cuda::attention_detail {

enum class HeadKind { query, key, value };

template <int D>
struct HeadPreparation {
  static constexpr int kPerLane = D / 32;
  float* norms;  // [2][D]: of queries, of keys; behind them (sine, cosine) [token][n_rot / 2]

  __host__ __device__ static int bytes(const AttentionArgs& p, int n_tokens) {
    return (2 * D + n_tokens * p.n_rot) * static_cast<int>(sizeof(float));
  }
  __device__ float2* rotations() const { return reinterpret_cast<float2*>(norms + 2 * D); }

  // For a slice's tokens. By the whole block; a barrier has to follow.
  __device__ void gather(const AttentionArgs& p, const DeviceSlice& slice, int tid, int n_threads) const {
    for (int i = tid; i < 2 * D; i += n_threads) {
      const float* from = i < D ? p.q_norm : p.k_norm;
      norms[i] = from != nullptr ? from[i % D] : 1.0f;
    }
    const int half = p.n_rot / 2;
#pragma unroll 1
    for (int i = tid; i < slice.n_tokens * half; i += n_threads) {
      const int t = i / half;
      float sin, cos;
      sincosf(static_cast<float>(slice.pos + t) * p.inv_freq[i - t * half], &sin, &cos);
      rotations()[i] = make_float2(sin * p.rope_magnitude, cos * p.rope_magnitude);
    }
  }

  __device__ static void load(const float* from, int lane, float (&x)[kPerLane]) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) x[i] = from[i * 32 + lane];
  }

  // head <- what the kind asks for of x, a head of token t. By a warp; `head` is its own.
  __device__ void run(const AttentionArgs& p, HeadKind kind, const float (&x)[kPerLane], int t, float* head,
                      int lane) const {
    const bool is_key = kind == HeadKind::key;
    const bool has_norm = kind != HeadKind::value && (is_key ? p.k_norm : p.q_norm) != nullptr;
    float inv = 1.0f;
    if (has_norm) {
      float squares = 0.0f;
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) squares = fmaf(x[i], x[i], squares);
      inv = rsqrtf(simt::warp_sum(squares) / static_cast<float>(D) + p.eps);
    }
    const float* norm = norms + (is_key ? D : 0) + lane;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) head[i * 32 + lane] = has_norm ? x[i] * inv * norm[i * 32] : x[i];
    __syncwarp();
    if (kind == HeadKind::value) return;
    const int half = p.n_rot / 2;
#pragma unroll 1
    for (int pair = lane; pair < half; pair += 32) {
      const float2 r = rotations()[t * half + pair];
      const int first = p.rope_adjacent ? 2 * pair : pair, second = p.rope_adjacent ? 2 * pair + 1 : pair + half;
      const float a = head[first], b = head[second];
      head[first] = a * r.y - b * r.x;
      head[second] = b * r.y + a * r.x;
    }
    __syncwarp();
    if (p.rotate) hadamard(head, D, lane);
  }
};

}  // namespace chimere::cuda::attention_detail
