// The encoders of every level give the same bits: a file must not depend on the machine that wrote it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "quantizer/encode_blocks.h"

namespace chimere::quantizer {
namespace {

#if defined(__x86_64__)
// Rows of all kinds that a block may meet: gaussian, heavy-tailed, sparse, constant, of one sign.
std::vector<float> block_of_kind(int kind, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::student_t_distribution<float> student(2.0f);
  std::vector<float> x(256);
  for (float& v : x) {
    v = kind == 1 ? student(rng) : normal(rng);
    if (kind == 2 && rng() % 8) v = 0.0f;
    if (kind == 3) v = 1.0f;
    if (kind == 4) v = std::fabs(v);
    v = std::clamp(v, -1.99f, 1.99f);
  }
  x[rng() % 32] = 1.5f;  // each block has its largest value in [1, 2)
  return x;
}

// Calls both encoders on 60 blocks of all kinds, with and without weights, and compares what they write.
template <class Block, class Encode>
void expect_same_bits(Encode one, Encode other) {
  std::mt19937 rng(5);
  std::lognormal_distribution<float> lognormal(0.0f, 1.2f);
  for (int trial = 0; trial < 60; ++trial) {
    const std::vector<float> x = block_of_kind(trial % 5, rng);
    std::vector<float> w(x.size(), 1.0f);
    for (float& v : w) v = trial % 2 ? lognormal(rng) : 1.0f;
    const auto compared = [&](const auto& a, const auto& b) {
      ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0) << "trial " << trial;
    };
    if constexpr (std::is_same_v<Encode, BlockEncoder<Block>>) {
      const BlockInput in{x.data(), w.data(), 0x1p-5f, 0x1p5f};
      Block a{}, b{};
      one(in, a);
      other(in, b);
      compared(a, b);
    } else {
      const float *rows[kGroup], *weights[kGroup];
      for (int r = 0; r < kGroup; ++r) {
        rows[r] = x.data() + Block::kElems * r;
        weights[r] = w.data() + Block::kElems * r;
      }
      std::array<Block, kGroup> a{}, b{};
      if constexpr (std::is_same_v<Encode, GroupEncoder<Block>>) {
        one(rows, trial % 2 ? weights : nullptr, a.data());
        other(rows, trial % 2 ? weights : nullptr, b.data());
      } else {
        one(rows, a.data());
        other(rows, b.data());
      }
      compared(a, b);
    }
  }
}

TEST(EncodeLevels, GiveTheSameBits) {
  if (&level_encoders() != &kEncodersAvx2) GTEST_SKIP() << "no AVX2 here";
  const LevelEncoders &a = kEncodersAnyMachine, &b = kEncodersAvx2;
  expect_same_bits<BlockQ4_0>(a.q4_0, b.q4_0);
  expect_same_bits<BlockQ4_1>(a.q4_1, b.q4_1);
  expect_same_bits<BlockQ4_1>(a.even_q4_1, b.even_q4_1);
  expect_same_bits<BlockQ5_0>(a.q5_0, b.q5_0);
  expect_same_bits<BlockQ5_1>(a.q5_1, b.q5_1);
  expect_same_bits<BlockQ5_1>(a.even_q5_1, b.even_q5_1);
  expect_same_bits<BlockQ8_0>(a.q8_0, b.q8_0);
  expect_same_bits<BlockIQ4_NL>(a.iq4_nl, b.iq4_nl);
  expect_same_bits<BlockMXFP4>(a.mxfp4, b.mxfp4);
  expect_same_bits<BlockQ2_K>(a.q2_k, b.q2_k);
  expect_same_bits<BlockQ3_K>(a.q3_k, b.q3_k);
  expect_same_bits<BlockQ4_K>(a.q4_k, b.q4_k);
  expect_same_bits<BlockQ5_K>(a.q5_k, b.q5_k);
  expect_same_bits<BlockQ6_K>(a.q6_k, b.q6_k);
  expect_same_bits<BlockIQ4_XS>(a.iq4_xs, b.iq4_xs);
  expect_same_bits<BlockTQ1_0>(a.tq1_0, b.tq1_0);
  expect_same_bits<BlockTQ2_0>(a.tq2_0, b.tq2_0);
  expect_same_bits<BlockIQ1_S>(a.iq1_s, b.iq1_s);
  expect_same_bits<BlockIQ1_M>(a.iq1_m, b.iq1_m);
  expect_same_bits<BlockIQ2_XXS>(a.iq2_xxs, b.iq2_xxs);
  expect_same_bits<BlockIQ2_XS>(a.iq2_xs, b.iq2_xs);
  expect_same_bits<BlockIQ2_S>(a.iq2_s, b.iq2_s);
  expect_same_bits<BlockIQ3_XXS>(a.iq3_xxs, b.iq3_xxs);
  expect_same_bits<BlockIQ3_S>(a.iq3_s, b.iq3_s);
}
#endif

}  // namespace
}  // namespace chimere::quantizer
