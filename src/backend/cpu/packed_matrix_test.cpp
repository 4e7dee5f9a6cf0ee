// packed_matrix_test.cpp  Every type on every instruction set against double-precision products of decoded weights.
#include "backend/cpu/packed_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_features.h"
#include "tensor/dequantize.h"
#include "tensor/random_blocks.h"

namespace chimere::cpu {
namespace {

constexpr float kUnwritten = 12345.0f;

std::vector<DType> packed_types() {
  std::vector<DType> out;
  for (const DTypeInfo& t : all_dtypes()) {
    if (PackedMatrix::supports(t.type)) out.push_back(t.type);
  }
  return out;
}

struct Weights {
  std::vector<std::byte> bytes;
  TensorView view;

  Weights(DType type, int64_t k, int64_t n, int64_t n_experts, uint64_t seed) {
    bytes.resize(row_bytes(type, static_cast<uint64_t>(k)) * static_cast<size_t>(n * n_experts));
    random_rows(type, bytes.data(), n * n_experts, k, seed, 0.05f);
    view = {"w",
            type,
            {static_cast<uint64_t>(k), static_cast<uint64_t>(n), static_cast<uint64_t>(n_experts), 1},
            bytes.data()};
  }
  std::vector<float> row(int64_t r) const {
    std::vector<float> out(view.ne[0]);
    dequantize_row(view.type, view.row(static_cast<uint64_t>(r)), out.data(), static_cast<int64_t>(view.ne[0]));
    return out;
  }
};

std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::vector<float> out(n);
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  for (float& v : out) v = normal(rng);
  return out;
}

PackedMatrix pack(const Weights& w) {
  auto packed = PackedMatrix::pack(w.view);
  EXPECT_TRUE(packed) << packed.error().message;
  return std::move(*packed);
}

// The values the 8-bit form stands for.
std::vector<float> decoded_row(const Activations& x, int64_t row) {
  std::vector<float> out(static_cast<size_t>(x.k()));
  for (int64_t k = 0; k < x.k(); ++k) {
    const ActBlock& b = x.blocks(row)[k / 32];
    out[static_cast<size_t>(k)] = b.d * static_cast<float>(b.q[k % 32]);
  }
  return out;
}

class PackedMatrixTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override { set_isa_for_testing(GetParam()); }
  void TearDown() override { set_isa_for_testing(detect_isa()); }

  // Columns to try: one to three blocks, and 512.
  static std::vector<int64_t> columns(DType type) {
    const int64_t block = info(type).block_elems;
    if (block == 1) return {1, 2, 3, 5, 31, 64, 513};
    return {block, 2 * block, 3 * block, 512};
  }
};

void check_product(DType type, int64_t k, int64_t n, int n_tokens, ActMode mode) {
  const Weights w(type, k, n, 1, 7);
  const PackedMatrix packed = pack(w);
  const std::vector<float> input = random_floats(static_cast<size_t>(n_tokens * k), 11);
  Activations x;
  x.bind(input.data(), k, n_tokens, k);
  x.quantize_rows(0, n_tokens);
  const int64_t ld = n + 3;
  std::vector<float> y(static_cast<size_t>(n_tokens * ld), kUnwritten);
  matmul(packed, 0, x, {}, n_tokens, mode, y.data(), ld, 0, packed.n_panels());
  const bool int8 = mode == ActMode::int8 && !packed.is_float();
  for (int t = 0; t < n_tokens; ++t) {
    const std::vector<float> a =
        int8 ? decoded_row(x, t) : std::vector<float>(input.begin() + t * k, input.begin() + (t + 1) * k);
    for (int64_t r = 0; r < n; ++r) {
      const std::vector<float> wr = w.row(r);
      double sum = 0, size = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        sum += double{wr[i]} * a[i];
        size += std::abs(double{wr[i]} * a[i]);
      }
      ASSERT_NEAR(y[static_cast<size_t>(t * ld + r)], sum, 1e-5 * size + 1e-12)
          << name(type) << " k " << k << " n " << n << " tokens " << n_tokens << " at " << t << ", " << r;
    }
    for (int64_t r = n; r < ld; ++r) ASSERT_EQ(y[static_cast<size_t>(t * ld + r)], kUnwritten) << name(type);
  }
}

TEST_P(PackedMatrixTest, MatchesDecodedProduct) {
  for (DType type : packed_types()) {
    for (ActMode mode : {ActMode::int8, ActMode::f32}) {
      for (int64_t k : columns(type)) {
        for (int64_t n : {1, 15, 17}) check_product(type, k, n, 3, mode);
      }
      for (int n_tokens : {1, 2, 5, 8, 13, 16, 33}) {
        check_product(type, info(type).block_elems == 1 ? 37 : info(type).block_elems, 48, n_tokens, mode);
      }
    }
  }
}

// A row's bits do not depend on its company: all tokens at once, one by one, gathered, split by panels.
TEST_P(PackedMatrixTest, BatchInvariant) {
  constexpr int kTokens = 37;
  constexpr int64_t kRows = 50;
  for (DType type : packed_types()) {
    for (ActMode mode : {ActMode::int8, ActMode::f32}) {
      const int64_t k = 512;
      const Weights w(type, k, kRows, 1, 3);
      const PackedMatrix packed = pack(w);
      const std::vector<float> input = random_floats(kTokens * k, 5);
      Activations x;
      x.bind(input.data(), k, kTokens, k);
      x.quantize_rows(0, kTokens);
      std::vector<float> all(kTokens * kRows), part(kTokens * kRows);
      matmul(packed, 0, x, {}, kTokens, mode, all.data(), kRows, 0, packed.n_panels());
      for (int n_tokens = 1; n_tokens <= 17; ++n_tokens) {
        std::fill(part.begin(), part.end(), kUnwritten);
        std::vector<int32_t> rows;
        for (int t = 0; t < n_tokens; ++t) rows.push_back((t * 23 + n_tokens) % kTokens);
        for (int p = 0; p < packed.n_panels(); ++p) {
          matmul(packed, 0, x, rows, n_tokens, mode, part.data(), kRows, p, p + 1);
        }
        for (int t = 0; t < n_tokens; ++t) {
          ASSERT_EQ(0,
                    std::memcmp(&part[static_cast<size_t>(t * kRows)],
                                &all[static_cast<size_t>(rows[static_cast<size_t>(t)] * kRows)], kRows * sizeof(float)))
              << name(type) << " tokens " << n_tokens << " token " << t;
        }
        // Scattered back to their own rows.
        matmul(packed, 0, x, rows, n_tokens, mode, part.data(), kRows, 0, packed.n_panels(), rows);
        for (int32_t r : rows) {
          ASSERT_EQ(0, std::memcmp(&part[static_cast<size_t>(r * kRows)], &all[static_cast<size_t>(r * kRows)],
                                   kRows * sizeof(float)))
              << name(type);
        }
      }
      // Quantising alone gives the same blocks as quantising among others.
      Activations single;
      single.bind(input.data() + 9 * k, k, 1, k);
      single.quantize_rows(0, 1);
      ASSERT_EQ(0, std::memcmp(single.blocks(0), x.blocks(9), static_cast<size_t>(k / 32) * sizeof(ActBlock)));
    }
  }
}

TEST_P(PackedMatrixTest, ExpertsAreSeparate) {
  for (DType type : {DType::F32, DType::Q4_0, DType::IQ3_S}) {
    const int64_t k = 256, n = 20;
    const Weights w(type, k, n, 3, 13);
    const PackedMatrix packed = pack(w);
    ASSERT_EQ(packed.n_experts(), 3);
    ASSERT_EQ(packed.n_panels(), 2);
    const std::vector<float> input = random_floats(k, 17);
    Activations x;
    x.bind(input.data(), k, 1, k);
    std::vector<float> y(n);
    for (int e = 0; e < 3; ++e) {
      matmul(packed, e, x, {}, 1, ActMode::f32, y.data(), n, 0, 2);
      for (int64_t r = 0; r < n; ++r) {
        const std::vector<float> wr = w.row(e * n + r);
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += double{wr[static_cast<size_t>(i)]} * input[static_cast<size_t>(i)];
        ASSERT_NEAR(y[static_cast<size_t>(r)], sum, 1e-4) << name(type) << " expert " << e;
      }
    }
  }
}

TEST_P(PackedMatrixTest, QuantisesActivations) {
  const int64_t k = 75;
  std::vector<float> input = random_floats(static_cast<size_t>(3 * k), 19);
  for (int64_t i = 0; i < 32; ++i) input[static_cast<size_t>(k + i)] = i == 3 ? 1e-38f : 0.0f;
  Activations x;
  x.bind(input.data(), k, 3, k);
  x.quantize_rows(0, 3);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t b = 0; b < 3; ++b) {
      const ActBlock& block = x.blocks(r)[b];
      float max = 0;
      int sums[2] = {0, 0};
      for (int64_t i = 32 * b; i < std::min(k, 32 * b + 32); ++i) {
        max = std::max(max, std::abs(input[static_cast<size_t>(r * k + i)]));
      }
      for (int64_t i = 0; i < 32; ++i) {
        const float value = 32 * b + i < k ? input[static_cast<size_t>(r * k + 32 * b + i)] : 0.0f;
        ASSERT_NEAR(block.d * static_cast<float>(block.q[i]), value, 0.5001f * block.d + 1e-30f);
        sums[i / 16] += block.q[i];
      }
      ASSERT_NEAR(block.d, max / 127, 1e-6f * max + 1e-32f);
      ASSERT_EQ(block.neg128, -128 * (sums[0] + sums[1]));
      ASSERT_EQ(block.neg128b, -128 * sums[1]);
      ASSERT_EQ(block.sum, static_cast<float>(sums[0] + sums[1]));
    }
  }
}

// A NaN or an infinity must not turn into an innocent number.
TEST_P(PackedMatrixTest, NonFiniteStaysVisible) {
  const Weights w(DType::Q8_0, 64, 16, 1, 23);
  const PackedMatrix packed = pack(w);
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> input = random_floats(64, 29);
    input[40] = bad;
    Activations x;
    x.bind(input.data(), 64, 1, 64);
    x.quantize_rows(0, 1);
    float y[16];
    matmul(packed, 0, x, {}, 1, ActMode::int8, y, 16, 0, 1);
    for (float v : y) EXPECT_FALSE(std::isfinite(v));
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, PackedMatrixTest, ::testing::ValuesIn(available_isas().begin(), available_isas().end()),
                         [](const auto& param) { return std::string(name(param.param)); });

TEST(PackedMatrix, PackingIsLossless) {
  for (DType type : packed_types()) {
    const int64_t block = info(type).block_elems, k = block == 1 ? 37 : std::max<int64_t>(2 * block, 96), n = 35;
    const Weights w(type, k, n, 2, 31);
    const PackedMatrix packed = pack(w);
    std::vector<float> row(static_cast<size_t>(k));
    for (int e = 0; e < 2; ++e) {
      for (int64_t r = 0; r < n; ++r) {
        packed.unpack_row(e, r, row.data());
        const std::vector<float> expected = w.row(e * n + r);
        ASSERT_EQ(0, std::memcmp(row.data(), expected.data(), row.size() * sizeof(float)))
            << name(type) << " expert " << e << " row " << r;
      }
    }
  }
}

TEST(PackedMatrix, KeepsTheSizeOfTheFile) {
  for (DType type : packed_types()) {
    const int64_t k = 2048, n = 64;
    const Weights w(type, k, n, 1, 37);
    const double ratio = static_cast<double>(pack(w).size_bytes()) / static_cast<double>(w.bytes.size());
    const double bits = 8.0 * static_cast<double>(w.bytes.size()) / static_cast<double>(k * n);
    const bool code_book =
        name(type).substr(0, 3) == "IQ1" || name(type).substr(0, 3) == "IQ2" || name(type).substr(0, 3) == "IQ3";
    if (type == DType::IQ5_K || type == DType::IQ6_K) {
      EXPECT_LE(ratio * bits, 8.6) << name(type);  // values as bytes
    } else if (type >= DType::IQ2_K) {
      EXPECT_LE(ratio * bits, bits + 1.2) << name(type);  // one bit more: whether values are moved
    } else if (type == DType::IQ3_S) {
      EXPECT_LE(ratio, 1.02) << name(type);
    } else if (code_book) {
      EXPECT_LE(ratio * bits, 4.2) << name(type);
    } else if (bits > 2.5 && type != DType::NVFP4) {
      EXPECT_LE(ratio, 1.04) << name(type);
    }
  }
}

TEST(PackedMatrix, RefusesWhatItCannotMultiply) {
  const std::vector<std::byte> bytes(256);
  const auto wrong_type = PackedMatrix::pack({"ids", DType::I32, {8, 2, 1, 1}, bytes.data()});
  ASSERT_FALSE(wrong_type);
  EXPECT_NE(wrong_type.error().message.find("ids"), std::string::npos);
  const auto ragged = PackedMatrix::pack({"ragged", DType::Q4_0, {40, 2, 1, 1}, bytes.data()});
  ASSERT_FALSE(ragged);
  EXPECT_NE(ragged.error().message.find("{40, 2}"), std::string::npos);
}

}  // namespace
}  // namespace chimere::cpu
