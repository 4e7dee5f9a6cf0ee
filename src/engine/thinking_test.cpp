// thinking_test.cpp  A steered thought inside the engine: exact to the token, alone and in a batch, and nothing of it
// where it is off.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

constexpr int32_t kEndOfThought = 8;
const std::vector<int32_t> kClose = {7, 8, 9};

class SteeredThought : public testing::Test {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false});
    ASSERT_TRUE(model_);
  }
  Request request(uint64_t seed, int32_t budget = 20) const {
    Request r;
    r.prompt = {5, 6, 4, 3};
    r.sampling.temperature = 1.0f;
    r.sampling.seed = seed;
    r.max_tokens = 48;
    r.thought = {.open = true, .end_ids = {kEndOfThought}, .close = kClose, .budget = budget};
    // Of its own the model never ends the thought: tests say when it does.
    r.sampling.logit_bias = {{kEndOfThought, -std::numeric_limits<float>::infinity()}};
    r.thinking.window = 4;
    return r;
  }
  void measure(Request& r) const { r.thinking.max_entropy = std::log(static_cast<float>(model_->n_vocab())); }
  Answer answer(Engine& engine, Request r) const {
    auto submitted = engine.submit(std::move(r));
    return submitted ? collect(*submitted->events) : Answer{};
  }
  // Where the forced close begins.
  static size_t close_at(const Answer& a) {
    const auto found = std::search(a.ids.begin(), a.ids.end(), kClose.begin(), kClose.end());
    return static_cast<size_t>(found - a.ids.begin());
  }

  std::unique_ptr<models::Model> model_;
};

TEST_F(SteeredThought, TheBudgetIsExactWithAWarningInsideIt) {
  Engine engine(*model_, {});
  const std::vector<int32_t> warning = {40, 41, 42};
  for (const int32_t budget : {0, 1, 5, 9, 20}) {
    Request r = request(3, budget);
    r.thinking.warning = warning;
    r.thinking.warn_before = 4;
    const Answer a = answer(engine, r);
    EXPECT_EQ(close_at(a), static_cast<size_t>(budget));
    EXPECT_EQ(a.end.usage.reasoning_tokens, budget);
    const auto found = std::search(a.ids.begin(), a.ids.end(), warning.begin(), warning.end());
    if (budget >= 9) {
      EXPECT_EQ(found - a.ids.begin(), budget - 7);  // the warning and four tokens behind it
    } else if (budget == 5) {
      EXPECT_EQ(found - a.ids.begin(), 0);  // fewer are left from the start
    } else {
      EXPECT_TRUE(found == a.ids.end());
    }
  }
}

TEST_F(SteeredThought, ATailIsKeptForTheAnswer) {
  Engine engine(*model_, {});
  Request r = request(3, -1);
  r.thinking.answer_tokens = 10;
  const Answer a = answer(engine, r);
  EXPECT_EQ(a.ids.size(), 48U);
  EXPECT_EQ(close_at(a), 48U - 10 - kClose.size());
}

TEST_F(SteeredThought, StoppingItDropsTheRestOfAWarning) {
  Engine engine(*model_, {});
  Request r = request(3, 20);
  r.thinking.warning = {40, 41, 42, 43};
  r.thinking.warn_before = 16;
  Gate gate;
  auto submitted = engine.submit(r, gate.hook());
  ASSERT_TRUE(submitted);
  EXPECT_EQ(submitted->events->wait().token.id, 40);
  engine.update(submitted->id, {.stop_thinking = true});
  gate.open();
  const Answer rest = collect(*submitted->events);
  EXPECT_EQ(close_at(rest), 0U);
}

TEST_F(SteeredThought, IsClosedEarlyWhenCertain) {
  Engine engine(*model_, {});
  Request certain = request(3);
  measure(certain);
  certain.thinking.close_above = 0;  // any certainty will do, from a full window on
  EXPECT_EQ(close_at(answer(engine, certain)), 4U);
  certain.thinking.least = 11;
  EXPECT_EQ(close_at(answer(engine, certain)), 11U);
}

TEST_F(SteeredThought, GoesOnWhereTheModelEndsItInDoubt) {
  Engine engine(*model_, {});
  // A thought that the model itself ends after some tokens, but not after too many.
  Request r;
  int32_t n = 0;
  for (float bias = 0; bias <= 12 && n == 0; bias += 2) {
    for (uint64_t seed = 0; seed < 6 && n == 0; ++seed) {
      r = request(seed, 20);
      r.sampling.logit_bias = {{kEndOfThought, bias}};
      n = answer(engine, r).end.usage.reasoning_tokens;
      if (n < 3 || n > 12) n = 0;
    }
  }
  ASSERT_GT(n, 0);
  const Answer free = answer(engine, r);
  const std::vector<int32_t> phrase = {40, 41};
  measure(r);
  r.thinking.window = 2;
  r.thinking.extension = phrase;
  r.thinking.extend_below = 1.5f;  // whatever its certainty is
  r.thinking.max_extensions = 1;
  const Answer longer = answer(engine, r);
  EXPECT_TRUE(std::equal(free.ids.begin(), free.ids.begin() + n, longer.ids.begin()));
  EXPECT_EQ(free.ids[static_cast<size_t>(n)], kEndOfThought);
  EXPECT_TRUE(std::equal(phrase.begin(), phrase.end(), longer.ids.begin() + n));
  EXPECT_GE(longer.end.usage.reasoning_tokens, n + 2);
  EXPECT_LE(longer.end.usage.reasoning_tokens, 20);
  r.thinking.extend_below = 0;  // no certainty is below
  EXPECT_EQ(answer(engine, r).ids, free.ids);
}

TEST_F(SteeredThought, NothingChangesWhereNothingIsSteered) {
  Engine engine(*model_, {});
  const Answer plain = answer(engine, request(5));
  Request watched = request(5);
  measure(watched);  // measured, but no threshold is ever reached
  watched.token_stats = true;
  watched.thinking.loop = {.is_on = true, .tokens = 4096, .penalty = 4};
  EXPECT_EQ(answer(engine, watched).ids, plain.ids);
}

TEST_F(SteeredThought, StatsComeWithEveryToken) {
  Engine engine(*model_, {});
  Request r = request(5);
  r.token_stats = true;
  auto submitted = engine.submit(r);
  ASSERT_TRUE(submitted);
  int n = 0;
  for (Event e = submitted->events->wait(); !e.is_terminal(); e = submitted->events->wait()) {
    ++n;
    EXPECT_GE(e.token.entropy, 0) << n;
    EXPECT_LE(e.token.entropy, std::log(static_cast<float>(model_->n_vocab())) + 1e-3f);
    EXPECT_GT(e.token.max_prob, 0);
    EXPECT_LE(e.token.max_prob, 1);
  }
  EXPECT_EQ(n, 48);
}

TEST_F(SteeredThought, IsTheSameAloneAndInABatch) {
  Engine engine(*model_, {});
  const auto steered = [&](uint64_t seed) {
    Request r = request(seed, 30);
    measure(r);
    r.thinking.close_above = 0.12f;
    r.thinking.least = 5;
    r.thinking.suppress_above = 0.11f;
    r.thinking.release_below = 0.1f;
    r.thinking.triggers =
        std::make_shared<const std::vector<std::vector<int32_t>>>(std::vector<std::vector<int32_t>>{{50}, {60, 61}});
    r.thinking.closes_at_reflection = seed % 2 == 1;
    r.thinking.loop = {.is_on = true, .tokens = 4, .penalty = 4};
    return r;
  };
  std::vector<Answer> alone;
  for (uint64_t seed = 0; seed < 8; ++seed) alone.push_back(answer(engine, steered(seed)));
  std::vector<Submitted> together;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    auto submitted = engine.submit(steered(seed));
    ASSERT_TRUE(submitted);
    together.push_back(*submitted);
  }
  for (size_t i = 0; i < together.size(); ++i) {
    const Answer a = collect(*together[i].events);
    EXPECT_EQ(a.ids, alone[i].ids) << i;
    EXPECT_EQ(a.end.usage.reasoning_tokens, alone[i].end.usage.reasoning_tokens) << i;
    EXPECT_LE(a.end.usage.reasoning_tokens, 30);
  }
}

TEST_F(SteeredThought, ALoopEndsTheThoughtAndThenTheAnswer) {
  Engine engine(*model_, {});
  Request r = request(3, -1);
  r.sampling.logit_bias = {{33, 1000}};  // says nothing else
  r.max_tokens = 200;
  r.thinking.loop = {.is_on = true, .tokens = 8, .penalty = 1};
  const Answer a = answer(engine, r);
  EXPECT_EQ(a.end.reason, FinishReason::loop);
  EXPECT_EQ(close_at(a), 16U);
  EXPECT_EQ(a.ids.size(), 16U + kClose.size() + 16U);
  // A strong penalty is enough to leave the loop.
  r.thinking.loop.penalty = 100;
  r.sampling.logit_bias = {{33, 20}};
  EXPECT_EQ(answer(engine, r).end.reason, FinishReason::length);
}

}  // namespace
}  // namespace chimere::engine
