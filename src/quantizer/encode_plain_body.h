// encode_plain_body.h  Blocks of 32 values with one scale of their own: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL and
// MXFP4.
#pragma once

#include <cmath>

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_fit.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

constexpr int kPlain = 32;

template <class Levels, class Divisors>
StoredHalf encode_scaled(const BlockInput& in, const Divisors& divisors, uint8_t* codes) {
  const StoredHalf d = store_half(in, fit_scale<Levels, kPlain>(in.x, in.w, divisors, 3).scale);
  write_codes<Levels, kPlain>(in.x, d.value, codes);
  return d;
}

struct StoredPair {
  StoredHalf scale, base;
};

template <int kHigh, class Cuts>
StoredPair encode_paired(const BlockInput& in, const Cuts& cuts, uint8_t* codes) {
  const PairFit fit = fit_pair<kHigh, kPlain, false>(in.x, in.w, cuts, 3);
  // The base follows what rounding made of the scale: for the tiniest of values, nothing.
  const StoredHalf scale = store_half(in, fit.scale);
  const PairSums sums = measure_pair<kHigh, kPlain>(in.x, in.w, scale.value, fit.base);
  const StoredPair stored{scale, store_half(in, fit.base + sums.slope_base / sums.one)};
  write_pair_codes<kHigh, kPlain>(in.x, stored.scale.value, stored.base.value, codes);
  return stored;
}

// Elements i and i + 16 share a byte.
void pack_nibbles(const uint8_t* codes, uint8_t* q) {
  for (int i = 0; i < 16; ++i) q[i] = static_cast<uint8_t>((codes[i] & 15) | codes[i + 16] << 4);
}

uint32_t fifth_bits(const uint8_t* codes) {
  uint32_t bits = 0;
  for (int i = 0; i < kPlain; ++i) bits |= static_cast<uint32_t>(codes[i] >> 4) << i;
  return bits;
}

// 0, 1, 2, 3, 4, 6, 8, 12 and their negatives: steps of one up to 4, of two up to 8, then four.
struct Fp4Levels {
  static Eight nearest(Eight v) {
    const Eight zero = all_eight(0.0f), size = smaller(larger(v, zero - v), all_eight(12.0f));
    const Eight coarse = where_at_most(size, 8.0f, rounded(size * 0.5f) * 2.0f, rounded(size * 0.25f) * 4.0f);
    const Eight level = where_at_most(size, 4.0f, rounded(size), coarse);
    return where_at_most(v, 0.0f, zero - level, level);
  }
  static int code(float level) {
    const int size = static_cast<int>(std::fabs(level));
    return (size <= 4 ? size : size == 12 ? 7 : size / 2 + 2) | (level < 0.0f ? 8 : 0);
  }
};

}  // namespace

void encode_block(const BlockInput& in, BlockQ4_0& out) {
  static constexpr auto kDivisors = joined(spaced<11>(-10.6f, -7.2f), spaced<5>(6.8f, 9.2f));
  uint8_t codes[kPlain];
  out.d = encode_scaled<IntegerLevels<-8, 7>>(in, kDivisors, codes).bits;
  pack_nibbles(codes, out.q);
}

void encode_block(const BlockInput& in, BlockQ5_0& out) {
  static constexpr auto kDivisors = joined(spaced<11>(-18.2f, -15.4f), spaced<5>(14.8f, 16.8f));
  uint8_t codes[kPlain];
  out.d = encode_scaled<IntegerLevels<-16, 15>>(in, kDivisors, codes).bits;
  pack_nibbles(codes, out.q);
  out.h = fifth_bits(codes);
}

// With so many levels candidates differ by the luck of their roundings alone: the least error is looked for first, and
// only that scale fitted.
void encode_block(const BlockInput& in, BlockQ8_0& out) {
  static constexpr auto kDivisors = spaced<kEight>(-130.2f, -126.8f);
  using Levels = IntegerLevels<-128, 127>;
  const float peak = peak_of<kPlain>(in.x);
  float scales[kEight];
  for (size_t l = 0; l < kEight; ++l) scales[l] = peak / kDivisors[l];
  const float scale = scales[least_lane(scale_errors<Levels, kPlain>(in.x, in.w, load_eight(scales)))];
  const StoredHalf d = store_half(in, scale + measure<Levels, kPlain>(in.x, in.w, scale).step());
  uint8_t codes[kPlain];
  write_codes<Levels, kPlain>(in.x, d.value, codes);
  out.d = d.bits;
  for (int i = 0; i < kPlain; ++i) out.q[i] = static_cast<int8_t>(codes[i] - 128);
}

void encode_block(const BlockInput& in, BlockIQ4_NL& out) {
  static constexpr auto kDivisors = joined(spaced<17>(-160.0f, -108.0f), spaced<9>(98.0f, 138.0f));
  uint8_t codes[kPlain];
  out.d = encode_scaled<BookLevels>(in, kDivisors, codes).bits;
  pack_nibbles(codes, out.q);
}

// Scales are powers of two: of those that put the peak, in [1, 4), somewhere between 3 and 64, the best.
void encode_block(const BlockInput& in, BlockMXFP4& out) {
  static constexpr float kScales[kEight] = {0x1p-1f, 0x1p-2f, 0x1p-3f, 0x1p-4f, 0x1p-5f, 0x1p-5f, 0x1p-5f, 0x1p-5f};
  float best = 0.0f, least = INFINITY, error[kEight];
  store_eight(error, scale_errors<Fp4Levels, kPlain>(in.x, in.w, load_eight(kScales)));
  for (int l = 0; l < kEight; ++l) {
    if (error[l] < least) {
      least = error[l];
      best = kScales[l];
    }
  }
  const int exponent = std::clamp(std::ilogb(best) + std::ilogb(in.to_file) + 128, 0, 252);  // 12 * 2^125 is infinite
  out.e = static_cast<uint8_t>(exponent);
  uint8_t codes[kPlain];
  write_codes<Fp4Levels, kPlain>(in.x, mxfp4_scale(out.e) * in.from_file, codes);
  pack_nibbles(codes, out.q);
}

void encode_block(const BlockInput& in, BlockQ4_1& out) {
  static constexpr auto kCuts = all_cuts(spaced<4>(-0.3f, 1.2f), spaced<8>(-0.5f, 1.4f));
  uint8_t codes[kPlain];
  const StoredPair stored = encode_paired<15>(in, kCuts, codes);
  out.d = stored.scale.bits;
  out.m = stored.base.bits;
  pack_nibbles(codes, out.q);
}

void encode_block(const BlockInput& in, BlockQ5_1& out) {
  static constexpr auto kCuts = all_cuts(spaced<4>(-0.3f, 0.6f), spaced<8>(-0.5f, 0.9f));
  uint8_t codes[kPlain];
  const StoredPair stored = encode_paired<31>(in, kCuts, codes);
  out.d = stored.scale.bits;
  out.m = stored.base.bits;
  pack_nibbles(codes, out.q);
  out.h = fifth_bits(codes);
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
