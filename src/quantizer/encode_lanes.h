// encode_lanes.h  Floats as many at a time as a register has, for the searches in codebooks: four, or eight with AVX.
//
// Nothing here adds up lanes, so that the bits of a block are the same on every machine. Compiled once for each level,
// as encode_eight.h is.
#pragma once

#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#ifndef CHIMERE_ENCODE_LEVEL
#define CHIMERE_ENCODE_LEVEL any_machine
#endif

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

#ifdef __AVX2__
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif
using Lanes [[gnu::vector_size(4 * kLanes)]] = float;

inline Lanes load_lanes(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_lanes(float* p, Lanes v) { std::memcpy(p, &v, sizeof v); }
inline Lanes all_lanes(float x) { return Lanes{} + x; }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }

inline float largest_of(Lanes v) {
  using Four [[gnu::vector_size(16)]] = float;
  Four parts[kLanes / 4];
  std::memcpy(parts, &v, sizeof v);
  Four most = parts[0] > parts[kLanes / 4 - 1] ? parts[0] : parts[kLanes / 4 - 1];
  Four other = __builtin_shufflevector(most, most, 2, 3, 0, 1);
  most = most > other ? most : other;
  other = __builtin_shufflevector(most, most, 1, 0, 3, 2);
  return most[0] > other[0] ? most[0] : other[0];
}

// One bit for each lane that is larger.
inline unsigned lanes_above(Lanes v, float limit) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_set1_ps(limit), _CMP_GT_OQ)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpgt_ps(v, _mm_set1_ps(limit))));
#else
  unsigned bits = 0;
  for (int l = 0; l < kLanes; ++l) bits |= (v[l] > limit ? 1u : 0u) << l;
  return bits;
#endif
}

// One bit for each lane that is equal.
inline unsigned lanes_equal(Lanes v, float x) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_set1_ps(x), _CMP_EQ_OQ)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_ps(_mm_cmpeq_ps(v, _mm_set1_ps(x))));
#else
  unsigned bits = 0;
  for (int l = 0; l < kLanes; ++l) bits |= (v[l] == x ? 1u : 0u) << l;
  return bits;
#endif
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
