// encode_lanes.h  Four floats at a time, for the searches of the encoders: any x86-64 or arm64 has registers for them.
//
// Sums are kept in lanes and added up in one fixed order, so that the bits of a block are the same on every machine.
#pragma once

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace chimere::quantizer {

using Lanes [[gnu::vector_size(16)]] = float;
inline constexpr int kLanes = 4;

inline Lanes load_lanes(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_lanes(float* p, Lanes v) { std::memcpy(p, &v, sizeof v); }
inline Lanes all_lanes(float x) { return Lanes{x, x, x, x}; }
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
inline float sum_of(Lanes v) { return (v[0] + v[2]) + (v[1] + v[3]); }

inline float largest_of(Lanes v) { return std::max(std::max(v[0], v[1]), std::max(v[2], v[3])); }
inline float smallest_of(Lanes v) { return std::min(std::min(v[0], v[1]), std::min(v[2], v[3])); }

// One bit for each lane that is larger.
inline unsigned lanes_above(Lanes v, float limit) {
#ifdef __SSE2__
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpgt_ps(v, _mm_set1_ps(limit))));
#else
  return (v[0] > limit ? 1u : 0u) | (v[1] > limit ? 2u : 0u) | (v[2] > limit ? 4u : 0u) | (v[3] > limit ? 8u : 0u);
#endif
}

// One bit for each lane that is equal.
inline unsigned lanes_equal(Lanes v, float x) {
#ifdef __SSE2__
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpeq_ps(v, _mm_set1_ps(x))));
#else
  return (v[0] == x ? 1u : 0u) | (v[1] == x ? 2u : 0u) | (v[2] == x ? 4u : 0u) | (v[3] == x ? 8u : 0u);
#endif
}

// To the nearest integer, ties to even. REQUIRES: |v| < 2^22, where 1.5 * 2^23 leaves no bit for a fraction.
inline Lanes rounded(Lanes v) { return (v + 0x1.8p23f) - 0x1.8p23f; }

}  // namespace chimere::quantizer
