// encode_digits_body.h  -1, 0 and 1 under one scale for 256 values: TQ1_0 and TQ2_0.
//
// What a threshold leaves non-zero has its best scale in a mean: with A the sum of w |x| over the values above it and B
// that of w, the scale is A / B, and A^2 / B is what the error falls by. So thresholds are tried, not scales, and the
// codes follow from the scale that is stored.
#pragma once

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_fit.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

constexpr int kDigits = 256;

// Digits 0, 1, 2.
StoredHalf encode_digits(const BlockInput& in, uint8_t* digits) {
  // Shares of the peak. Rows that are ternary already are met exactly by each of them.
  static constexpr auto kShares = spaced<16>(0.1f, 0.55f);
  const Eight zero = all_eight(0.0f);
  Eight peaks = zero;
  for (int i = 0; i < kDigits; i += kEight)
    peaks = larger(peaks, larger(load_eight(in.x + i), zero - load_eight(in.x + i)));
  const float peak = largest_of(peaks);
  float most = 0.0f, scale = 0.0f;
  for (const float share : kShares) {
    const Eight threshold = all_eight(share * peak);
    Eight a = zero, b = zero;
    for (int i = 0; i < kDigits; i += kEight) {
      const Eight x = load_eight(in.x + i), w = load_eight(in.w + i), size = larger(x, zero - x);
      const Eight counted = where_below_zero(threshold - size, w, zero);
      a += counted * size;
      b += counted;
    }
    const float sum = sum_of(a), weight = sum_of(b);
    if (sum * sum > most * weight) {
      most = sum * sum / weight;
      scale = sum / weight;
    }
  }
  using Levels = IntegerLevels<-1, 1>;
  for (int round = 0; round < 2; ++round) scale += measure<Levels, kDigits>(in.x, in.w, scale).step();
  const StoredHalf d = store_half(in, scale);
  write_codes<Levels, kDigits>(in.x, inverse_of(d.value), digits);
  return d;
}

// Five digits, `stride` apart, as a fraction in base 3 of a byte, rounded up: see tq1_0_digit.
uint8_t packed_digits(const uint8_t* digits, int stride, int count) {
  int value = 0;
  for (int n = 0; n < 5; ++n) value = 3 * value + (n < count ? digits[stride * n] : 0);
  return static_cast<uint8_t>((value * 256 + 242) / 243);
}

}  // namespace

void encode_block(const BlockInput& in, BlockTQ1_0& out) {
  uint8_t digits[kDigits];
  out.d = encode_digits(in, digits).bits;
  for (int m = 0; m < 32; ++m) out.q[m] = packed_digits(digits + m, 32, 5);
  for (int m = 0; m < 16; ++m) out.q[32 + m] = packed_digits(digits + 160 + m, 16, 5);
  for (int m = 0; m < 4; ++m) out.qh[m] = packed_digits(digits + 240 + m, 4, 4);
}

void encode_block(const BlockInput& in, BlockTQ2_0& out) {
  uint8_t digits[kDigits];
  out.d = encode_digits(in, digits).bits;
  pack_crumbs(digits, out.q);
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
