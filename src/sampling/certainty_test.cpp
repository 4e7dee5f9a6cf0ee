#include "sampling/certainty.h"

#include <gtest/gtest.h>

#include <cmath>

namespace chimere {
namespace {

TEST(Certainty, GoesFromAllAlikeToOneToken) {
  const float max_entropy = std::log(1000.0f);
  EXPECT_FLOAT_EQ(token_certainty(1.0f, 0.0f, max_entropy), 1.0f);
  EXPECT_NEAR(token_certainty(0.001f, max_entropy, max_entropy), 0.000625f, 1e-6f);
  EXPECT_FLOAT_EQ(token_certainty(0.5f, max_entropy / 2, max_entropy), 0.625f * 0.5f + 0.375f * 0.5f);
  // A vocabulary with rows that stand for nothing may have more entropy than the tokens that can be drawn.
  EXPECT_FLOAT_EQ(token_certainty(0.0f, 2 * max_entropy, max_entropy), 0.0f);
  EXPECT_TRUE(std::isnan(token_certainty(std::nanf(""), 0.0f, max_entropy)));
}

TEST(Certainty, IsTheMeanOfTheWindowAlone) {
  const float max_entropy = 8;
  CertaintyWindow window(3, max_entropy);
  EXPECT_FALSE(window.is_full());
  for (int i = 0; i < 5; ++i) window.push(0.1f, 7.0f);
  EXPECT_TRUE(window.is_full());
  const float max_probs[] = {0.9f, 0.5f, 0.7f}, entropies[] = {0.5f, 3.0f, 1.0f};
  for (int i = 0; i < 3; ++i) window.push(max_probs[i], entropies[i]);
  window.push(std::nanf(""), std::nanf(""));  // drawn without stats: nothing is known of it
  EXPECT_NEAR(window.certainty(), 0.625 * (0.9 + 0.5 + 0.7) / 3 + 0.375 * (1 - (0.5 + 3 + 1) / 3 / 8), 1e-6);
  CertaintyWindow fresh(3, max_entropy), copy = window;
  for (int i = 0; i < 3; ++i) fresh.push(max_probs[i], entropies[i]);
  EXPECT_EQ(fresh.certainty(), copy.certainty());
  window.clear();
  EXPECT_FALSE(window.is_full());
}

}  // namespace
}  // namespace chimere
