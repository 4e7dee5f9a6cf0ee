// answer_state_test.cpp  The phases of an answer without a model: tests say what is drawn.
#include "engine/answer_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace chimere::engine {
namespace {

using Verdict = AnswerState::Verdict;

constexpr int32_t kEndId = 8, kStopId = 9;
const std::vector<int32_t> kCloseIds = {7, kEndId};

enum class Wish { nothing, warn, close };

// A thought, fed token by token. Ids of at least 100 end a sentence.
class AnswerStateTest : public testing::Test {
 protected:
  void SetUp() override {
    r_.thought = {.open = true, .end_ids = {kEndId}, .close = kCloseIds};
    r_.stop_ids = {kStopId};
    r_.thinking.max_entropy = 8;
    r_.thinking.window = 4;
    auto breaks = std::make_shared<std::vector<uint64_t>>(4);
    (*breaks)[100 / 64] |= uint64_t{1} << (100 % 64);
    r_.thinking.breaks = breaks;
  }
  void begin(int32_t room = 1000) {
    text_ = {1, 2, 3};
    state_.emplace(std::make_shared<const Request>(r_), room);
  }
  static Sampled sampled(int32_t id, float certainty) {
    Sampled token;
    token.id = id;
    token.max_prob = certainty;  // with this entropy, the certainty is the same
    token.entropy = 8 * (1 - certainty);
    return token;
  }
  // The model draws this, if it may draw at all. Gives what was taken; nothing when the answer ended before it.
  std::optional<int32_t> say(int32_t id, float certainty = 0.5f, TokenConstraint* constraint = nullptr) {
    AnswerState::Row row = state_->before(text_);
    Sampled token = sampled(row.forced.value_or(id), certainty);
    const Verdict verdict = state_->judge(token.id, text_, constraint);
    if (verdict == Verdict::ends) {
      end_ = FinishReason::stop;
      return std::nullopt;
    }
    if (verdict == Verdict::replaced) {
      row = state_->before(text_);
      token.id = row.forced.value();
    }
    text_.push_back(token.id);
    end_ = state_->after(token, text_, constraint);
    return token.id;
  }
  std::vector<int32_t> say_all(const std::vector<int32_t>& ids, TokenConstraint* constraint = nullptr) {
    std::vector<int32_t> taken;
    for (const int32_t id : ids) {
      if (const auto t = say(id, 0.5f, constraint)) taken.push_back(*t);
      if (end_) break;
    }
    return taken;
  }
  // What the state would force next; asked of a copy, so nothing changes.
  Wish wish() const {
    AnswerState copy = *state_;
    const std::optional<int32_t> forced = copy.before(text_).forced;
    if (!forced) return Wish::nothing;
    return *forced == kCloseIds.front() ? Wish::close : Wish::warn;
  }
  std::vector<TokenBias> bias() const {
    AnswerState copy = *state_;
    const auto bias = copy.before(text_).bias;
    return {bias.begin(), bias.end()};
  }
  bool bans(int32_t id) const {
    for (const TokenBias& b : bias()) {
      if (b.id == id && b.delta == -std::numeric_limits<float>::infinity()) return true;
    }
    return false;
  }

  Request r_;
  std::optional<AnswerState> state_;
  std::vector<int32_t> text_;
  std::optional<FinishReason> end_;
};

TEST_F(AnswerStateTest, ClosesWhenCertainBehindASentenceAndNotBelowTheMinimum) {
  r_.thinking.close_above = 0.9f;
  r_.thinking.least = 6;
  begin();
  for (int i = 0; i < 5; ++i) {
    say(i == 4 ? 100 : i, 0.95f);
    EXPECT_EQ(wish(), Wish::nothing) << i;
  }
  say(5, 0.95f);
  EXPECT_EQ(wish(), Wish::nothing);  // in the middle of a sentence
  AnswerState doubts = *state_;
  say(100, 0.95f);
  EXPECT_EQ(wish(), Wish::close);
  state_ = doubts;
  for (int i = 0; i < 4; ++i) say(100, 0.5f);
  EXPECT_EQ(wish(), Wish::nothing);
}

TEST_F(AnswerStateTest, EndsWithItsClosing) {
  r_.thought.open = false;
  r_.closing = {.ids = {30, 31, 32}, .tail = {31, 32}, .unless = {40}};
  begin();
  EXPECT_EQ(say_all({1, 2, kStopId}), (std::vector<int32_t>{1, 2, 30}));
  EXPECT_EQ(state_->forced_next(), (std::vector<int32_t>{31, 32}));
  EXPECT_EQ(say_all({5, 5}), (std::vector<int32_t>{31, 32}));
  EXPECT_EQ(end_, FinishReason::stop);
  // The model has written it, in its own way; calls a tool; says nothing; is cut.
  for (const std::vector<int32_t>& said :
       std::vector<std::vector<int32_t>>{{1, 29, 31, 32, kStopId}, {1, 40, 2, kStopId}, {kStopId}}) {
    begin();
    EXPECT_EQ(say_all(said), std::vector<int32_t>(said.begin(), said.end() - 1));
    EXPECT_EQ(end_, FinishReason::stop);
  }
  begin(4);
  EXPECT_EQ(say_all({1, 2, kStopId}), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(end_, FinishReason::stop);
  // Behind a thought, of which nothing counts.
  r_.thought.open = true;
  begin();
  EXPECT_EQ(say_all({31, 32, kEndId, 1, kStopId, 5, 5}), (std::vector<int32_t>{31, 32, kEndId, 1, 30, 31, 32}));
  EXPECT_EQ(end_, FinishReason::stop);
}

TEST_F(AnswerStateTest, WhatWasForcedSaysNothingOfTheModelsMind) {
  r_.thinking.close_above = 0.9f;
  begin();
  for (int i = 0; i < 4; ++i) say(100, 0.5f);
  state_->update({.force = std::vector<int32_t>(8, 100)});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(say(5, 1.0f), 100);
  EXPECT_EQ(wish(), Wish::nothing);
}

TEST_F(AnswerStateTest, WarnsOnceAndOnlyWhereTheWarningFits) {
  r_.thinking.warning = {21, 22, 23};
  r_.thinking.warn_before = 2;
  r_.thought.budget = 10;
  begin();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(wish(), Wish::nothing) << i;
    say(i);
  }
  EXPECT_EQ(wish(), Wish::warn);  // 5 said, 3 of the warning, 2 left
  EXPECT_EQ(say_all({0, 0, 0, 0, 0, 0, 0}), (std::vector<int32_t>{21, 22, 23, 0, 0, 7, kEndId}));
  EXPECT_EQ(state_->n_thought(), 10);
  r_.thought.budget = 100;
  begin();
  for (int i = 0; i < 5; ++i) say(i);
  state_->update({.thinking_budget = 7});
  EXPECT_EQ(wish(), Wish::nothing);  // 5 said: no room for 3 more
  state_->update({.thinking_budget = -1});
  EXPECT_EQ(wish(), Wish::nothing);
}

TEST_F(AnswerStateTest, ExtendsInDoubtWhileTheBudgetHoldsThePhrase) {
  r_.thinking.extension = {21, 22, 23};
  r_.thinking.extend_below = 0.8f;
  r_.thinking.max_extensions = 2;
  r_.thought.budget = 8;
  begin();
  const auto extends = [&](int32_t budget) {
    AnswerState copy = *state_;
    copy.update({.thinking_budget = budget});
    copy.before(text_);
    return copy.judge(kEndId, text_, nullptr) == Verdict::replaced;
  };
  EXPECT_FALSE(extends(100));  // nothing is known yet
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_FALSE(extends(7));  // 4 said and 3 of the phrase are all of it
  EXPECT_TRUE(extends(8));
  EXPECT_EQ(say(kEndId, 0.7f), 21);
  EXPECT_EQ(say(0), 22);
  EXPECT_EQ(say(0), 23);
  EXPECT_TRUE(state_->is_thinking());
  EXPECT_FALSE(extends(100));  // doubt is measured anew
  state_->update({.thinking_budget = 100});
  for (int i = 0; i < 4; ++i) say(i, 0.9f);
  EXPECT_FALSE(extends(100));
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_TRUE(extends(-1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(say(kEndId, 0.7f), 21 + i);
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_FALSE(extends(-1)) << "twice at most";
}

TEST_F(AnswerStateTest, SuppressesTriggersWhileCertainAndReleasesThem) {
  r_.thinking.suppress_above = 0.9f;
  r_.thinking.release_below = 0.6f;
  r_.thinking.triggers =
      std::make_shared<const std::vector<std::vector<int32_t>>>(std::vector<std::vector<int32_t>>{{50}, {60, 61}});
  begin();
  EXPECT_FALSE(bans(50));
  for (int i = 0; i < 4; ++i) say(i, 0.95f);
  EXPECT_TRUE(bans(50));
  EXPECT_FALSE(bans(60));  // may begin another word
  EXPECT_FALSE(bans(61));
  say(60, 0.95f);
  EXPECT_TRUE(bans(61));
  const AnswerState thinking = *state_;
  say(kEndId, 0.95f);
  EXPECT_TRUE(bias().empty());  // an answer may say "wait"
  state_ = thinking;
  for (int i = 0; i < 4; ++i) say(i, 0.7f);
  EXPECT_TRUE(bans(50));
  for (int i = 0; i < 4; ++i) say(i, 0.5f);
  EXPECT_FALSE(bans(50));
}

TEST_F(AnswerStateTest, ClosesWhereASentenceBeginsToReflectWhileCertain) {
  r_.thinking.suppress_above = 0.9f;
  r_.thinking.release_below = 0.6f;
  r_.thinking.closes_at_reflection = true;
  r_.thinking.least = 5;
  r_.thinking.triggers =
      std::make_shared<const std::vector<std::vector<int32_t>>>(std::vector<std::vector<int32_t>>{{50}, {60, 61}});
  begin();
  for (const int32_t id : {1, 2, 3, 100}) say(id, 0.95f);
  EXPECT_TRUE(bias().empty()) << "nothing is forbidden";
  EXPECT_EQ(say(50, 0.95f), 50) << "below the minimum";
  EXPECT_EQ(say(50, 0.95f), 50) << "in the middle of a sentence";
  say(100, 0.95f);
  const AnswerState certain = *state_;
  EXPECT_EQ(say(50, 0.95f), kCloseIds[0]);
  EXPECT_EQ(say(50, 0.95f), kCloseIds[1]);
  EXPECT_FALSE(state_->is_thinking());
  EXPECT_EQ(state_->n_thought(), 7);
  EXPECT_EQ(say(50, 0.95f), 50) << "an answer may say so";
  // A word of several tokens ends it with its last one; another word that begins like it does not.
  text_.resize(3 + 7);
  state_ = certain;
  for (const int32_t id : {60, 62, 60, 61, 100, 60}) EXPECT_EQ(say(id, 0.95f), id);
  EXPECT_EQ(say(61, 0.95f), kCloseIds[0]);
  text_.resize(3 + 7);
  state_ = certain;
  for (int i = 0; i < 4; ++i) say(100, 0.5f);
  EXPECT_EQ(say(50, 0.5f), 50) << "a doubt that the model has";
}

TEST_F(AnswerStateTest, ALoopEndsTheThoughtAndThenTheAnswer) {
  r_.thinking.loop = {.is_on = true, .tokens = 4, .penalty = 3};
  begin();
  for (int i = 0; i < 4; ++i) say(70);
  EXPECT_EQ(wish(), Wish::nothing);
  ASSERT_EQ(bias().size(), 1U);
  EXPECT_EQ(bias()[0].id, 70);
  EXPECT_LT(bias()[0].delta, 0);
  for (int i = 0; i < 4; ++i) say(70);
  EXPECT_EQ(wish(), Wish::close);
  EXPECT_EQ(say_all({70, 70}), kCloseIds);
  EXPECT_TRUE(bias().empty()) << "watched anew behind the thought";
  EXPECT_EQ(say_all(std::vector<int32_t>(20, 70)).size(), 8U);
  EXPECT_EQ(end_, FinishReason::loop);
}

TEST_F(AnswerStateTest, WhatIsOutOfRangeIsRefused) {
  r_.thinking.window = 0;
  EXPECT_FALSE(r_.thinking.validate(200));
  r_.thinking.window = 4;
  EXPECT_TRUE(r_.thinking.validate(200));
  r_.thinking.warning = {200};
  EXPECT_FALSE(r_.thinking.validate(200));
}

TEST_F(AnswerStateTest, AStopClosesAThoughtAndEndsAnAnswer) {
  begin();
  EXPECT_EQ(say_all({0, kStopId, 0, 1, kStopId, 2}), (std::vector<int32_t>{0, 7, kEndId, 1}));
  EXPECT_EQ(end_, FinishReason::stop);
  EXPECT_EQ(state_->n_tokens(), 4);
  EXPECT_EQ(state_->n_thought(), 1);
  r_.thought.close = {};
  begin();
  EXPECT_EQ(say_all({0, kStopId, 1}), (std::vector<int32_t>{0})) << "without a close there is no answer";
}

TEST_F(AnswerStateTest, LimitsAreExactAndACopyKeepsItsOwn) {
  r_.max_tokens = 6;
  r_.thinking.answer_tokens = 2;
  begin();
  EXPECT_EQ(say_all({0, 1}), (std::vector<int32_t>{0, 1}));
  const AnswerState kept = *state_;
  const std::vector<int32_t> text = text_;
  EXPECT_EQ(say_all({2, 3, 4, 5, 6}), (std::vector<int32_t>{7, kEndId, 4, 5})) << "two are left for the answer";
  EXPECT_EQ(end_, FinishReason::length);
  // Back to where it was: the same tokens again, or others under other limits.
  state_ = kept;
  text_ = text;
  EXPECT_EQ(say_all({2, 3, 4, 5, 6}), (std::vector<int32_t>{7, kEndId, 4, 5}));
  state_ = kept;
  text_ = text;
  state_->update({.max_tokens = 8});
  EXPECT_EQ(say_all({2, 3, 4, 5, 6, 7, 8}), (std::vector<int32_t>{2, 3, 7, kEndId, 6, 7}));
  begin(3);
  EXPECT_EQ(say_all({0, 1, 2, 3}).size(), 3U) << "the context is full";
  EXPECT_EQ(end_, FinishReason::length);
}

TEST_F(AnswerStateTest, TheModelMayOpenAThoughtWithItsFirstToken) {
  r_.thought.open = false;
  r_.thought.opener = 6;
  r_.thought.budget = 1;
  begin();
  EXPECT_FALSE(state_->is_thinking());
  EXPECT_EQ(say_all({6, 0, 1, 2}), (std::vector<int32_t>{6, 0, 7, kEndId}));
  begin();
  EXPECT_EQ(say_all({0, 6, 1, 2}), (std::vector<int32_t>{0, 6, 1, 2}));
}

TEST_F(AnswerStateTest, StatsAreNeededInsideASteeredThoughtOrWhereAskedFor) {
  begin();
  EXPECT_TRUE(state_->before(text_).needs_stats);
  say(kEndId);
  EXPECT_FALSE(state_->before(text_).needs_stats);
  r_.token_stats = true;
  r_.thinking.max_entropy = 0;
  begin();
  EXPECT_TRUE(state_->before(text_).needs_stats);
}

// A form of brackets: any token between 30 and 31, which end it.
class Brackets : public TokenConstraint {
 public:
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Brackets>(*this); }
  std::span<const uint64_t> mask() override { return {}; }
  void accept(int32_t id) override {
    accepted.push_back(id);
    is_closed_ = id == 31;
  }
  bool is_finished() const override { return is_closed_; }
  std::vector<int32_t> completion(Part part) override {
    return part == Part::all ? std::vector<int32_t>{32, 31} : std::vector<int32_t>{32};
  }
  bool can_end_after(int32_t id, int32_t n_tokens) override { return n_tokens >= (id == 31 ? 0 : 2); }

  std::vector<int32_t> accepted;

 private:
  bool is_closed_ = false;
};

TEST_F(AnswerStateTest, AFormIsAboutTheAnswerAloneAndEndsIt) {
  Brackets form;
  begin();
  EXPECT_EQ(say_all({0, kEndId, 30, 33, 31, 34}, &form), (std::vector<int32_t>{0, kEndId, 30, 33, 31}));
  EXPECT_EQ(end_, FinishReason::stop);
  EXPECT_EQ(form.accepted, (std::vector<int32_t>{30, 33, 31}));
}

TEST_F(AnswerStateTest, AFormIsCompletedAtAStopALimitAndALoop) {
  Brackets stopped;
  r_.thought = {};
  begin();
  EXPECT_EQ(say_all({30, kStopId, 33, 31}, &stopped), (std::vector<int32_t>{30, 32, 33, 31}));
  EXPECT_EQ(end_, FinishReason::stop);

  Brackets cut;
  r_.max_tokens = 5;
  begin();
  EXPECT_EQ(say_all({30, 33, 33, 33, 33}, &cut).size(), 5U) << "cut where it is not asked for";
  cut = {};
  r_.completes = true;
  begin();
  EXPECT_EQ(say_all({30, 33, 33, 33, 33}, &cut), (std::vector<int32_t>{30, 33, 33, 32, 31}));
  EXPECT_EQ(end_, FinishReason::length);

  Brackets loops;
  r_.max_tokens = -1;
  r_.thinking.loop = {.is_on = true, .tokens = 4, .penalty = 0};
  begin();
  const std::vector<int32_t> taken = say_all(std::vector<int32_t>(100, 33), &loops);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 32), 4) << "three are broken, the fourth completes it";
  EXPECT_EQ(taken.back(), 31);
  EXPECT_EQ(end_, FinishReason::loop);
}

}  // namespace
}  // namespace chimere::engine
