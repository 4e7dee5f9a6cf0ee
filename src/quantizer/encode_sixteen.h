// encode_sixteen.h  Sixteen integers of 16 bits at a time, for searches that need no more: sums are exact, so that the
// bits of a block are the same on every machine.
//
// Compiled once for each level, as encode_eight.h is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#else
#include "tensor/half.h"
#endif

#include "quantizer/encode_eight.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

inline constexpr int kSixteen = 16;

struct Sixteen {
  using Piece [[gnu::vector_size(2 * kSixteen / kPieces)]] = int16_t;
  Piece p[kPieces];
};

struct EightInts {
  using Piece [[gnu::vector_size(4 * kEight / kPieces)]] = int32_t;
  Piece p[kPieces];
};

template <class Vector, class Each>
CHIMERE_EIGHT Vector each_piece_of(const Vector& a, const Vector& b, Each each) {
  Vector v;
  for (int k = 0; k < kPieces; ++k) v.p[k] = each(a.p[k], b.p[k]);
  return v;
}

CHIMERE_EIGHT Sixteen all_sixteen(int16_t x) {
  Sixteen v;
  for (Sixteen::Piece& p : v.p) p = Sixteen::Piece{} + x;
  return v;
}
CHIMERE_EIGHT Sixteen operator+(const Sixteen& a, const Sixteen& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x + y; });
}
CHIMERE_EIGHT Sixteen operator-(const Sixteen& a, const Sixteen& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x - y; });
}
CHIMERE_EIGHT Sixteen operator&(const Sixteen& a, const Sixteen& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x & y; });
}
CHIMERE_EIGHT Sixteen operator|(const Sixteen& a, const Sixteen& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x | y; });
}
CHIMERE_EIGHT Sixteen smaller(const Sixteen& a, const Sixteen& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x < y ? x : y; });
}
CHIMERE_EIGHT Sixteen larger(const Sixteen& a, const Sixteen& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x > y ? x : y; });
}
template <int kBits>
CHIMERE_EIGHT Sixteen shifted_left(const Sixteen& a) {
  return each_piece_of(a, a, [](const auto& x, const auto&) { return x << kBits; });
}
template <int kBits>
CHIMERE_EIGHT Sixteen shifted_right(const Sixteen& a) {
  return each_piece_of(a, a, [](const auto& x, const auto&) { return x >> kBits; });
}

CHIMERE_EIGHT EightInts all_ints(int32_t x) {
  EightInts v;
  for (EightInts::Piece& p : v.p) p = EightInts::Piece{} + x;
  return v;
}
CHIMERE_EIGHT EightInts operator+(const EightInts& a, const EightInts& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x + y; });
}
CHIMERE_EIGHT EightInts operator-(const EightInts& a, const EightInts& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x - y; });
}
CHIMERE_EIGHT EightInts operator*(const EightInts& a, const EightInts& b) {
  return each_piece_of(a, b, [](const auto& x, const auto& y) { return x * y; });
}
CHIMERE_EIGHT Eight floats_of(const EightInts& v) {
  Eight out;
  for (int k = 0; k < kPieces; ++k) out.p[k] = __builtin_convertvector(v.p[k], Eight::Piece);
  return out;
}

// a * b / 2^15, to the nearest.
CHIMERE_EIGHT Sixteen scaled_product(const Sixteen& a, const Sixteen& b) {
  Sixteen out;
#ifdef __AVX2__
  out.p[0] = Sixteen::Piece(_mm256_mulhrs_epi16(__m256i(a.p[0]), __m256i(b.p[0])));
#else
  int16_t x[kSixteen], y[kSixteen];
  std::memcpy(x, &a, sizeof x);
  std::memcpy(y, &b, sizeof y);
  for (int l = 0; l < kSixteen; ++l) x[l] = static_cast<int16_t>((x[l] * y[l] + (1 << 14)) >> 15);
  std::memcpy(&out, x, sizeof x);
#endif
  return out;
}

// Products of lanes, neighbours added.
CHIMERE_EIGHT EightInts paired_products(const Sixteen& a, const Sixteen& b) {
  EightInts out;
#ifdef __AVX2__
  out.p[0] = EightInts::Piece(_mm256_madd_epi16(__m256i(a.p[0]), __m256i(b.p[0])));
#else
  int16_t x[kSixteen], y[kSixteen];
  int32_t sum[kEight];
  std::memcpy(x, &a, sizeof x);
  std::memcpy(y, &b, sizeof y);
  for (int l = 0; l < kEight; ++l) sum[l] = x[2 * l] * y[2 * l] + x[2 * l + 1] * y[2 * l + 1];
  std::memcpy(&out, sum, sizeof sum);
#endif
  return out;
}

// The sum of each of eight vectors, a lane each.
CHIMERE_EIGHT EightInts sums_of_each(const EightInts* v) {
  EightInts out;
#ifdef __AVX2__
  __m256i pair[4];
  for (int i = 0; i < 4; ++i) pair[i] = _mm256_hadd_epi32(__m256i(v[2 * i].p[0]), __m256i(v[2 * i + 1].p[0]));
  const __m256i low = _mm256_hadd_epi32(pair[0], pair[1]), high = _mm256_hadd_epi32(pair[2], pair[3]);
  out.p[0] = EightInts::Piece(
      _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)));
#else
  int32_t sum[kEight] = {};
  for (int i = 0; i < kEight; ++i) {
    int32_t lanes[kEight];
    std::memcpy(lanes, &v[i], sizeof lanes);
    for (const int32_t lane : lanes) sum[i] += lane;
  }
  std::memcpy(&out, sum, sizeof sum);
#endif
  return out;
}

// The largest of each of eight vectors, a lane each.
CHIMERE_EIGHT Eight largest_of_each(const Eight* v) {
  Eight out;
#ifdef __AVX2__
  __m256 pair[4];
  for (int i = 0; i < 4; ++i) {
    const __m256 a = v[2 * i].p[0], b = v[2 * i + 1].p[0];
    pair[i] = _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
  }
  __m256 four[2];
  for (int i = 0; i < 2; ++i) {
    const __m256 a = pair[2 * i], b = pair[2 * i + 1];
    four[i] = _mm256_max_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
  }
  out.p[0] =
      _mm256_max_ps(_mm256_permute2f128_ps(four[0], four[1], 0x20), _mm256_permute2f128_ps(four[0], four[1], 0x31));
#else
  float most[kEight];
  for (int l = 0; l < kEight; ++l) most[l] = largest_of(v[l]);
  out = load_eight(most);
#endif
  return out;
}

// To the nearest integers, ties to even. REQUIRES: they fit.
CHIMERE_EIGHT Sixteen sixteen_of(const Eight& a, const Eight& b) {
  Sixteen out;
#ifdef __AVX2__
  const __m256i packed = _mm256_packs_epi32(_mm256_cvtps_epi32(a.p[0]), _mm256_cvtps_epi32(b.p[0]));
  out.p[0] = Sixteen::Piece(_mm256_permute4x64_epi64(packed, 0xD8));
#else
  float x[kSixteen];
  int16_t y[kSixteen];
  store_eight(x, rounded(a));
  store_eight(x + kEight, rounded(b));
  for (int l = 0; l < kSixteen; ++l) y[l] = static_cast<int16_t>(static_cast<int32_t>(x[l]));
  std::memcpy(&out, y, sizeof y);
#endif
  return out;
}

// Their lowest bytes. REQUIRES: 0 to 255, or -128 to 127 where kSigned.
template <bool kSigned>
CHIMERE_EIGHT void store_bytes(const Sixteen& a, const Sixteen& b, void* to) {
#ifdef __AVX2__
  const __m256i packed = kSigned ? _mm256_packs_epi16(__m256i(a.p[0]), __m256i(b.p[0]))
                                 : _mm256_packus_epi16(__m256i(a.p[0]), __m256i(b.p[0]));
  const __m256i in_order = _mm256_permute4x64_epi64(packed, 0xD8);
  std::memcpy(to, &in_order, sizeof in_order);
#else
  int16_t x[2 * kSixteen];
  std::memcpy(x, &a, sizeof a);
  std::memcpy(x + kSixteen, &b, sizeof b);
  uint8_t bytes[2 * kSixteen];
  for (int l = 0; l < 2 * kSixteen; ++l) bytes[l] = static_cast<uint8_t>(x[l]);
  std::memcpy(to, bytes, sizeof bytes);
#endif
}

// Halves as halves are stored, to the nearest, ties to even. REQUIRES: none is too large for one.
CHIMERE_EIGHT void store_halves(const Eight& v, uint16_t* bits) {
#ifdef __AVX2__
  const __m128i halves = _mm256_cvtps_ph(v.p[0], _MM_FROUND_TO_NEAREST_INT);
  std::memcpy(bits, &halves, sizeof halves);
#else
  float x[kEight];
  store_eight(x, v);
  for (int l = 0; l < kEight; ++l) bits[l] = f32_to_f16(x[l]);
#endif
}
CHIMERE_EIGHT Eight load_halves(const uint16_t* bits) {
  Eight v;
#ifdef __AVX2__
  __m128i halves;
  std::memcpy(&halves, bits, sizeof halves);
  v.p[0] = _mm256_cvtph_ps(halves);
#else
  float x[kEight];
  for (int l = 0; l < kEight; ++l) x[l] = f16_to_f32(bits[l]);
  v = load_eight(x);
#endif
  return v;
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
