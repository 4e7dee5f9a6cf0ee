// weight.h  exp(t) for t <= 0, and the same rounded so that sums of it are exact.
//
// Everything here is IEEE multiplication, addition and bit moves in a fixed order (the build forbids contraction to
// fused operations), so that a vectorised loop, a scalar call and a device that rounds each operation give equal bits.
#pragma once

#include <bit>
#include <cstdint>

namespace chimere {

// Relative error below 1.5e-7 (weight_test). REQUIRES: -87 <= t <= 0
inline float exp_in_range(float t) {
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits of the sum.
  const float magic = 12582912.0f;
  const float shifted = t * 1.44269504f + magic;
  const float n = shifted - magic;
  // ln 2 in two parts: the first has few enough bits that n times it is exact.
  const float r = (t - n * 0.693359375f) + n * 2.12194440e-4f;
  // |r| <= 0.3466: the Taylor series to r^7 is off by less than 6e-9.
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  p = p + 1.0f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
}

// The same for every t <= 0: what lies below -87 counts as -87.
inline float exp_nonpositive(float t) { return exp_in_range(t < -87.0f ? -87.0f : t); }

// A vocabulary may have 2^19 entries: then sums of weights stay below 2^53 units and no addition ever rounds.
inline constexpr std::int32_t kMaxVocab = 1 << 19;
inline constexpr float kWeightlessBelow = -24.5f;  // weight(t) is 0 for every t below this

// exp(t) rounded to a multiple of 2^-34. Sums of up to kMaxVocab weights are exact in double, hence independent of the
// order of summation: the nucleus of top-p is the same set however the sum was split. Rounds what is below 2^-35 to 0.
inline double rounded_weight(float e) {
  const double magic = 393216.0;  // 1.5 * 2^18: one unit in its last place is 2^-34
  return (static_cast<double>(e) + magic) - magic;
}
inline double weight(float t) { return rounded_weight(exp_nonpositive(t)); }

}  // namespace chimere
