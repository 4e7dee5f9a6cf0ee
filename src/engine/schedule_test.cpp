// schedule_test.cpp  Who runs when: turns, deadlines, thoughts, and what the engine tells meanwhile.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "engine/prompt_cuts.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

Request greedy(int seed, int n_prompt, int max_tokens) {
  Request r;
  for (int i = 0; i < n_prompt; ++i) r.prompt.push_back((seed * 7919 + i * 104729) % 1000);
  r.sampling.temperature = 0;
  r.max_tokens = max_tokens;
  return r;
}

class Schedule : public testing::Test {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
    ASSERT_TRUE(model_);
  }
  std::unique_ptr<models::Model> model_;
};

TEST_F(Schedule, ALongPromptHoldsUpNobodysShortOne) {
  EngineConfig config;
  config.prefill_tokens = 64;
  // Before the engine, whose thread may still be telling of an end that has been read.
  Gate gate;
  std::mutex mutex;
  std::vector<int> order;
  Engine engine(*model_, config);
  auto note = [&](int who) {
    return [&order, &mutex, who] {
      std::lock_guard lock(mutex);
      order.push_back(who);
    };
  };
  auto blocker = engine.submit(greedy(9, 20, 1), gate.hook());
  auto long_one = engine.submit(greedy(1, 900, 1), note(1));
  auto short_one = engine.submit(greedy(2, 70, 1), note(2));
  gate.open();
  collect(*long_one->events);
  collect(*short_one->events);
  std::lock_guard lock(mutex);
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(order.front(), 2);
}

TEST_F(Schedule, ADeadlineEndsARequestWhereverItIs) {
  Engine engine(*model_, {});
  Request late = greedy(1, 50, 100000);
  late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(collect(*engine.submit(late)->events).end.reason, FinishReason::deadline);
  // This one is past it when it comes to its second token, at the latest; what it said until then is its answer.
  Request running = greedy(2, 50, 100000);
  const auto deadline = running.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  auto s = engine.submit(running, [deadline] { std::this_thread::sleep_until(deadline); });
  const Answer a = collect(*s->events);
  EXPECT_EQ(a.end.reason, FinishReason::deadline);
  EXPECT_LE(a.ids.size(), 1u);
  EXPECT_EQ(collect(*engine.submit(greedy(3, 50, 3))->events).ids.size(), 3u);
  EXPECT_EQ(engine.stats().finished_by_reason[static_cast<size_t>(FinishReason::deadline)], 2u);
}

TEST_F(Schedule, TheListShowsEveryRequestUntilItEnds) {
  Engine engine(*model_, {});
  EXPECT_TRUE(engine.list().empty());
  Gate gate;
  auto first = engine.submit(greedy(1, 20, 2), gate.hook());
  first->events->wait();
  auto second = engine.submit(greedy(2, 30, 2));
  // The engine thread stands still, and both calls answer all the same.
  const std::vector<RequestInfo> list = engine.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].id, first->id);
  EXPECT_EQ(list[1].id, second->id);
  EXPECT_EQ(list[1].state, RequestState::queued);
  EXPECT_EQ(list[1].prompt_tokens, 30);
  engine.stats();
  gate.open();
  collect(*first->events);
  collect(*second->events);
  EXPECT_TRUE(engine.list().empty());
}

// The engine's thread looks itself, at the moment when it tells: whoever hears of it can not be earlier.
TEST_F(Schedule, WhatEndedIsInTheTotalsWhenItsEndIsTold) {
  EngineTotals at_end, at_vectors;  // before the engine, whose thread writes them
  Gate gate;
  Engine engine(*model_, {});
  auto answer = engine.submit(greedy(1, 20, 5), [&] { at_end = engine.stats(); });
  EXPECT_EQ(collect(*answer->events).ids.size(), 5u);
  auto vectors = engine.embed({.texts = {greedy(2, 30, 1).prompt}}, [&] { at_vectors = engine.stats(); });
  EXPECT_TRUE(vectors->result->wait());
  auto failed = engine.fork(answer->id, {}, gate.hook());
  EXPECT_EQ(failed->events->wait().kind, Event::Kind::failed);  // the engine's thread stands still: both were told
  EXPECT_EQ(engine.stats().requests_failed, 1u);
  EXPECT_EQ(at_end.generated_tokens, 5u);
  EXPECT_EQ(at_end.prompt_tokens, 20u);
  EXPECT_EQ(at_end.steps, 5u);
  EXPECT_EQ(at_end.requests_finished, 1u);
  EXPECT_EQ(at_end.finished_by_reason[static_cast<size_t>(FinishReason::length)], 1u);
  EXPECT_EQ(at_vectors.prompt_tokens, 20u + 30u);
  gate.open();
}

TEST_F(Schedule, ThinkingStopsWhenAsked) {
  Engine engine(*model_, {});
  Request r = greedy(5, 10, 12);
  const std::vector<int32_t> free = collect(*engine.submit(r)->events).ids;
  const std::vector<int32_t> close = {7, 8, 9};
  r.thought = {.open = true, .end_ids = {8}, .close = close, .budget = -1};
  for (const bool by_budget : {false, true}) {
    Gate gate;
    auto s = engine.submit(r, gate.hook());
    ASSERT_EQ(s->events->wait().token.id, free[0]);
    Update update;
    update.stop_thinking = !by_budget;
    if (by_budget) update.thinking_budget = 3;
    engine.update(s->id, update);
    gate.open();
    const Answer a = collect(*s->events);
    const size_t more = by_budget ? 2 : 0;  // of the thought, behind its first token
    ASSERT_GE(a.ids.size(), more + 3);
    EXPECT_TRUE(std::equal(free.begin() + 1, free.begin() + 1 + static_cast<std::ptrdiff_t>(more), a.ids.begin()));
    EXPECT_TRUE(std::equal(close.begin(), close.end(), a.ids.begin() + static_cast<std::ptrdiff_t>(more)));
    EXPECT_EQ(a.end.usage.reasoning_tokens, static_cast<int32_t>(1 + more)) << "exactly those before its end";
  }
}

TEST_F(Schedule, AThoughtThatEndsItselfIsCountedWithoutItsEnd) {
  Engine engine(*model_, {});
  Request r = greedy(5, 10, 12);
  const std::vector<int32_t> free = collect(*engine.submit(r)->events).ids;
  const auto first = static_cast<int32_t>(std::find(free.begin(), free.end(), free[4]) - free.begin());
  r.thought = {.open = true, .end_ids = {free[4]}, .close = {7, 8, 9}, .budget = -1};
  EXPECT_EQ(collect(*engine.submit(r)->events).end.usage.reasoning_tokens, first);
}

TEST(PromptCuts, FollowFromTheTokensAlone) {
  const std::vector<int32_t> points = {10, 150, 160, 200, 300, 310};
  const PromptCuts cuts = cut_prompt(315, points, 128, 128);
  EXPECT_EQ(cuts.cuts, (std::vector<int32_t>{128, 160, 200, 256, 300, 310}));
  EXPECT_EQ(cuts.keep, (std::vector<int32_t>{128, 160, 200, 256, 300, 310}));
  EXPECT_EQ(cuts.fillers, (std::vector<int32_t>{128, 256}));
  EXPECT_EQ(cut_prompt(315, points, 128, 512).keep, (std::vector<int32_t>{150, 200, 300, 310}));
  EXPECT_TRUE(cut_prompt(1, points, 128, 128).cuts.empty());
  EXPECT_EQ(cut_prompt(200, {}, 64, 128).cuts, (std::vector<int32_t>{64, 128, 192}));

  // A longer prompt is cut as a shorter one is where they agree, but for the last point of the shorter.
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> all;
    for (int32_t at = 0; at < 2000;) all.push_back(at += 1 + static_cast<int32_t>(random() % 90));
    const auto n = static_cast<int32_t>(200 + random() % 1500);
    const PromptCuts whole = cut_prompt(2000, all, 256, 512), part = cut_prompt(n, all, 256, 512);
    ASSERT_FALSE(part.cuts.empty());
    std::vector<int32_t> common(part.cuts.begin(), part.cuts.end());
    const int32_t last_point = *(std::lower_bound(all.begin(), all.end(), n) - 1);
    for (const int32_t cut : common) {
      if (cut == last_point) continue;
      ASSERT_TRUE(std::binary_search(whole.cuts.begin(), whole.cuts.end(), cut)) << cut;
    }
  }
}

}  // namespace
}  // namespace chimere::engine
