#include "tensor/quantize.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace chimere {
namespace {

// Rows of magnitudes from 1e-6 to 1e5, so that scales range from denormal halves to large ones.
std::vector<float> random_row(uint32_t seed, int elems) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(elems));
  for (size_t i = 0; i < x.size(); ++i) {
    const int decade = static_cast<int>((i / 32) % 12) - 6;
    x[i] = normal(rng) * std::pow(10.0f, static_cast<float>(decade));
  }
  return x;
}

std::vector<float> round_trip(DType type, const std::vector<float>& x) {
  const auto elems = static_cast<int64_t>(x.size());
  std::vector<std::byte> bytes(row_bytes(type, x.size()) + 1);
  quantize_row(type, x.data(), bytes.data() + 1, elems);  // an odd address must do
  std::vector<float> y(x.size());
  dequantize_row(type, bytes.data() + 1, y.data(), elems);
  return y;
}

float largest(const float* x, int n) {
  float m = 0;
  for (int i = 0; i < n; ++i) m = std::fmax(m, std::fabs(x[i]));
  return m;
}

TEST(Quantize, F32IsACopy) {
  const std::vector<float> x = random_row(1, 1000);
  EXPECT_EQ(round_trip(DType::F32, x), x);
}

TEST(Quantize, HalvesRoundToNearest) {
  const std::vector<float> x = random_row(2, 1000);
  const std::vector<float> f16 = round_trip(DType::F16, x), bf16 = round_trip(DType::BF16, x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(f16[i], f16_to_f32(f32_to_f16(x[i])));
    EXPECT_LE(std::fabs(bf16[i] - x[i]), std::fabs(x[i]) * 0x1p-8f);
  }
}

TEST(Quantize, Q8_0ErrorIsHalfAStep) {
  const std::vector<float> x = random_row(3, 32 * 12 * 20);
  const std::vector<float> y = round_trip(DType::Q8_0, x);
  for (size_t b = 0; b < x.size(); b += 32) {
    const float step = largest(&x[b], 32) / 127;
    // The step is stored as a half, whose denormals are 2^-24 apart; the ends of the range then move by 127 of those.
    const float bound = step * 0.5f * 1.001f + 127 * 0x1p-25f;
    for (size_t i = b; i < b + 32; ++i) ASSERT_LE(std::fabs(y[i] - x[i]), bound) << "element " << i << " of " << x[i];
  }
}

TEST(Quantize, Q4_0ErrorIsHalfAStepExceptAtTheMissingEnd) {
  std::vector<float> x = random_row(4, 32 * 12 * 20);
  const std::vector<float> y = round_trip(DType::Q4_0, x);
  for (size_t b = 0; b < x.size(); b += 32) {
    // Codes reach -8 to 7: values near the end opposite to the largest element may be off by one step.
    const float step = largest(&x[b], 32) / 8;
    for (size_t i = b; i < b + 32; ++i) {
      ASSERT_LE(std::fabs(y[i] - x[i]), step * 1.004f + 8 * 0x1p-25f) << "element " << i << " of " << x[i];
      if (std::fabs(x[i]) < 7 * step) {
        ASSERT_LE(std::fabs(y[i] - x[i]), step * 0.504f + 8 * 0x1p-25f) << i;
      }
    }
  }
}

TEST(Quantize, KnownBlocks) {
  float x[32] = {};
  x[0] = 127.0f, x[1] = -64.4f, x[2] = 0.5f, x[3] = 1.5f, x[31] = -127.0f;
  BlockQ8_0 q8;
  quantize_row(DType::Q8_0, x, reinterpret_cast<std::byte*>(&q8), 32);
  EXPECT_EQ(f16_to_f32(q8.d), 1.0f);
  EXPECT_EQ(q8.q[0], 127);
  EXPECT_EQ(q8.q[1], -64);
  EXPECT_EQ(q8.q[2], 0) << "ties go to even";
  EXPECT_EQ(q8.q[3], 2) << "ties go to even";
  EXPECT_EQ(q8.q[31], -127);

  float w[32] = {};
  w[0] = -8.0f, w[1] = 7.0f, w[2] = 7.9f, w[16] = -2.6f;
  BlockQ4_0 q4;
  quantize_row(DType::Q4_0, w, reinterpret_cast<std::byte*>(&q4), 32);
  EXPECT_EQ(f16_to_f32(q4.d), 1.0f);
  EXPECT_EQ(q4.q[0], 0 | 5 << 4);
  EXPECT_EQ(q4.q[1], 15 | 8 << 4);
  EXPECT_EQ(q4.q[2], 15 | 8 << 4) << "the code saturates";
}

TEST(Quantize, ZerosStayZero) {
  const std::vector<float> zeros(64, 0.0f);
  for (const DTypeInfo& type : all_dtypes()) {
    if (!can_quantize(type.type)) continue;
    for (const float y : round_trip(type.type, zeros)) EXPECT_EQ(y, 0.0f) << type.name;
  }
}

TEST(Quantize, OutliersAreCutNotPropagated) {
  std::vector<float> x(32, 1.0f);
  x[5] = 1e30f;
  for (const DType type : {DType::Q8_0, DType::Q4_0}) {
    const std::vector<float> y = round_trip(type, x);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_TRUE(std::isfinite(y[i])) << name(type) << " element " << i;
    EXPECT_GE(y[5], 4e5f) << name(type);
  }
}

// What a format can express survives a second pass unchanged.
TEST(Quantize, IsIdempotent) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (!can_quantize(type.type)) continue;
    const std::vector<float> once = round_trip(type.type, random_row(5, 32 * 12));
    EXPECT_EQ(round_trip(type.type, once), once) << type.name;
  }
}

}  // namespace
}  // namespace chimere
