#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "engine/engine_for_test.h"
#include "engine/score.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"

namespace chimere::engine {
namespace {

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false});
    ASSERT_TRUE(model_);
  }

  static Request greedy(std::vector<int32_t> prompt, int max_tokens) {
    Request r;
    r.prompt = std::move(prompt);
    r.sampling.temperature = 0;
    r.max_tokens = max_tokens;
    return r;
  }
  static std::vector<int32_t> prompt(int seed, int n) {
    std::vector<int32_t> ids;
    for (int i = 0; i < n; ++i) ids.push_back((seed * 7919 + i * 104729) % 1000);
    return ids;
  }

  std::unique_ptr<models::Model> model_;
};

TEST_F(EngineTest, AnswersAloneAndTogetherAreTheSame) {
  EngineConfig config;
  config.prefill_tokens = 32;
  std::vector<std::vector<int32_t>> alone;
  const int lengths[] = {5, 40, 71, 1, 33, 100};
  {
    Engine engine(*model_, config);
    for (int i = 0; i < 6; ++i) {
      auto s = engine.submit(greedy(prompt(i, lengths[i]), 12));
      ASSERT_TRUE(s);
      alone.push_back(collect(*s->events).ids);
      EXPECT_EQ(alone.back().size(), 12u);
    }
  }
  config.max_running = 4;
  Engine engine(*model_, config);
  std::vector<Submitted> submitted;
  for (int i = 0; i < 6; ++i) {
    auto s = engine.submit(greedy(prompt(i, lengths[i]), 12));
    ASSERT_TRUE(s);
    submitted.push_back(*s);
  }
  for (int i = 0; i < 6; ++i) {
    const Answer a = collect(*submitted[i].events);
    EXPECT_EQ(a.ids, alone[i]) << "request " << i;
    EXPECT_EQ(a.end.kind, Event::Kind::finished);
    EXPECT_EQ(a.end.reason, FinishReason::length);
    EXPECT_EQ(a.end.usage.prompt_tokens, lengths[i]);
    EXPECT_EQ(a.end.usage.completion_tokens, 12);
  }
}

TEST_F(EngineTest, TheSameSeedGivesTheSameAnswer) {
  Engine engine(*model_, {});
  auto draw = [&](uint64_t seed) {
    Request r = greedy(prompt(3, 20), 16);
    r.sampling.temperature = 1.0f;
    r.sampling.seed = seed;
    auto s = engine.submit(r);
    return collect(*s->events).ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST_F(EngineTest, StopIdsEndTheAnswerAndAreNotPartOfIt) {
  Engine engine(*model_, {});
  auto first = engine.submit(greedy(prompt(1, 10), 8));
  const std::vector<int32_t> ids = collect(*first->events).ids;
  Request r = greedy(prompt(1, 10), 8);
  r.stop_ids = {ids[3]};
  auto s = engine.submit(r);
  const Answer a = collect(*s->events);
  EXPECT_EQ(a.end.reason, FinishReason::stop);
  const auto stop = std::find(ids.begin(), ids.end(), ids[3]);
  EXPECT_EQ(a.ids, std::vector<int32_t>(ids.begin(), stop));
}

TEST_F(EngineTest, CancelEndsARequestAndTheNextOneWorks) {
  Engine engine(*model_, {});
  Gate gate;
  auto s = engine.submit(greedy(prompt(1, 10), 100000), gate.hook());
  ASSERT_TRUE(s);
  EXPECT_EQ(s->events->wait().kind, Event::Kind::token);
  engine.cancel(s->id);
  engine.cancel(s->id);
  engine.cancel(123456789);
  gate.open();
  const Answer a = collect(*s->events);
  EXPECT_EQ(a.end.reason, FinishReason::cancelled);
  EXPECT_FALSE(s->events->take().has_value()) << "one terminal event only";
  auto next = engine.submit(greedy(prompt(2, 10), 4));
  EXPECT_EQ(collect(*next->events).ids.size(), 4u);
}

TEST_F(EngineTest, StoppingTheEngineEndsEveryRequest) {
  std::vector<Submitted> submitted;
  Gate gate;
  std::thread opener;
  {
    EngineConfig config;
    config.max_running = 1;
    Engine engine(*model_, config);
    submitted.push_back(*engine.submit(greedy(prompt(0, 30), 100000), gate.hook()));
    for (int i = 1; i < 3; ++i) submitted.push_back(*engine.submit(greedy(prompt(i, 30), 100000)));
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      gate.open();
    });
  }
  opener.join();
  for (Submitted& s : submitted) EXPECT_EQ(collect(*s.events).end.reason, FinishReason::cancelled);
}

// What is posted while the engine handles other messages and is told to stop is handled too: its sender waits for an end.
TEST_F(EngineTest, StoppingTheEngineEndsARequestThatHasJustCome) {
  Gate gate;
  std::thread opener;
  std::optional<Submitted> late;
  {
    Engine engine(*model_, {});
    auto unknown = engine.fork(0, {}, gate.hook());  // its failure holds the engine thread inside of a message
    ASSERT_TRUE(unknown);
    unknown->events->wait();
    late = *engine.submit(greedy(prompt(0, 30), 100000));
    opener = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      gate.open();
    });
  }
  opener.join();
  const std::optional<Event> end = late->events->take();
  ASSERT_TRUE(end) << "nobody tells the caller that the engine has stopped";
  EXPECT_EQ(end->reason, FinishReason::cancelled);
}

TEST_F(EngineTest, ForkSharesThePastAndGoesItsOwnWay) {
  Engine engine(*model_, {});
  const std::vector<int32_t> straight = [&] {
    auto s = engine.submit(greedy(prompt(4, 50), 30));
    return collect(*s->events).ids;
  }();
  Gate gate;
  auto s = engine.submit(greedy(prompt(4, 50), 30), gate.hook());
  ASSERT_TRUE(s);
  const int32_t first = s->events->wait().token.id;
  SamplingParams sampling;
  sampling.temperature = 0;
  auto fork = engine.fork(s->id, sampling);
  gate.open();
  ASSERT_TRUE(fork);
  const Answer a = collect(*s->events), b = collect(*fork->events);
  EXPECT_EQ(first, straight.front());
  EXPECT_TRUE(std::equal(a.ids.begin(), a.ids.end(), straight.begin() + 1));
  ASSERT_EQ(b.end.kind, Event::Kind::finished);
  EXPECT_EQ(b.ids, a.ids) << "the fork goes on from the first token as the other does";
  EXPECT_EQ(b.end.usage.cached_tokens, 50);
  auto gone = engine.fork(s->id, sampling);
  ASSERT_TRUE(gone);
  EXPECT_EQ(collect(*gone->events).end.error->code, Code::not_found);
}

TEST_F(EngineTest, ChoicesAreThoseThatWouldBeDrawnAlone) {
  Request r = greedy(prompt(7, 60), 8);
  r.sampling.temperature = 1;
  r.sampling.seed = 3;
  r.snapshot_points = {55};
  std::vector<std::vector<int32_t>> alone;
  {
    Engine engine(*model_, {});
    for (uint32_t i = 0; i < 4; ++i) {
      Request one = r;
      one.sampling.choice = i;
      alone.push_back(collect(*engine.submit(one)->events).ids);
    }
  }
  Engine engine(*model_, {});
  const auto choices = engine.submit_choices(r, std::vector<std::function<void()>>(4));
  ASSERT_TRUE(choices);
  ASSERT_EQ(choices->size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Answer a = collect(*(*choices)[i].events);
    EXPECT_EQ(a.ids, alone[i]) << i;
    EXPECT_EQ(a.end.usage.prompt_tokens, 60);
    EXPECT_EQ(a.cached(), i == 0 ? 0 : 55) << i;
    EXPECT_FALSE((*choices)[i].events->take());
  }
  EXPECT_EQ(engine.stats().prompt_tokens, 60u + 3 * 5) << "the prompt was read once";
}

TEST_F(EngineTest, EveryChoiceEndsByItself) {
  EngineConfig config;
  config.max_running = 1;
  Engine engine(*model_, config);
  Request r = greedy(prompt(7, 60), 1);
  const std::vector<int32_t> first = collect(*engine.submit(r)->events).ids;
  // The first has ended when its prompt is read.
  const auto brief = engine.submit_choices(r, std::vector<std::function<void()>>(3));
  ASSERT_TRUE(brief);
  for (const Submitted& s : *brief) EXPECT_EQ(collect(*s.events).ids, first);
  // Some are cancelled before they begin, the first among them.
  Gate gate;
  auto held = engine.submit(greedy(prompt(1, 10), 3), gate.hook());
  held->events->wait();
  const auto choices = engine.submit_choices(r, std::vector<std::function<void()>>(4));
  ASSERT_TRUE(choices);
  for (const size_t i : {0, 2}) engine.cancel((*choices)[i].id);
  gate.open();
  collect(*held->events);
  for (size_t i = 0; i < 4; ++i) {
    const Answer a = collect(*(*choices)[i].events);
    EXPECT_EQ(a.end.reason, i % 2 == 0 ? FinishReason::cancelled : FinishReason::length) << i;
    EXPECT_EQ(a.ids, i % 2 == 0 ? std::vector<int32_t>{} : first) << i;
    EXPECT_FALSE((*choices)[i].events->take()) << "one terminal event only";
  }
  // They come into the queue together or not at all.
  EXPECT_TRUE(engine.submit_choices(r, std::vector<std::function<void()>>(200))) << "who has nothing there gets in";
}

TEST_F(EngineTest, ForcedTokensComeNext) {
  Engine engine(*model_, {});
  Request r = greedy(prompt(5, 10), 40);
  Gate gate;
  auto s = engine.submit(r, gate.hook());
  s->events->wait();
  engine.update(s->id, {.force = {7, 8, 9}, .max_tokens = 20});
  gate.open();
  const std::vector<int32_t> ids = collect(*s->events).ids;
  ASSERT_EQ(ids.size(), 19u) << "the new limit counts the first token too";
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.begin() + 3), (std::vector<int32_t>{7, 8, 9}));
}

TEST_F(EngineTest, AThoughtThatDoesNotEndIsClosed) {
  Engine engine(*model_, {});
  const Request plain = greedy(prompt(5, 10), 12);
  const std::vector<int32_t> free = collect(*engine.submit(plain)->events).ids;
  ASSERT_EQ(free.size(), 12u);
  const std::vector<int32_t> close = {7, 8, 9};

  Request r = plain;
  r.thought = {.open = true, .end_ids = {8}, .close = close, .budget = 4};
  std::vector<int32_t> ids = collect(*engine.submit(r)->events).ids;
  ASSERT_EQ(ids.size(), 12u);
  EXPECT_TRUE(std::equal(free.begin(), free.begin() + 4, ids.begin())) << "the budget is exact";
  EXPECT_TRUE(std::equal(close.begin(), close.end(), ids.begin() + 4));

  // A stop token inside the thought closes it instead of ending the answer; behind it, it ends the answer.
  r.thought.budget = -1;
  r.stop_ids = {free[2]};
  const auto same = std::find(free.begin(), free.begin() + 2, free[2]);
  const size_t thought = static_cast<size_t>(same - free.begin());
  const Answer answer = collect(*engine.submit(r)->events);
  ASSERT_GE(answer.ids.size(), thought + 3);
  EXPECT_TRUE(std::equal(close.begin(), close.end(), answer.ids.begin() + static_cast<std::ptrdiff_t>(thought)));
  EXPECT_EQ(std::count(answer.ids.begin(), answer.ids.end(), free[2]), 0);

  // Tokens forced meanwhile are not lost: they come before the end of the thought.
  r.stop_ids = {};
  r.thought = {.open = true, .end_ids = {8}, .close = close, .budget = 1};
  Gate gate;
  auto held = engine.submit(r, gate.hook());
  held->events->wait();
  engine.update(held->id, {.force = {3, 4}});
  gate.open();
  ids = collect(*held->events).ids;
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.begin() + 5), (std::vector<int32_t>{3, 4, 7, 8, 9}));

  // One that ends by itself is left alone.
  r.stop_ids = {};
  r.thought = {.open = true, .end_ids = {free[1]}, .close = close, .budget = 4};
  EXPECT_EQ(collect(*engine.submit(r)->events).ids, free);
}

TEST_F(EngineTest, AThoughtThatTheModelOpensIsCountedToo) {
  Engine engine(*model_, {});
  Request r = greedy(prompt(5, 10), 12);
  const std::vector<int32_t> free = collect(*engine.submit(r)->events).ids;
  const std::vector<int32_t> close = {7, 8, 9};
  r.thought = {.open = false, .end_ids = {8}, .close = close, .budget = 2, .opener = free[0]};
  const Answer answer = collect(*engine.submit(r)->events);
  EXPECT_TRUE(std::equal(free.begin(), free.begin() + 3, answer.ids.begin()));
  EXPECT_TRUE(std::equal(close.begin(), close.end(), answer.ids.begin() + 3));
  // Anywhere else it is a token like others.
  r.thought.opener = free[0] == 11 ? 12 : 11;
  EXPECT_EQ(collect(*engine.submit(r)->events).ids, free);
}

TEST_F(EngineTest, ScoreAgreesWithTheLogits) {
  Engine engine(*model_, {});
  const std::vector<int32_t> tokens = prompt(6, 60);
  auto scored = engine.score(tokens);
  ASSERT_TRUE(scored);
  ASSERT_EQ(scored->logprobs.size(), 59u);
  const std::vector<float> logits = feed_alone(model_->executable(), tokens, {160});
  const size_t v = model_->n_vocab();
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::span<const float> row(logits.data() + i * v, v);
    EXPECT_NEAR(scored->logprobs[i], row[tokens[i + 1]] - log_sum_exp(row), 1e-3) << i;
  }
}

TEST_F(EngineTest, RefusesWhatCanNotRun) {
  EngineConfig config;
  config.context_length = 64;
  config.max_queued = 2;
  config.max_running = 1;
  Engine engine(*model_, config);
  EXPECT_EQ(engine.submit(greedy({}, 4)).error().code, Code::invalid_argument);
  EXPECT_EQ(engine.submit(greedy({-1}, 4)).error().code, Code::invalid_argument);
  EXPECT_EQ(engine.submit(greedy({1 << 20}, 4)).error().code, Code::invalid_argument);
  EXPECT_EQ(engine.submit(greedy({1}, 0)).error().code, Code::invalid_argument);
  const auto too_long = engine.submit(greedy(prompt(1, 65), 4));
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message.find("65"), std::string::npos);
  EXPECT_NE(too_long.error().message.find("64"), std::string::npos);
  Request bad = greedy({1}, 4);
  bad.sampling.temperature = NAN;
  EXPECT_FALSE(engine.submit(bad));

  // The context ends an answer that nothing else ends.
  auto full = engine.submit(greedy(prompt(1, 60), -1));
  const Answer a = collect(*full->events);
  EXPECT_EQ(a.end.reason, FinishReason::length);
  EXPECT_EQ(a.ids.size(), 4u);
}

TEST_F(EngineTest, AFullQueueRefusesAndRecovers) {
  EngineConfig config;
  config.max_queued = 2;
  config.max_running = 1;
  Engine engine(*model_, config);
  std::vector<Submitted> accepted;
  bool refused = false;
  Gate gate;
  for (int i = 0; i < 50 && !refused; ++i) {
    auto s = engine.submit(greedy(prompt(i, 100), 100000), i == 0 ? gate.hook() : nullptr);
    if (s) {
      accepted.push_back(*s);
    } else {
      EXPECT_EQ(s.error().code, Code::exhausted);
      refused = true;
    }
  }
  EXPECT_TRUE(refused);
  for (Submitted& s : accepted) engine.cancel(s.id);
  gate.open();
  for (Submitted& s : accepted) EXPECT_EQ(collect(*s.events).end.reason, FinishReason::cancelled);
  auto next = engine.submit(greedy(prompt(1, 5), 3));
  ASSERT_TRUE(next);
  EXPECT_EQ(collect(*next->events).ids.size(), 3u);
}

}  // namespace
}  // namespace chimere::engine
