// encode_eight.h  Eight floats at a time, for the searches of scales: one register with AVX, two without.
//
// Sums are kept in lanes and added up in one fixed order, and products are not contracted, so that the bits of a block
// are the same on every machine. This file and those that include it are compiled once for each level
// (CHIMERE_ENCODE_LEVEL), in a namespace of that name: no function compiled for AVX2 may be met by others.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifndef CHIMERE_ENCODE_LEVEL
#define CHIMERE_ENCODE_LEVEL any_machine
#endif

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

inline constexpr int kEight = 8;
#ifdef __AVX2__
inline constexpr int kPieces = 1;
#else
inline constexpr int kPieces = 2;
#endif

struct Eight {
  using Piece [[gnu::vector_size(4 * kEight / kPieces)]] = float;
  Piece p[kPieces];
};

#define CHIMERE_EIGHT [[gnu::always_inline]] inline

CHIMERE_EIGHT Eight load_eight(const float* from) {
  Eight v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
CHIMERE_EIGHT void store_eight(float* to, const Eight& v) { std::memcpy(to, &v, sizeof v); }
CHIMERE_EIGHT Eight all_eight(float x) {
  Eight v;
  for (Eight::Piece& p : v.p) p = Eight::Piece{} + x;
  return v;
}

template <class Each>
CHIMERE_EIGHT Eight each_piece(const Eight& a, const Eight& b, Each each) {
  Eight v;
  for (int k = 0; k < kPieces; ++k) v.p[k] = each(a.p[k], b.p[k]);
  return v;
}
CHIMERE_EIGHT Eight operator+(const Eight& a, const Eight& b) {
  return each_piece(a, b, [](const auto& x, const auto& y) { return x + y; });
}
CHIMERE_EIGHT Eight operator-(const Eight& a, const Eight& b) {
  return each_piece(a, b, [](const auto& x, const auto& y) { return x - y; });
}
CHIMERE_EIGHT Eight operator*(const Eight& a, const Eight& b) {
  return each_piece(a, b, [](const auto& x, const auto& y) { return x * y; });
}
CHIMERE_EIGHT Eight operator/(const Eight& a, const Eight& b) {
  return each_piece(a, b, [](const auto& x, const auto& y) { return x / y; });
}
CHIMERE_EIGHT Eight operator*(const Eight& a, float b) { return a * all_eight(b); }
CHIMERE_EIGHT Eight operator-(const Eight& a, float b) { return a - all_eight(b); }
CHIMERE_EIGHT Eight& operator+=(Eight& a, const Eight& b) { return a = a + b; }
CHIMERE_EIGHT Eight smaller(const Eight& a, const Eight& b) {
  return each_piece(a, b, [](const auto& x, const auto& y) { return x < y ? x : y; });
}
CHIMERE_EIGHT Eight larger(const Eight& a, const Eight& b) {
  return each_piece(a, b, [](const auto& x, const auto& y) { return x > y ? x : y; });
}
// Of `yes` where v <= limit, of `no` elsewhere.
CHIMERE_EIGHT Eight where_at_most(const Eight& v, float limit, const Eight& yes, const Eight& no) {
  Eight out;
  for (int k = 0; k < kPieces; ++k) out.p[k] = v.p[k] <= limit ? yes.p[k] : no.p[k];
  return out;
}

CHIMERE_EIGHT Eight where_below_zero(const Eight& v, const Eight& yes, const Eight& no) {
  Eight out;
  for (int k = 0; k < kPieces; ++k) out.p[k] = v.p[k] < 0.0f ? yes.p[k] : no.p[k];
  return out;
}

// Integers 0 to 255, as bytes: 2^23 leaves them in the lowest bits of a float.
CHIMERE_EIGHT void store_codes(const Eight& v, uint8_t* codes) {
  uint32_t bits[kEight];
  const Eight moved = v + all_eight(0x1p23f);
  std::memcpy(bits, &moved, sizeof bits);
  for (int l = 0; l < kEight; ++l) codes[l] = static_cast<uint8_t>(bits[l]);
}

// 1 / v, and 0 for 0.
CHIMERE_EIGHT Eight inverse_of_eight(const Eight& v) {
  Eight out;
  for (int k = 0; k < kPieces; ++k) out.p[k] = v.p[k] == 0.0f ? Eight::Piece{} : 1.0f / v.p[k];
  return out;
}

// The exponents of normal, positive floats.
CHIMERE_EIGHT Eight power_of_two_below(const Eight& v) {
  using Bits [[gnu::vector_size(sizeof(Eight::Piece))]] = int32_t;
  Eight out;
  for (int k = 0; k < kPieces; ++k) out.p[k] = Eight::Piece(Bits(v.p[k]) & 0x7F800000);
  return out;
}

CHIMERE_EIGHT float sum_of(const Eight& v) {
  using Four [[gnu::vector_size(16)]] = float;
  Four half[2];
  std::memcpy(half, &v, sizeof half);
  const Four sum = half[0] + half[1];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}
CHIMERE_EIGHT float largest_of(const Eight& v) {
  using Four [[gnu::vector_size(16)]] = float;
  Four half[2];
  std::memcpy(half, &v, sizeof half);
  Four most = half[0] > half[1] ? half[0] : half[1];
  Four other = __builtin_shufflevector(most, most, 2, 3, 0, 1);
  most = most > other ? most : other;
  other = __builtin_shufflevector(most, most, 1, 0, 3, 2);
  return std::max(most[0], other[0]);
}
CHIMERE_EIGHT float smallest_of(const Eight& v) { return -largest_of(all_eight(0.0f) - v); }

// The first lane of the least value. REQUIRES: none is NaN.
CHIMERE_EIGHT int least_lane(const Eight& v) {
  float x[kEight];
  store_eight(x, v);
  int best = 0;
  for (int l = 1; l < kEight; ++l) best = x[l] < x[best] ? l : best;
  return best;
}

// To the nearest integer, ties to even. REQUIRES: |v| < 2^22, where 1.5 * 2^23 leaves no bit for a fraction.
CHIMERE_EIGHT Eight rounded(const Eight& v) { return (v + all_eight(0x1.8p23f)) - all_eight(0x1.8p23f); }

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
