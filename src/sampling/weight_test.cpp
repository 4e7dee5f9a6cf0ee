// weight_test.cpp  The stated error of the exponential, and the exactness of sums of weights.
#include "sampling/weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace chimere {
namespace {

TEST(Weight, ExponentialKeepsItsStatedError) {
  double worst = 0;
  for (int i = 0; i <= 870000; ++i) {
    const float t = static_cast<float>(-i) * 1e-4f;
    const double exact = std::exp(static_cast<double>(t));
    worst = std::max(worst, std::abs(exp_nonpositive(t) - exact) / exact);
  }
  EXPECT_LT(worst, 1.5e-7);
  EXPECT_EQ(exp_nonpositive(0.0f), 1.0f);
}

TEST(Weight, VanishesForImpossibleTokens) {
  EXPECT_EQ(weight(-INFINITY), 0.0);
  EXPECT_EQ(weight(kWeightlessBelow), 0.0);
  EXPECT_GT(weight(-24.0f), 0.0);
}

TEST(Weight, SumsDoNotDependOnTheOrder) {
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> depth(-25.0f, 0.0f);
  std::vector<double> weights(100000);
  for (double& w : weights) w = weight(depth(rng));
  double forward = 0, sorted = 0;
  for (double w : weights) forward += w;
  std::sort(weights.begin(), weights.end());
  for (double w : weights) sorted += w;
  EXPECT_EQ(forward, sorted);
}

}  // namespace
}  // namespace chimere
