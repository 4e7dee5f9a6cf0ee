// attention_device.h  What the attention kernels share: norm, RoPE and rotation of a head, and rows of the KV cache.
//
// Functions here are called by whole warps; a head's vector lies in shared memory, private to the warp.
#pragma once

#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/simt/simt.h"
#include "backend/state_layout.h"

namespace chimere::cuda::attention_detail {

inline constexpr int kMaxDecodeTokens = 16;
inline constexpr float kLowest = -1e30f;  // a masked score: its weight is zero beside any other
inline constexpr float kLog2E = 1.4426950408889634f;

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// x[0 .. d) <- Hadamard of blocks of the largest power of two that divides d.
__device__ __forceinline__ void hadamard(float* x, int d, int lane) {
  const int block = d & -d;
#pragma unroll 1
  for (int step = 1; step < block; step *= 2) {
#pragma unroll 1
    for (int i = lane; i < d / 2; i += 32) {
      const int at = i / step * 2 * step + i % step;
      const float a = x[at], b = x[at + step];
      x[at] = a + b;
      x[at + step] = a - b;
    }
    __syncwarp();
  }
  const float scale = 1.0f / sqrtf(static_cast<float>(block));
#pragma unroll 1
  for (int i = lane; i < d; i += 32) x[i] *= scale;
  __syncwarp();
}

// head <- norm, RoPE at pos and rotation of `from`.
__device__ __forceinline__ void prepare_head(const AttentionArgs& p, const float* from, const float* norm, int pos,
                                             float* head, int lane) {
  const int d = p.head_dim_k;
  float squares = 0.0f;
  for (int i = lane; i < d; i += 32) {
    const float x = from[i];
    head[i] = x;
    squares = fmaf(x, x, squares);
  }
  if (norm != nullptr) {
    const float inv = 1.0f / sqrtf(simt::warp_sum(squares) / static_cast<float>(d) + p.eps);
    for (int i = lane; i < d; i += 32) head[i] = head[i] * inv * norm[i];
  }
  __syncwarp();
  if (p.inv_freq != nullptr) {
    const int half = p.n_rot / 2;
    for (int i = lane; i < half; i += 32) {
      float sin, cos;
      sincosf(static_cast<float>(pos) * p.inv_freq[i], &sin, &cos);
      cos *= p.rope_magnitude;
      sin *= p.rope_magnitude;
      const int x = p.rope_adjacent ? 2 * i : i, y = p.rope_adjacent ? 2 * i + 1 : i + half;
      const float a = head[x], b = head[y];
      head[x] = a * cos - b * sin;
      head[y] = b * cos + a * sin;
    }
    __syncwarp();
  }
  if (p.rotate) hadamard(head, d, lane);
}

// The half nearest to a block's scale; an outlier is cut off at the largest half.
__device__ __forceinline__ __half block_scale(float d) { return __float2half_rn(fminf(fmaxf(d, -65504.0f), 65504.0f)); }

// Encodes x[0 .. d) as a row of the cache.
__device__ __forceinline__ void store_row(DType type, const float* x, std::byte* row, int d, int lane) {
  if (type == DType::F32) {
    for (int i = lane; i < d; i += 32) reinterpret_cast<float*>(row)[i] = x[i];
  } else if (type == DType::F16) {
    for (int i = lane; i < d; i += 32) reinterpret_cast<__half*>(row)[i] = __float2half_rn(x[i]);
  } else if (type == DType::Q8_0) {
    for (int b = 0; b < d / 32; ++b, row += 34) {
      const float value = x[b * 32 + lane];
      const __half scale = block_scale(simt::warp_max(fabsf(value)) / 127.0f);
      const float s = __half2float(scale), inv = s == 0.0f ? 0.0f : 1.0f / s;
      const int code = __float2int_rn(fminf(fmaxf(__fmul_rn(value, inv), -127.0f), 127.0f));
      if (lane == 0) *reinterpret_cast<__half*>(row) = scale;
      reinterpret_cast<int8_t*>(row)[2 + lane] = static_cast<int8_t>(code);
    }
  } else {  // Q4_0
    for (int b = 0; b < d / 32; ++b, row += 18) {
      const float value = x[b * 32 + lane];
      // The first of the largest, with its sign.
      const float largest = simt::warp_max(fabsf(value));
      const unsigned who = __ballot_sync(simt::kAllLanes, fabsf(value) == largest);
      const float signed_largest = __shfl_sync(simt::kAllLanes, value, who == 0 ? 0 : __ffs(static_cast<int>(who)) - 1);
      const __half scale = block_scale(signed_largest / -8.0f);
      const float s = __half2float(scale), inv = s == 0.0f ? 0.0f : 1.0f / s;
      const int code = __float2int_rn(fminf(fmaxf(__fmul_rn(value, inv), -8.0f), 7.0f)) + 8;
      const int high = __shfl_down_sync(simt::kAllLanes, code, 16);
      if (lane == 0) *reinterpret_cast<__half*>(row) = scale;
      if (lane < 16) reinterpret_cast<uint8_t*>(row)[2 + lane] = static_cast<uint8_t>(code | high << 4);
    }
  }
}

// Element i of a row of the cache.
__device__ __forceinline__ float load_element(DType type, const std::byte* row, int i) {
  if (type == DType::F32) return reinterpret_cast<const float*>(row)[i];
  if (type == DType::F16) return __half2float(reinterpret_cast<const __half*>(row)[i]);
  if (type == DType::Q8_0) {
    const std::byte* block = row + i / 32 * 34;
    return __half2float(*reinterpret_cast<const __half*>(block)) *
           static_cast<float>(reinterpret_cast<const int8_t*>(block)[2 + i % 32]);
  }
  const std::byte* block = row + i / 32 * 18;
  const int byte = reinterpret_cast<const uint8_t*>(block)[2 + i % 16];
  const int nibble = i % 32 < 16 ? byte & 15 : byte >> 4;
  return __half2float(*reinterpret_cast<const __half*>(block)) * static_cast<float>(nibble - 8);
}

// Rows of one head in the page that holds pos.
__device__ __forceinline__ std::byte* k_page(const AttentionArgs& p, const DeviceSlice& slice, int pos, int kv_head) {
  return slice.kv_pages[pos / kPageTokens] + p.k_offset + p.k_row_bytes * kPageTokens * kv_head;
}
__device__ __forceinline__ std::byte* v_page(const AttentionArgs& p, const DeviceSlice& slice, int pos, int kv_head) {
  return slice.kv_pages[pos / kPageTokens] + p.v_offset + p.v_row_bytes * kPageTokens * kv_head;
}

// The first position that a row sees.
__device__ __forceinline__ int first_seen_by(const AttentionArgs& p, int pos) {
  return p.window > 0 && pos >= p.window ? pos - p.window + 1 : 0;
}

__device__ __forceinline__ const float* query(const AttentionArgs& p, int64_t row, int head) {
  return p.q + row * p.q_stride + int64_t{head} * p.head_dim_k * (p.gated ? 2 : 1);
}

__device__ __forceinline__ const float* key(const AttentionArgs& p, int64_t row, int kv_head) {
  return p.k + row * p.k_stride + int64_t{kv_head} * p.head_dim_k;
}

// Stores the prepared key of position pos.
__device__ __forceinline__ void store_key(const AttentionArgs& p, const DeviceSlice& slice, int pos, int kv_head,
                                          const float* prepared, int lane) {
  std::byte* to = k_page(p, slice, pos, kv_head) + pos % kPageTokens * p.k_row_bytes;
  store_row(p.k_type, prepared, to, p.head_dim_k, lane);
}
__device__ __forceinline__ void store_value(const AttentionArgs& p, const DeviceSlice& slice, int t, int kv_head,
                                            int lane) {
  const int pos = slice.pos + t;
  const float* from = p.v + (slice.first_row + t) * p.v_stride + int64_t{kv_head} * p.head_dim_v;
  std::byte* to = v_page(p, slice, pos, kv_head) + pos % kPageTokens * p.v_row_bytes;
  store_row(p.v_type, from, to, p.head_dim_v, lane);
}

// Prepares and stores key and value of one new token. `memory`: head_dim_k floats, private to the warp.
__device__ __forceinline__ void store_token(const AttentionArgs& p, const DeviceSlice& slice, int t, int kv_head,
                                            float* memory, int lane) {
  prepare_head(p, key(p, slice.first_row + t, kv_head), p.k_norm, slice.pos + t, memory, lane);
  store_key(p, slice, slice.pos + t, kv_head, memory, lane);
  store_value(p, slice, t, kv_head, lane);
}

}  // namespace chimere::cuda::attention_detail
