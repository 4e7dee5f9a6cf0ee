// encode_plain_body.h  Blocks of 32 values with one scale of their own: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL and
// MXFP4.
#pragma once

#include <cmath>

#include "quantizer/encode_abreast.h"
#include "quantizer/encode_blocks.h"
#include "quantizer/encode_even.h"
#include "quantizer/encode_fit.h"
#include "quantizer/encode_sixteen.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

constexpr int kPlain = 32;

// Eight blocks, each in units of its own as in BlockInput. Where a block is too small for any scale, both factors are 0.
struct PlainGroup : Abreast<kPlain> {
  Eight to_file, from_file;
};

void load_group(const float* const* x, const float* const* w, float vanishing, PlainGroup& out) {
  set_columns<kPlain>(x, out.x);
  if (w) {
    set_columns<kPlain>(w, out.w);
  } else {
    for (Eight& weight : out.w) weight = all_eight(1.0f);
  }
  const Eight peak = peaks_of(out), zero = all_eight(0.0f), size = larger(peak, zero - peak);
  const Eight power = smaller(power_of_two_below(size), all_eight(0x1p126f));
  out.to_file = where_below_zero(size - vanishing, zero, power);
  out.from_file = inverse_of_eight(out.to_file);
  for (Eight& value : out.x) value = value * out.from_file;
}

template <class Levels, class Divisors>
StoredScales fit_weighted_scales(const float* const* x, const float* const* w, const Divisors& divisors) {
  PlainGroup group;
  load_group(x, w, kVanishingRange, group);
  return stored_scales(fit_scales<Levels>(group, divisors, 3).scale * group.to_file);
}

// Codes of sixteen values, from 0.
template <class Levels>
CHIMERE_EIGHT Sixteen codes_of(const float* x, float base, float inverse) {
  const Eight low = all_eight(base), factor = all_eight(inverse);
  const auto level = [&](const float* at) { return Levels::nearest((load_eight(at) - low) * factor); };
  return sixteen_of(level(x), level(x + kEight)) - all_sixteen(Levels::kFirstCode);
}

// Elements i and i + 16 share a byte.
CHIMERE_EIGHT void pack_nibbles(const Sixteen& first, const Sixteen& second, uint8_t* q) {
  const Sixteen low = all_sixteen(15);
  const Sixteen bytes = (first & low) | shifted_left<4>(second & low);
  uint8_t twice[32];
  store_bytes<false>(bytes, bytes, twice);
  std::memcpy(q, twice, 16);
}

CHIMERE_EIGHT uint32_t fifth_bits(const Sixteen& first, const Sixteen& second) {
  uint8_t codes[32];
  store_bytes<false>(first, second, codes);
#ifdef __AVX2__
  __m256i bytes;
  std::memcpy(&bytes, codes, sizeof codes);
  return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, 3)));
#else
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<uint32_t>(codes[i] >> 4) << i;
  return bits;
#endif
}

struct PairedCodes {
  StoredHalf scale, base;
  Sixteen first, second;
};

template <int kHigh, class Cuts>
PairedCodes encode_paired(const BlockInput& in, const Cuts& cuts) {
  const PairFit fit = fit_pair<kHigh, kPlain, false>(in.x, in.w, cuts, 3);
  // The base follows what rounding made of the scale: for the tiniest of values, nothing.
  const StoredHalf scale = store_half(in, fit.scale);
  const PairSums sums = measure_pair<kHigh, kPlain>(in.x, in.w, scale.value, fit.base);
  const StoredHalf base = store_half(in, fit.base + sums.slope_base / sums.one);
  using Levels = IntegerLevels<0, kHigh>;
  const float inverse = inverse_of(scale.value);
  return {scale, base, codes_of<Levels>(in.x, base.value, inverse), codes_of<Levels>(in.x + 16, base.value, inverse)};
}

// 0, 1, 2, 3, 4, 6, 8, 12 and their negatives: steps of one up to 4, of two up to 8, then four.
struct Fp4Levels {
  static Eight nearest(Eight v) {
    const Eight zero = all_eight(0.0f), size = smaller(larger(v, zero - v), all_eight(12.0f));
    const Eight coarse = where_at_most(size, 8.0f, rounded(size * 0.5f) * 2.0f, rounded(size * 0.25f) * 4.0f);
    const Eight level = where_at_most(size, 4.0f, rounded(size), coarse);
    return where_at_most(v, 0.0f, zero - level, level);
  }
  static Eight code(const Eight& level) {
    const Eight zero = all_eight(0.0f), size = larger(level, zero - level);
    const Eight coarse = where_at_most(size, 8.0f, size * 0.5f + all_eight(2.0f), all_eight(7.0f));
    return where_at_most(size, 4.0f, size, coarse) + where_below_zero(level, all_eight(8.0f), zero);
  }
};

Sixteen fp4_codes(const float* x, float from_file, float inverse) {
  const auto code = [&](const float* at) {
    return Fp4Levels::code(Fp4Levels::nearest(load_eight(at) * from_file * inverse));
  };
  return sixteen_of(code(x), code(x + kEight));
}

}  // namespace

void encode_group(const float* const* x, const float* const* w, BlockQ4_0* out) {
  static constexpr auto kEvenDivisors = spaced<6>(-9.4f, -7.4f);
  static constexpr auto kDivisors = joined(spaced<11>(-10.6f, -7.2f), spaced<5>(6.8f, 9.2f));
  using Levels = IntegerLevels<-8, 7>;
  const StoredScales d =
      w ? fit_weighted_scales<Levels>(x, w, kDivisors) : fit_even_scales<-8, 7, 11>(x, kEvenDivisors);
  for (int b = 0; b < kAbreast; ++b) {
    out[b].d = d.bits[b];
    pack_nibbles(codes_of<Levels>(x[b], 0.0f, d.inverse[b]), codes_of<Levels>(x[b] + 16, 0.0f, d.inverse[b]), out[b].q);
  }
}

void encode_group(const float* const* x, const float* const* w, BlockQ5_0* out) {
  static constexpr auto kEvenDivisors = spaced<12>(-18.2f, -15.2f);
  static constexpr auto kDivisors = joined(spaced<11>(-18.2f, -15.4f), spaced<5>(14.8f, 16.8f));
  using Levels = IntegerLevels<-16, 15>;
  const StoredScales d =
      w ? fit_weighted_scales<Levels>(x, w, kDivisors) : fit_even_scales<-16, 15, 10>(x, kEvenDivisors);
  for (int b = 0; b < kAbreast; ++b) {
    const Sixteen first = codes_of<Levels>(x[b], 0.0f, d.inverse[b]);
    const Sixteen second = codes_of<Levels>(x[b] + 16, 0.0f, d.inverse[b]);
    out[b].d = d.bits[b];
    pack_nibbles(first, second, out[b].q);
    out[b].h = fifth_bits(first, second);
  }
}

void encode_group(const float* const* x, const float* const* w, BlockQ8_0* out) {
  static constexpr auto kDivisors = spaced<12>(-130.2f, -126.8f);
  using Levels = IntegerLevels<-128, 127>;
  StoredScales d;
  if (w) {
    PlainGroup group;
    load_group(x, w, kVanishingRange, group);
    d = stored_scales(fit_fine_scales<Levels>(group, kDivisors) * group.to_file);
  } else {
    d = fit_even_scales<-128, 127, 7>(x, kDivisors);
  }
  const Sixteen middle = all_sixteen(128);
  for (int b = 0; b < kAbreast; ++b) {
    out[b].d = d.bits[b];
    store_bytes<true>(codes_of<Levels>(x[b], 0.0f, d.inverse[b]) - middle,
                      codes_of<Levels>(x[b] + 16, 0.0f, d.inverse[b]) - middle, out[b].q);
  }
}

void encode_group(const float* const* x, const float* const* w, BlockIQ4_NL* out) {
  static constexpr auto kDivisors = joined(spaced<17>(-160.0f, -108.0f), spaced<9>(98.0f, 138.0f));
  const StoredScales d = fit_weighted_scales<BookLevels>(x, w, kDivisors);
  for (int b = 0; b < kAbreast; ++b) {
    uint8_t codes[kPlain];
    write_codes<BookLevels, kPlain>(x[b], d.inverse[b], codes);
    out[b].d = d.bits[b];
    for (int i = 0; i < 16; ++i) out[b].q[i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
  }
}

// Scales are powers of two: of those that put the peak, in [1, 2), somewhere between 2 and 64, the best. The exponents of
// the file go down to where a float's inverse would overflow.
void encode_group(const float* const* x, const float* const* w, BlockMXFP4* out) {
  PlainGroup group;
  load_group(x, w, 0x1p-126f, group);
  Eight least = all_eight(INFINITY), best = all_eight(0.0f);
  for (int halvings = 1; halvings <= 5; ++halvings) {
    const Eight error = errors_abreast<Fp4Levels>(group, all_eight(1.0f / static_cast<float>(1 << halvings)));
    best = where_below_zero(error - least, all_eight(static_cast<float>(halvings)), best);
    least = smaller(error, least);
  }
  float halvings[kAbreast], to_file[kAbreast], from_file[kAbreast];
  store_eight(halvings, best);
  store_eight(to_file, group.to_file);
  store_eight(from_file, group.from_file);
  for (int b = 0; b < kAbreast; ++b) {
    out[b] = {};
    if (to_file[b] == 0.0f) continue;
    const int peak = static_cast<int>(std::bit_cast<uint32_t>(to_file[b]) >> 23);
    out[b].e = static_cast<uint8_t>(std::clamp(peak + 1 - static_cast<int>(halvings[b]), 0, 252));  // 253 is infinite
    const float inverse = inverse_of(mxfp4_scale(out[b].e) * from_file[b]);
    pack_nibbles(fp4_codes(x[b], from_file[b], inverse), fp4_codes(x[b] + 16, from_file[b], inverse), out[b].q);
  }
}

// Without weights.
void encode_group(const float* const* x, BlockQ4_1* out) {
  static constexpr std::array<PairCut, 2> kCuts = {{{0.1f, 0.5f}, {0.5f, 0.1f}}};
  const StoredPairs pair = fit_even_pairs<15, 10>(x, kCuts);
  using Levels = IntegerLevels<0, 15>;
  for (int b = 0; b < kAbreast; ++b) {
    out[b].d = pair.scale.bits[b];
    out[b].m = pair.base_bits[b];
    pack_nibbles(codes_of<Levels>(x[b], pair.base[b], pair.scale.inverse[b]),
                 codes_of<Levels>(x[b] + 16, pair.base[b], pair.scale.inverse[b]), out[b].q);
  }
}

void encode_group(const float* const* x, BlockQ5_1* out) {
  static constexpr auto kCuts = all_cuts(spaced<3>(-0.1f, 0.5f), spaced<3>(-0.1f, 0.5f));
  const StoredPairs pair = fit_even_pairs<31, 9>(x, kCuts);
  using Levels = IntegerLevels<0, 31>;
  for (int b = 0; b < kAbreast; ++b) {
    const Sixteen first = codes_of<Levels>(x[b], pair.base[b], pair.scale.inverse[b]);
    const Sixteen second = codes_of<Levels>(x[b] + 16, pair.base[b], pair.scale.inverse[b]);
    out[b].d = pair.scale.bits[b];
    out[b].m = pair.base_bits[b];
    pack_nibbles(first, second, out[b].q);
    out[b].h = fifth_bits(first, second);
  }
}

// With weights.
void encode_block(const BlockInput& in, BlockQ4_1& out) {
  static constexpr auto kCuts = all_cuts(spaced<4>(-0.3f, 1.2f), spaced<8>(-0.5f, 1.4f));
  const PairedCodes paired = encode_paired<15>(in, kCuts);
  out.d = paired.scale.bits;
  out.m = paired.base.bits;
  pack_nibbles(paired.first, paired.second, out.q);
}

void encode_block(const BlockInput& in, BlockQ5_1& out) {
  static constexpr auto kCuts = all_cuts(spaced<4>(-0.3f, 0.6f), spaced<8>(-0.5f, 0.9f));
  const PairedCodes paired = encode_paired<31>(in, kCuts);
  out.d = paired.scale.bits;
  out.m = paired.base.bits;
  pack_nibbles(paired.first, paired.second, out.q);
  out.h = fifth_bits(paired.first, paired.second);
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
