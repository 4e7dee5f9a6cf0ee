// The encoders of every level give the same bits: a file must not depend on the machine that wrote it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
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

template <class Block>
void expect_same_bits(BlockEncoder<Block> one, BlockEncoder<Block> other) {
  std::mt19937 rng(5);
  std::lognormal_distribution<float> lognormal(0.0f, 1.2f);
  for (int trial = 0; trial < 60; ++trial) {
    const std::vector<float> x = block_of_kind(trial % 5, rng);
    std::vector<float> w(x.size(), 1.0f);
    for (float& v : w) v = trial % 2 ? lognormal(rng) : 1.0f;
    const BlockInput in{x.data(), w.data(), 0x1p-5f, 0x1p5f};
    Block a{}, b{};
    one(in, a);
    other(in, b);
    ASSERT_EQ(std::memcmp(&a, &b, sizeof(Block)), 0) << "trial " << trial;
  }
}

TEST(EncodeLevels, GiveTheSameBits) {
  if (&level_encoders() != &kEncodersAvx2) GTEST_SKIP() << "no AVX2 here";
  const LevelEncoders &a = kEncodersAnyMachine, &b = kEncodersAvx2;
  expect_same_bits(a.q4_0, b.q4_0);
  expect_same_bits(a.q4_1, b.q4_1);
  expect_same_bits(a.q5_0, b.q5_0);
  expect_same_bits(a.q5_1, b.q5_1);
  expect_same_bits(a.q8_0, b.q8_0);
  expect_same_bits(a.iq4_nl, b.iq4_nl);
  expect_same_bits(a.mxfp4, b.mxfp4);
  expect_same_bits(a.q2_k, b.q2_k);
  expect_same_bits(a.q3_k, b.q3_k);
  expect_same_bits(a.q4_k, b.q4_k);
  expect_same_bits(a.q5_k, b.q5_k);
  expect_same_bits(a.q6_k, b.q6_k);
  expect_same_bits(a.iq4_xs, b.iq4_xs);
  expect_same_bits(a.tq1_0, b.tq1_0);
  expect_same_bits(a.tq2_0, b.tq2_0);
}
#endif

}  // namespace
}  // namespace chimere::quantizer
