#include "tools/big_int.h"

#include <gtest/gtest.h>

#include <random>

namespace chimere::tools {
namespace {

// A number of up to `n_limbs` limbs of 32 bits, often with limbs of all ones or zeros: those are where carries go wrong.
BigInt random_number(std::mt19937& random, uint32_t n_limbs) {
  BigInt number;
  const BigInt base(int64_t{1} << 32);
  for (uint32_t i = random() % (n_limbs + 1); i > 0; --i) {
    const uint32_t kind = random() % 4;
    number = number * base + BigInt(kind == 0 ? 0 : kind == 1 ? UINT32_MAX : random());
  }
  return random() % 2 == 0 ? number : -number;
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

TEST(BigInt, AgreesWithTheMachineOnSmallNumbers) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const int64_t a = static_cast<int32_t>(random()) >> random() % 31,
                  b = static_cast<int32_t>(random()) >> random() % 31;
    EXPECT_EQ((BigInt(a) + BigInt(b)).to_digits(), std::to_string(a + b));
    EXPECT_EQ((BigInt(a) - BigInt(b)).to_digits(), std::to_string(a - b));
    EXPECT_EQ((BigInt(a) * BigInt(b)).to_digits(), std::to_string(a * b));
    EXPECT_EQ(BigInt(a) < BigInt(b), a < b);
    if (b == 0) continue;
    const auto division = BigInt(a).divide(BigInt(b));
    EXPECT_EQ(division.quotient.to_digits(), std::to_string(floor_divide(a, b)));
    EXPECT_EQ(division.remainder.to_digits(), std::to_string(a - floor_divide(a, b) * b));
  }
  EXPECT_EQ(BigInt(INT64_MIN).to_digits(), "-9223372036854775808");
}

TEST(BigInt, DivisionUndoesMultiplicationAtAnySize) {
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    const BigInt a = random_number(random, 20), b = random_number(random, 10);
    if (b.is_zero()) continue;
    const auto division = a.divide(b);
    EXPECT_EQ(division.quotient * b + division.remainder, a);
    EXPECT_TRUE(division.remainder.is_zero() || division.remainder.is_negative() == b.is_negative());
    EXPECT_LT(division.remainder.abs(), b.abs());
    EXPECT_EQ((a * b).divide(b).quotient, a);
    EXPECT_EQ(BigInt::from_digits(a.abs().to_digits()), a.abs());
    const BigInt divisor = greatest_common_divisor(a, b);
    EXPECT_TRUE(a.divide(divisor).remainder.is_zero() && b.divide(divisor).remainder.is_zero());
    EXPECT_TRUE(greatest_common_divisor(a.divide(divisor).quotient, b.divide(divisor).quotient).is_one());
    const size_t n_digits = a.abs().to_digits().size();
    EXPECT_TRUE(a.n_digits() == n_digits || a.n_digits() == n_digits + 1) << a.to_digits();
  }
}

TEST(BigInt, RootsAreTheLargestThatFit) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const BigInt x = random_number(random, 8).abs();
    for (const uint32_t n : {2u, 3u, 7u}) {
      const BigInt root = floor_root(x, n);
      EXPECT_LE(power(root, n), x);
      EXPECT_GT(power(root + BigInt(1), n), x);
    }
  }
  EXPECT_EQ(power(BigInt(2), 100).to_digits(), "1267650600228229401496703205376");
}

}  // namespace
}  // namespace chimere::tools
