// gdn_device.h  What the kernels of Gated DeltaNet share: which channels a head reads, conv, gates, windows.
#pragma once

#include "backend/cuda/kernels/recurrence/gdn.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda::gdn {

inline constexpr int kMaxDecodeTokens = 16;
inline constexpr float kNormEps = 1e-6f;  // under the root of the L2 norms of q and k, a constant of the architecture

__device__ __forceinline__ DeviceSlice slice_of(const GdnArgs& p, const DeviceSlice& own, int i) {
  return p.batch.slices != nullptr ? p.batch.slices[i] : own;
}

__device__ __forceinline__ int key_head(const GdnArgs& p, int head) {
  return p.tiled_heads ? head % p.n_key_heads : head / (p.n_value_heads / p.n_key_heads);
}

// The value head that does what is to be done once for its key head.
__device__ __forceinline__ bool leads_key_head(const GdnArgs& p, int head) {
  return p.tiled_heads ? head < p.n_key_heads : head % (p.n_value_heads / p.n_key_heads) == 0;
}

__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }

__device__ __forceinline__ float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

__device__ __forceinline__ float log_decay(const GdnArgs& p, int head, float alpha) {
  return p.a[head] * softplus(alpha + p.dt_bias[head]);
}

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// Raw input of a channel `at` tokens after the slice's first; before it, from the window.
__device__ __forceinline__ float conv_input(const GdnArgs& p, const DeviceSlice& slice, int at, int channel) {
  if (at >= 0) return p.qkv[(slice.first_row + at) * p.qkv_stride + channel];
  return slice.recurrent[p.conv_offset + int64_t{at + p.taps - 1} * p.channels() + channel];
}

// Conv and SiLU of one channel of token t.
__device__ __forceinline__ float conv_silu(const GdnArgs& p, const DeviceSlice& slice, int t, int channel) {
  const float* w = p.conv + int64_t{channel} * p.taps;
  float sum = 0.0f;
  for (int j = 0; j < p.taps; ++j) sum = fmaf(w[j], conv_input(p, slice, t + j - (p.taps - 1), channel), sum);
  return silu(sum);
}

// The last taps - 1 inputs of a channel become its window. Rows move towards older places only: ascending is safe.
__device__ __forceinline__ void advance_window(const GdnArgs& p, const DeviceSlice& slice, int channel) {
  float* window = slice.recurrent + p.conv_offset + channel;
  for (int i = 0; i < p.taps - 1; ++i) {
    window[int64_t{i} * p.channels()] = conv_input(p, slice, slice.n_tokens - (p.taps - 1) + i, channel);
  }
}

__device__ __forceinline__ float* replay_record(const GdnArgs& p, const DeviceSlice& slice, int t) {
  return slice.replay + t * p.replay_stride + p.replay_offset;
}

}  // namespace chimere::cuda::gdn
