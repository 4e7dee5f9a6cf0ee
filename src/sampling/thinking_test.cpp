#include "sampling/thinking.h"

#include <gtest/gtest.h>

#include <limits>

namespace chimere {
namespace {

using Wish = ThinkingControl::Wish;

// A thought, fed token by token. Ids of at least 100 end a sentence.
class ThinkingTest : public testing::Test {
 protected:
  void SetUp() override {
    params_.max_entropy = 8;
    params_.window = 4;
    auto breaks = std::make_shared<std::vector<uint64_t>>(4);
    (*breaks)[100 / 64] |= uint64_t{1} << (100 % 64);
    params_.breaks = breaks;
  }
  void begin() { control_ = ThinkingControl(params_); }
  void say(int32_t id, float certainty, bool was_forced = false) {
    Sampled token;
    token.id = id;
    token.max_prob = certainty;  // with this entropy, the certainty is the same
    token.entropy = 8 * (1 - certainty);
    text_.push_back(id);
    ++n_;
    control_.accept(token, text_, true, was_forced);
  }
  Wish wish(int32_t budget = -1) { return control_.before(n_, budget); }
  bool bans(int32_t id) {
    for (const TokenBias& b : control_.bias(params_, text_, true)) {
      if (b.id == id && b.delta == -std::numeric_limits<float>::infinity()) return true;
    }
    return false;
  }

  ThinkingParams params_;
  ThinkingControl control_;
  std::vector<int32_t> text_;
  int32_t n_ = 0;
};

TEST_F(ThinkingTest, ClosesWhenCertainBehindASentenceAndNotBelowTheMinimum) {
  params_.close_above = 0.9f;
  params_.least = 6;
  begin();
  for (int i = 0; i < 5; ++i) {
    say(i == 4 ? 100 : i, 0.95f);
    EXPECT_EQ(wish(), Wish::nothing) << i;
  }
  say(5, 0.95f);
  EXPECT_EQ(wish(), Wish::nothing);  // in the middle of a sentence
  say(100, 0.95f);
  EXPECT_EQ(wish(), Wish::close);
  for (int i = 0; i < 4; ++i) say(100, 0.5f);
  EXPECT_EQ(wish(), Wish::nothing);
}

TEST_F(ThinkingTest, WhatWasForcedSaysNothingOfTheModelsMind) {
  params_.close_above = 0.9f;
  begin();
  for (int i = 0; i < 4; ++i) say(100, 0.5f);
  for (int i = 0; i < 8; ++i) say(100, 1.0f, true);
  EXPECT_EQ(wish(), Wish::nothing);
}

TEST_F(ThinkingTest, WarnsOnceAndOnlyWhereTheWarningFits) {
  params_.warning = {1, 2, 3};
  params_.warn_before = 2;
  begin();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(wish(10), Wish::nothing) << i;
    say(i, 0.5f);
  }
  EXPECT_EQ(wish(10), Wish::warn);  // 5 said, 3 of the warning, 2 left
  EXPECT_EQ(wish(10), Wish::nothing);
  begin();
  EXPECT_EQ(wish(7), Wish::nothing);  // 5 said: no room for 3 more
  EXPECT_EQ(wish(-1), Wish::nothing);
}

TEST_F(ThinkingTest, ExtendsInDoubtWhileTheBudgetHoldsThePhrase) {
  params_.extension = {1, 2, 3};
  params_.extend_below = 0.8f;
  params_.max_extensions = 2;
  begin();
  EXPECT_FALSE(control_.extends(params_, n_, 100));  // nothing is known yet
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_FALSE(control_.extends(params_, n_, 7));  // 4 said and 3 of the phrase are all of it
  EXPECT_TRUE(control_.extends(params_, n_, 8));
  EXPECT_FALSE(control_.extends(params_, n_, 100));  // doubt is measured anew
  for (int i = 0; i < 4; ++i) say(i, 0.9f);
  EXPECT_FALSE(control_.extends(params_, n_, 100));
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_TRUE(control_.extends(params_, n_, -1));
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_FALSE(control_.extends(params_, n_, -1));
}

TEST_F(ThinkingTest, SuppressesTriggersWhileCertainAndReleasesThem) {
  params_.suppress_above = 0.9f;
  params_.release_below = 0.6f;
  params_.triggers =
      std::make_shared<const std::vector<std::vector<int32_t>>>(std::vector<std::vector<int32_t>>{{50}, {60, 61}});
  begin();
  EXPECT_FALSE(bans(50));
  for (int i = 0; i < 4; ++i) say(i, 0.95f);
  EXPECT_TRUE(bans(50));
  EXPECT_FALSE(bans(60));  // may begin another word
  EXPECT_FALSE(bans(61));
  say(60, 0.95f);
  EXPECT_TRUE(bans(61));
  EXPECT_TRUE(control_.bias(params_, text_, false).empty());  // an answer may say "wait"
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_TRUE(bans(50));
  for (int i = 0; i < 4; ++i) say(i, 0.5f);
  EXPECT_FALSE(bans(50));
}

TEST_F(ThinkingTest, ALoopEndsTheThought) {
  params_.loop = {.is_on = true, .tokens = 4, .penalty = 3};
  begin();
  for (int i = 0; i < 4; ++i) say(7, 0.5f);
  EXPECT_EQ(wish(), Wish::nothing);
  const auto bias = control_.bias(params_, text_, true);
  ASSERT_EQ(bias.size(), 1U);
  EXPECT_EQ(bias[0].id, 7);
  EXPECT_LT(bias[0].delta, 0);
  for (int i = 0; i < 4; ++i) say(7, 0.5f);
  EXPECT_EQ(wish(), Wish::close);
  control_.close();
  EXPECT_EQ(control_.loop(), LoopGuard::State::free);
}

TEST_F(ThinkingTest, WhatIsOutOfRangeIsRefused) {
  params_.window = 0;
  EXPECT_FALSE(params_.validate(200));
  params_.window = 4;
  EXPECT_TRUE(params_.validate(200));
  params_.warning = {200};
  EXPECT_FALSE(params_.validate(200));
}

}  // namespace
}  // namespace chimere
