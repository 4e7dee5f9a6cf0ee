// sampling_math.h  The arithmetic of src/sampling for kernels: the same bits out of the same scores.
#pragma once

#include "backend/cuda/kernels/sampling/sample_row.h"
#include "backend/cuda/simt/simt.h"
#include "base/philox.h"
#include "sampling/score_row.h"
#include "sampling/weight.h"

namespace chimere::cuda::sampling {

using u64 = unsigned long long;  // what the atomics take

inline constexpr int kBins = 2048;
inline constexpr float kBinsPerUnit = 64.0f;  // the bins reach down to exp(-32), where every weight is 0
inline constexpr int kIdBits = 20;
inline constexpr int kKeyBits = 32 + kIdBits;
static_assert(kMaxVocab < (1 << kIdBits));

// The arithmetic of weight.h with every operation rounded on its own: nvcc would fuse multiplications and additions.
__device__ __forceinline__ float device_exp(float t) {
  t = t < -87.0f ? -87.0f : t;
  const float magic = 12582912.0f;
  const float shifted = __fadd_rn(__fmul_rn(t, 1.44269504f), magic);
  const float n = __fsub_rn(shifted, magic);
  const float r = __fadd_rn(__fsub_rn(t, __fmul_rn(n, 0.693359375f)), __fmul_rn(n, 2.12194440e-4f));
  float p = 1.0f / 5040.0f;
  p = __fadd_rn(__fmul_rn(p, r), 1.0f / 720.0f);
  p = __fadd_rn(__fmul_rn(p, r), 1.0f / 120.0f);
  p = __fadd_rn(__fmul_rn(p, r), 1.0f / 24.0f);
  p = __fadd_rn(__fmul_rn(p, r), 1.0f / 6.0f);
  p = __fadd_rn(__fmul_rn(p, r), 0.5f);
  p = __fadd_rn(__fmul_rn(__fmul_rn(p, r), r), r);
  p = __fadd_rn(p, 1.0f);
  return __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
}

// weight(t) in units of 2^-34: an integer, so that the order of a sum does not matter.
__device__ __forceinline__ u64 weight_units(float t) {
  if (t < kWeightlessBelow) return 0;
  const double magic = 393216.0;
  const double rounded = (static_cast<double>(device_exp(t)) + magic) - magic;
  return static_cast<u64>(rounded * 17179869184.0);
}

__device__ __forceinline__ float clean(float score) {
  const float capped = score < kMaxScore ? score : (score >= kMaxScore ? kMaxScore : kNoScore);
  return capped >= -kMaxScore ? capped : kNoScore;
}

__device__ __forceinline__ float tempered(float score, float max, float scale) {
  return __fmul_rn(__fsub_rn(score, max), scale);
}

__device__ __forceinline__ int bin_of(float t) {
  const float depth = __fmul_rn(-kBinsPerUnit, t);
  return depth < static_cast<float>(kBins - 1) ? static_cast<int>(depth) : kBins - 1;
}

// Ascending keys are better tokens first: the larger score, among equals the lower id.
__device__ __forceinline__ u64 key_of(float score, int32_t id) {
  const uint32_t bits = __float_as_uint(score == 0.0f ? 0.0f : score);  // -0 equals 0
  const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return static_cast<u64>(~ascending) << kIdBits | static_cast<uint32_t>(id);
}

__device__ __forceinline__ bool bit_of(const uint64_t* bits, int32_t id) { return (bits[id >> 6] >> (id & 63)) & 1; }
__device__ __forceinline__ bool allowed(const uint64_t* mask, int32_t id) { return !mask || bit_of(mask, id); }

__device__ __forceinline__ uint32_t random_bits(const SampleRow& row, int32_t id) {
  const uint64_t group = static_cast<uint32_t>(id) / 4;
  const PhiloxWords words = philox(row.seed, row.position, static_cast<uint64_t>(row.choice) << 32 | group);
  // With an index that is known only at run time the words would lie in local memory.
  return id & 2 ? (id & 1 ? words[3] : words[2]) : (id & 1 ? words[1] : words[0]);
}

__device__ __forceinline__ double gumbel(uint32_t x) {
  const double v = (static_cast<double>(x) + 0.5) * 0x1p-32;
  return -log(-log1p(-v));
}

// An upper bound of gumbel(x), see sampling/gumbel.cpp.
__device__ __forceinline__ float gumbel_bound(uint32_t x) {
  const float top = static_cast<float>(static_cast<int32_t>(x >> 8));
  const float log2_scaled = static_cast<float>(__float_as_int(top));
  return 0.69314718f * (24.0f + 127.0f - log2_scaled * 0x1p-23f) + 1e-3f;
}

}  // namespace chimere::cuda::sampling
