// encode_digits_body.h  -1, 0 and 1 under one scale for 256 values: TQ1_0 and TQ2_0.
#pragma once

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_fit.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

// Digits 0, 1, 2.
StoredHalf encode_digits(const BlockInput& in, uint8_t* digits) {
  static constexpr auto kDivisors = spaced<16>(1.0f, 4.75f);  // rows that are ternary already are met exactly
  using Levels = IntegerLevels<-1, 1>;
  const StoredHalf d = store_half(in, fit_scale<Levels, 256>(in.x, in.w, kDivisors, 4).scale);
  write_codes<Levels, 256>(in.x, d.value, digits);
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
  uint8_t digits[256];
  out.d = encode_digits(in, digits).bits;
  for (int m = 0; m < 32; ++m) out.q[m] = packed_digits(digits + m, 32, 5);
  for (int m = 0; m < 16; ++m) out.q[32 + m] = packed_digits(digits + 160 + m, 16, 5);
  for (int m = 0; m < 4; ++m) out.qh[m] = packed_digits(digits + 240 + m, 4, 4);
}

void encode_block(const BlockInput& in, BlockTQ2_0& out) {
  uint8_t digits[256];
  out.d = encode_digits(in, digits).bits;
  pack_crumbs(digits, out.q);
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
