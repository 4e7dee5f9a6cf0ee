#include "speculative/likely_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace chimere::speculative {
namespace {

bool has(const LikelyTokens& likely, int32_t id) {
  return std::binary_search(likely.blocks().begin(), likely.blocks().end(), id / 16);
}

TEST(LikelyTokens, AreAllOfASmallVocabulary) {
  LikelyTokens likely(LikelyTokens::kFewTokens - 1, 16);
  likely.learn(std::vector<int32_t>(5000, 3));
  EXPECT_TRUE(likely.blocks().empty());
  EXPECT_FALSE(likely.take_changed());
}

TEST(LikelyTokens, BeginWithTheFirstAndFollowTheText) {
  LikelyTokens likely(8192 + 5, 16);
  ASSERT_EQ(likely.blocks().size(), 2048u / 16);
  EXPECT_TRUE(likely.take_changed());
  EXPECT_FALSE(likely.take_changed());
  EXPECT_TRUE(has(likely, 2047));
  EXPECT_FALSE(has(likely, 2048));
  // Of the last block, which is not whole, and ids that are none.
  std::vector<int32_t> text;
  for (int i = 0; i < 400; ++i) text.insert(text.end(), {8196, 5000, -7, 1 << 20});
  likely.learn(text);
  EXPECT_TRUE(likely.take_changed());
  EXPECT_EQ(likely.blocks().size(), 2048u / 16) << "others gave way";
  EXPECT_TRUE(has(likely, 8196));
  EXPECT_TRUE(has(likely, 5000));
  EXPECT_TRUE(has(likely, 0));
  EXPECT_FALSE(has(likely, 2047));
  EXPECT_TRUE(std::is_sorted(likely.blocks().begin(), likely.blocks().end()));
}

TEST(LikelyTokens, WhatWasFrequentGivesWay) {
  LikelyTokens likely(1 << 18, 16);
  ASSERT_EQ(likely.blocks().size(), (size_t{1} << 18) / 8 / 16);
  const int n = static_cast<int>(likely.blocks().size());
  std::vector<int32_t> old, now;
  for (int i = 0; i < n; ++i) {
    old.push_back(200'000 - 16 * i);
    now.push_back(262'000 - 16 * i);
  }
  for (int i = 0; i < 20; ++i) likely.learn(old);
  EXPECT_TRUE(has(likely, old.front()));
  for (int i = 0; i < 200; ++i) likely.learn(now);
  EXPECT_TRUE(has(likely, now.front()));
  EXPECT_FALSE(has(likely, old.back()));
}

}  // namespace
}  // namespace chimere::speculative
