#include "tensor/half.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace chimere {
namespace {

static_assert(f16_to_f32(0x3C00) == 1.0f && f32_to_f16(-2.0f) == 0xC000, "usable in constant expressions");

bool is_nan16(uint16_t h) { return (h & 0x7FFF) > 0x7C00; }

// The definition, in double precision.
double half_value(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, EveryHalfDecodesExactlyAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const float f = f16_to_f32(h);
    if (is_nan16(h)) {
      ASSERT_TRUE(std::isnan(f)) << bits;
      ASSERT_EQ(f32_to_f16(f), h | 0x200) << bits;
      continue;
    }
    if ((h & 0x7FFF) == 0x7C00) {
      ASSERT_EQ(f, h & 0x8000 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
    } else {
      ASSERT_EQ(static_cast<double>(f), half_value(h)) << bits;
      ASSERT_EQ(std::signbit(f), (h & 0x8000) != 0) << bits;
    }
    ASSERT_EQ(f32_to_f16(f), h) << bits;
  }
}

// Between two neighbouring halves the nearer one is chosen, and the even one half way.
TEST(Half, RoundsToNearestEvenBetweenAllNeighbours) {
  for (uint16_t h = 0; h < 0x7BFF; ++h) {
    const float low = f16_to_f32(h), high = f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;  // exact: a float has 13 more bits
    const auto even = static_cast<uint16_t>(h & 1 ? h + 1 : h);
    ASSERT_EQ(f32_to_f16(middle), even) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), h) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), h + 1) << h;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << h;
  }
}

TEST(Half, OverflowsToInfinityAndUnderflowsToZero) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.99f), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);
  EXPECT_EQ(f32_to_f16(0x1.000002p-25f), 1);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::denorm_min()), 0x8000);
}

TEST(Half, RandomFloatsRoundToANearestHalf) {
  std::mt19937 rng(1);
  for (int k = 0; k < 1000000; ++k) {
    const float f = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    const uint16_t h = f32_to_f16(f);
    if (std::isnan(f)) {
      ASSERT_TRUE(is_nan16(h));
    } else if (std::fabs(f) >= 65520.0f) {
      ASSERT_EQ(h & 0x7FFF, 0x7C00);
    } else {
      const double error = std::fabs(half_value(h) - f);
      ASSERT_LE(error, std::fmax(std::fabs(static_cast<double>(f)) * 0x1p-11, 0x1p-25)) << f;
    }
  }
}

TEST(BFloat16, EveryValueComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<uint16_t>(bits);
    const bool nan = (b & 0x7FFF) > 0x7F80;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(b)), nan ? b | 0x40 : b) << bits;
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const uint32_t middle = (bits << 16) | 0x8000;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), bits + (bits & 1)) << bits;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), bits) << bits;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), bits + 1) << bits;
  }
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F800001u)), 0x7FC0) << "a NaN must not round to infinity";
}

}  // namespace
}  // namespace chimere
