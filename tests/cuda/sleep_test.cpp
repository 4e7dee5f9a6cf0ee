// sleep_test.cpp  A model on a card, in the emulator, that gives the card away between its answers: weights, kept states
// and graphs are the same afterwards.
#include <gtest/gtest.h>

#include <future>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

class CudaSleep : public testing::Test {
 protected:
  void SetUp() override {
    LoadOptions options;
    options.max_rows = 96;
    auto model = models::Model::load((fixture::kept("qwen3_5_moe-B-untied") / "model.gguf").string(),
                                     models::BackendKind::cuda, options, cuda::compile);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
  }

  static Answer ask(Engine& engine, std::vector<int32_t> prompt) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = 10;
    if (request.prompt.size() > 32) request.snapshot_points = {32};
    request.sampling.temperature = 0.7f;
    request.sampling.seed = 5;
    auto submitted = engine.submit(std::move(request));
    EXPECT_TRUE(submitted);
    return collect(*submitted->events);
  }
  static Result<uint64_t> sleep(Engine& engine) {
    std::promise<Result<uint64_t>> done;
    engine.sleep([&](Result<uint64_t> given) { done.set_value(std::move(given)); });
    return done.get_future().get();
  }
  static std::vector<int32_t> prompt(int n) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < n; ++i) tokens.push_back(1 + i * 37 % 200);
    return tokens;
  }

  std::unique_ptr<models::Model> model_;
};

TEST_F(CudaSleep, AnswersAreThoseOfOneThatNeverSlept) {
  std::vector<Answer> answers[2];
  for (const bool sleeps : {false, true}) {
    Engine engine(*model_, {});
    const auto rest = [&] {
      if (!sleeps) return;
      const auto given = sleep(engine);
      ASSERT_TRUE(given) << given.error().message;
      EXPECT_GT(*given, 0u);
      EXPECT_EQ(engine.stats().asleep_bytes, *given);
      EXPECT_EQ(*sleep(engine), *given) << "one that sleeps already sleeps on";
    };
    for (const int n : {36, 5, 36, 40}) {
      rest();
      answers[sleeps].push_back(ask(engine, prompt(n)));
      EXPECT_EQ(engine.stats().asleep_bytes, 0u);
    }
    rest();
    const auto scored = engine.score(prompt(20));
    ASSERT_TRUE(scored);
    rest();  // it ends asleep
  }
  for (size_t i = 0; i < answers[0].size(); ++i) {
    EXPECT_EQ(answers[1][i].ids, answers[0][i].ids) << i;
    EXPECT_EQ(answers[1][i].cached(), answers[0][i].cached()) << "what is kept of prompts sleeps and wakes, too";
  }
  EXPECT_GT(answers[1][2].cached(), 0);
}

TEST_F(CudaSleep, WaitsForTheAnswerThatRuns) {
  Engine engine(*model_, {});
  Gate gate;
  Request request;
  request.prompt = prompt(5);
  request.max_tokens = 12;
  auto submitted = engine.submit(std::move(request), gate.hook());
  ASSERT_TRUE(submitted);
  auto slept = std::async(std::launch::async, [&] { return sleep(engine); });
  gate.open();
  EXPECT_EQ(collect(*submitted->events).ids.size(), 12u);
  EXPECT_TRUE(slept.get());
}

TEST_F(CudaSleep, SleepsByItselfWhenNobodyAsks) {
  EngineConfig config;
  config.idle_sleep = std::chrono::seconds(1);
  Engine engine(*model_, config);
  const auto before = ask(engine, prompt(9));
  EXPECT_EQ(engine.stats().asleep_bytes, 0u);
  for (int i = 0; i < 600 && engine.stats().asleep_bytes == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(engine.stats().asleep_bytes, 0u);
  EXPECT_EQ(ask(engine, prompt(9)).ids, before.ids);
}

TEST_F(CudaSleep, AModelOfThisMachinesMemorySaysThatThereIsNoCard) {
  auto model = models::Model::load((fixture::kept("qwen2-A") / "model.gguf").string(), models::BackendKind::cpu, {});
  ASSERT_TRUE(model) << model.error().message;
  Engine engine(**model, {});
  const auto given = sleep(engine);
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, Code::unsupported);
  EXPECT_NE(given.error().message.find("no card"), std::string::npos) << given.error().message;
  EXPECT_EQ(ask(engine, prompt(5)).end.kind, Event::Kind::finished);
}

}  // namespace
}  // namespace chimere::engine
