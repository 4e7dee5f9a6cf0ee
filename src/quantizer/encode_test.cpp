// Encoders against the decoder: errors under bounds that are argued, no byte of codes that could be better, hostile
// rows.
#include "quantizer/encode.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/dequantize.h"
#include "tensor/quant_blocks.h"

namespace chimere::quantizer {
namespace {

constexpr int64_t kCols = 512;

struct EncodedType {
  DType type;
  // The relative error of the best grid for gaussians that has no more bits (Lloyd-Max: 2 levels 0.363, 3 0.1905, 4
  // 0.1175, 8 0.0345, 16 0.0095, 32 0.0025, 64 0.00065, 256 0.00004). A block follows its own scale on top of that.
  double gaussian_error;
  // Bytes of a block that hold codes: [from, to), less byte `period - 1` of each `period`, which holds scales.
  size_t from, to;
  size_t period = 0;
};

#define CHIMERE_CODES(Block, first, last) offsetof(Block, first), offsetof(Block, last) + sizeof(Block::last)
const EncodedType kTypes[] = {
    {DType::Q4_0, 0.0095, CHIMERE_CODES(BlockQ4_0, q, q)},
    {DType::Q4_1, 0.0095, CHIMERE_CODES(BlockQ4_1, q, q)},
    {DType::Q5_0, 0.0025, CHIMERE_CODES(BlockQ5_0, h, q)},
    {DType::Q5_1, 0.0025, CHIMERE_CODES(BlockQ5_1, h, q)},
    {DType::Q8_0, 0.00004, CHIMERE_CODES(BlockQ8_0, q, q)},
    {DType::Q2_K, 0.1175, CHIMERE_CODES(BlockQ2_K, q, q)},
    {DType::Q3_K, 0.0345, CHIMERE_CODES(BlockQ3_K, hmask, q)},
    {DType::Q4_K, 0.0095, CHIMERE_CODES(BlockQ4_K, q, q)},
    {DType::Q5_K, 0.0025, CHIMERE_CODES(BlockQ5_K, h, q)},
    {DType::Q6_K, 0.00065, CHIMERE_CODES(BlockQ6_K, ql, qh)},
    {DType::IQ4_NL, 0.0095, CHIMERE_CODES(BlockIQ4_NL, q, q)},
    {DType::IQ4_XS, 0.0095, CHIMERE_CODES(BlockIQ4_XS, q, q)},
    {DType::IQ3_S, 0.0345, CHIMERE_CODES(BlockIQ3_S, q, signs)},
    {DType::IQ3_XXS, 0.0345, CHIMERE_CODES(BlockIQ3_XXS, q, a), 4},
    {DType::IQ2_S, 0.1175, CHIMERE_CODES(BlockIQ2_S, q, qh)},
    {DType::IQ2_XS, 0.1175, CHIMERE_CODES(BlockIQ2_XS, q, q)},
    {DType::IQ2_XXS, 0.1175, CHIMERE_CODES(BlockIQ2_XXS, sub, sub), 8},
    {DType::IQ1_S, 0.363, CHIMERE_CODES(BlockIQ1_S, q, h), 2},
    {DType::IQ1_M, 0.363, CHIMERE_CODES(BlockIQ1_M, q, qh)},
    // Scales that are powers of two miss by up to a quarter of their logarithm.
    {DType::MXFP4, 0.0345, CHIMERE_CODES(BlockMXFP4, q, q)},
    {DType::TQ1_0, 0.1905, CHIMERE_CODES(BlockTQ1_0, q, qh)},
    {DType::TQ2_0, 0.1905, CHIMERE_CODES(BlockTQ2_0, q, q)},
};
#undef CHIMERE_CODES

std::vector<float> gaussian_rows(int64_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = 0.05f * normal(rng);
  return out;
}

std::vector<float> heavy_rows(int64_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::student_t_distribution<float> student(3.0f);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = 0.05f * student(rng);
  return out;
}

std::vector<float> uneven_weights(int64_t n, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::lognormal_distribution<float> lognormal(0.0f, 1.5f);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = lognormal(rng);
  return out;
}

std::vector<std::byte> encoded(DType type, const std::vector<float>& rows, const float* weights) {
  const int64_t n_rows = static_cast<int64_t>(rows.size()) / kCols;
  std::vector<std::byte> out(static_cast<size_t>(n_rows) * row_bytes(type, kCols));
  encode_rows(type, n_rows, kCols, rows.data(), weights, out.data());
  return out;
}

std::vector<float> decoded(DType type, const std::vector<std::byte>& blocks) {
  const DTypeInfo& t = info(type);
  std::vector<float> out(blocks.size() / static_cast<size_t>(t.block_bytes) * static_cast<size_t>(t.block_elems));
  dequantize_row(type, blocks.data(), out.data(), static_cast<int64_t>(out.size()));
  return out;
}

double squared_error(const float* x, const float* y, const float* weights, size_t n) {
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const double miss = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += miss * miss * (weights ? static_cast<double>(weights[i % kCols]) : 1.0);
  }
  return sum;
}

double relative_error(const std::vector<float>& x, const std::vector<float>& y, const float* weights) {
  const std::vector<float> zeros(x.size());
  return squared_error(x.data(), y.data(), weights, x.size()) /
         squared_error(x.data(), zeros.data(), weights, x.size());
}

double round_trip(DType type, const std::vector<float>& rows, const float* weights) {
  return relative_error(rows, decoded(type, encoded(type, rows, weights)), weights);
}

bool all_finite(const std::vector<float>& values) {
  for (const float v : values) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

class Encoders : public testing::TestWithParam<EncodedType> {};

TEST_P(Encoders, BeatTheBestFixedGridOnGaussians) {
  const std::vector<float> rows = gaussian_rows(8 * kCols, 1);
  EXPECT_LT(round_trip(GetParam().type, rows, nullptr), GetParam().gaussian_error);
}

// Tails are spread over more of the range, so errors are larger, though blocks keep them to themselves.
TEST_P(Encoders, KeepHeavyTailsInTheirBlocks) {
  const std::vector<float> rows = heavy_rows(8 * kCols, 2);
  EXPECT_LT(round_trip(GetParam().type, rows, nullptr), 2.5 * GetParam().gaussian_error);
}

TEST_P(Encoders, FollowTheWeights) {
  const DType type = GetParam().type;
  const std::vector<float> rows = gaussian_rows(8 * kCols, 3), w = uneven_weights(kCols, 4);
  const double with = relative_error(rows, decoded(type, encoded(type, rows, w.data())), w.data());
  const double without = relative_error(rows, decoded(type, encoded(type, rows, nullptr)), w.data());
  EXPECT_LT(with, without);
}

// For the scales that were chosen: of all values that a byte of codes can have, none errs less.
TEST_P(Encoders, NoByteOfCodesCouldBeBetter) {
  const auto [asked, ignored, from, to, period] = GetParam();
  const DType type = asked;  // clang 14 captures no binding
  const size_t block_bytes = static_cast<size_t>(info(type).block_bytes),
               elems = static_cast<size_t>(info(type).block_elems);
  const std::vector<float> rows = heavy_rows(kCols, 5), w = uneven_weights(kCols, 6);
  std::vector<std::byte> blocks = encoded(type, rows, w.data());
  std::vector<float> y(elems);
  const auto error = [&](size_t b) {
    dequantize_row(type, blocks.data() + b * block_bytes, y.data(), static_cast<int64_t>(elems));
    return squared_error(rows.data() + b * elems, y.data(), w.data() + b * elems, elems);
  };
  for (size_t b = 0; b < kCols / elems; ++b) {
    const double chosen = error(b);
    for (size_t i = from; i < to; ++i) {
      if (period && (i - from) % period == period - 1) continue;
      std::byte& byte = blocks[b * block_bytes + i];
      const std::byte before = byte;
      for (int value = 0; value < 256; ++value) {
        if (type == DType::TQ2_0 && (value & value >> 1 & 0x55)) continue;  // 3 is no code of a ternary type
        byte = static_cast<std::byte>(value);
        // Ties are decided by roundings of the block's own units.
        ASSERT_GE(error(b), chosen * (1.0 - 1e-5)) << "block " << b << ", byte " << i << ": " << value;
      }
      byte = before;
    }
  }
}

// What was decoded lies on a grid that the type has, so that encoding it again must lose far less than the first time.
TEST_P(Encoders, EncodeDecodedValuesAgainAtLittleLoss) {
  const DType type = GetParam().type;
  const std::vector<float> rows = gaussian_rows(4 * kCols, 7);
  const std::vector<float> once = decoded(type, encoded(type, rows, nullptr));
  EXPECT_LT(round_trip(type, once, nullptr), 0.5 * relative_error(rows, once, nullptr));
}

TEST_P(Encoders, KeepZerosZeroAndConstantsNear) {
  const DType type = GetParam().type;
  for (const float y : decoded(type, encoded(type, std::vector<float>(kCols), nullptr))) EXPECT_EQ(y, 0.0f);
  for (const float constant : {1.0f, -1.0f, 0.007f, -300.0f}) {
    EXPECT_LT(round_trip(type, std::vector<float>(kCols, constant), nullptr), GetParam().gaussian_error) << constant;
  }
}

TEST_P(Encoders, ARowDependsOnItselfAlone) {
  const DType type = GetParam().type;
  const std::vector<float> rows = heavy_rows(3 * kCols, 8), w = uneven_weights(kCols, 9);
  const std::vector<std::byte> together = encoded(type, rows, w.data());
  const size_t bytes = row_bytes(type, kCols);
  for (size_t row = 0; row < 3; ++row) {
    const std::vector<float> one(rows.begin() + static_cast<std::ptrdiff_t>(row * kCols),
                                 rows.begin() + static_cast<std::ptrdiff_t>((row + 1) * kCols));
    EXPECT_EQ(std::memcmp(encoded(type, one, w.data()).data(), together.data() + row * bytes, bytes), 0) << row;
  }
}

// The scale of values and that of weights change nothing but the scale of the result.
TEST_P(Encoders, ScaleWithPowersOfTwo) {
  const DType type = GetParam().type;
  std::vector<float> rows = gaussian_rows(kCols, 10), w = uneven_weights(kCols, 11);
  for (float& v : rows) v *= 64.0f;  // so that no half is denormal
  const std::vector<float> y = decoded(type, encoded(type, rows, w.data()));
  for (float& v : rows) v *= 16.0f;
  for (float& v : w) v *= 0x1p-90f;
  const std::vector<float> larger = decoded(type, encoded(type, rows, w.data()));
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(16.0f * y[i], larger[i]) << i;
}

TEST_P(Encoders, HostileValuesStayFinite) {
  const DType type = GetParam().type;
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> base = gaussian_rows(kCols, 12), uneven = uneven_weights(kCols, 13);
  std::vector<std::vector<float>> cases(8, base);
  cases[0][17] = 1e30f;
  cases[1][300] = -largest;
  for (float& v : cases[2]) v *= 1e38f;
  for (float& v : cases[3]) v *= 1e-40f;
  for (float& v : cases[4]) v *= 1e-6f;
  for (float& v : cases[5]) v *= 1e7f;
  for (float& v : cases[6]) v = std::copysign(largest, v);
  for (size_t i = 0; i < kCols; ++i) cases[7][i] = i % 32 ? 0.0f : std::numeric_limits<float>::denorm_min();
  const std::vector<float> zero(kCols), large(kCols, largest);
  std::vector<float> few_columns(kCols);
  for (size_t i = 0; i < kCols; i += 40) few_columns[i] = 1e-30f;
  const std::vector<float>& few = few_columns;
  for (size_t c = 0; c < cases.size(); ++c) {
    for (const std::vector<float>* weights : {&uneven, &zero, &few, &large}) {
      const std::vector<float> y = decoded(type, encoded(type, cases[c], weights->data()));
      EXPECT_TRUE(all_finite(y)) << "case " << c;
      const double error = squared_error(cases[c].data(), y.data(), nullptr, kCols);
      const double energy = squared_error(cases[c].data(), std::vector<float>(kCols).data(), nullptr, kCols);
      EXPECT_LE(error, energy * (weights == &few ? 4.0 : 1.0)) << "case " << c << ": worse than zeros";
    }
  }
}

// Codebooks of magnitudes have no zero: the smallest level of all others in its sub-block stands against a lone value.
// With n others, the largest level a and the smallest b, the best scale leaves n b^2 / (a^2 + n b^2) of the energy.
double lone_value_error(DType type) {
  const auto share = [](double others, double largest, double smallest) {
    return others * smallest * smallest / (largest * largest + others * smallest * smallest);
  };
  switch (type) {
    case DType::IQ2_XXS: return share(31, 43, 8);
    case DType::IQ2_XS:
    case DType::IQ2_S: return share(15, 43, 8);
    case DType::IQ3_XXS: return share(31, 62, 4);
    case DType::IQ3_S: return share(31, 15, 1);
    default: return 0.0;
  }
}

TEST_P(Encoders, AnOutlierSpoilsNoOtherBlock) {
  const DType type = GetParam().type;
  const size_t elems = static_cast<size_t>(info(type).block_elems);
  std::vector<float> rows = gaussian_rows(kCols, 14);
  const std::vector<float> calm = decoded(type, encoded(type, rows, nullptr));
  rows[3] = 1000.0f;
  const std::vector<float> y = decoded(type, encoded(type, rows, nullptr));
  EXPECT_LT(relative_error(rows, y, nullptr), GetParam().gaussian_error + lone_value_error(type));
  for (size_t i = elems; i < kCols; ++i) EXPECT_EQ(y[i], calm[i]) << i;
}

// All weights zero say nothing: as without weights.
TEST_P(Encoders, NoWeightsAtAllAreEqualWeights) {
  const DType type = GetParam().type;
  const std::vector<float> rows = gaussian_rows(kCols, 15), zeros(kCols), same(kCols, 7.0f);
  const std::vector<std::byte> blocks = encoded(type, rows, nullptr);
  EXPECT_EQ(blocks, encoded(type, rows, zeros.data()));
  EXPECT_EQ(blocks, encoded(type, rows, same.data()));
}

INSTANTIATE_TEST_SUITE_P(Types, Encoders, testing::ValuesIn(kTypes),
                         [](const auto& p) { return std::string(name(p.param.type)); });

TEST(EncodableTypes, StandInTheOrderOfTheirBits) {
  double bits = 0.0;
  for (const DType type : encodable_types()) {
    EXPECT_TRUE(can_encode(type));
    EXPECT_GE(info(type).bits_per_weight(), bits) << name(type);
    bits = info(type).bits_per_weight();
  }
  EXPECT_FALSE(can_encode(DType::I32));
  EXPECT_EQ(encodable_types().size(), std::size(kTypes) + 3);  // and the plain floats
}

TEST(PlainFloats, AreRoundedAndCutOff) {
  std::vector<float> rows = gaussian_rows(kCols, 16);
  EXPECT_EQ(decoded(DType::F32, encoded(DType::F32, rows, nullptr)), rows);
  EXPECT_LT(round_trip(DType::F16, rows, nullptr), 0x1p-24);
  EXPECT_LT(round_trip(DType::BF16, rows, nullptr), 0x1p-18);
  rows[0] = 1e30f;
  rows[1] = -std::numeric_limits<float>::max();
  EXPECT_TRUE(all_finite(decoded(DType::F16, encoded(DType::F16, rows, nullptr))));
  EXPECT_TRUE(all_finite(decoded(DType::BF16, encoded(DType::BF16, rows, nullptr))));
}

}  // namespace
}  // namespace chimere::quantizer
