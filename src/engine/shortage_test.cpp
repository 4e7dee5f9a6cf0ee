// shortage_test.cpp  Where memory for states ends, requests wait for each other, and their answers are those of an engine
// with room.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "engine/tight_device_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

namespace fs = std::filesystem;

// Of one slice class after the other: the prompt is not whole slices, the answer not whole pages.
Request one_of_many(int i) {
  Request r;
  for (int at = 0; at < 150 + 7 * i; ++at) r.prompt.push_back((i * 7919 + at * 104729 + 13) % 1000);
  r.snapshot_points = {100};
  r.sampling.temperature = 0.8f;
  r.sampling.seed = static_cast<uint64_t>(i);
  r.max_tokens = 150;
  return r;
}

class ShortageTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kRequests = 5;

  void SetUp() override {
    TightDevice::room = UINT64_MAX;
    LoadOptions options;
    options.kv = {DType::F16, DType::F16, false};
    options.n_threads = 1;
    options.max_rows = 96;
    auto model = models::Model::load((fixture::kept(GetParam()) / "model.gguf").string(), models::BackendKind::cpu,
                                     options, TightDevice::compile);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
  }
  void TearDown() override {
    TightDevice::room = UINT64_MAX;
    TightDevice::waking = TightDevice::kAwake;
  }

  EngineConfig config() {
    EngineConfig c;
    c.max_running = kRequests;
    c.prefill_tokens = 64;
    c.log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    return c;
  }
  // Of the state of a text, and the page that a snapshot makes it copy.
  uint64_t state_of(int n_tokens) const {
    const StateLayout& layout = model_->executable().layout();
    return layout.recurrent_floats() * sizeof(float) +
           static_cast<uint64_t>(n_tokens / kPageTokens + 1) * layout.page_bytes();
  }
  std::vector<std::vector<int32_t>> ask_all(Engine& engine) {
    std::vector<Submitted> submitted;
    for (int i = 0; i < kRequests; ++i) {
      auto s = engine.submit(one_of_many(i));
      EXPECT_TRUE(s) << s.error().message;
      if (s) submitted.push_back(*s);
    }
    std::vector<std::vector<int32_t>> all;
    for (Submitted& s : submitted) {
      const Answer answer = collect(*s.events);
      EXPECT_EQ(answer.end.kind, Event::Kind::finished) << (answer.end.error ? answer.end.error->message : "");
      EXPECT_EQ(answer.end.usage.completion_tokens, 150);
      EXPECT_EQ(answer.end.usage.cached_tokens, 0);
      all.push_back(answer.ids);
    }
    return all;
  }
  std::vector<std::vector<int32_t>> with_room() {
    TightDevice::room = UINT64_MAX;
    Engine engine(*model_, config());
    auto all = ask_all(engine);
    const Shortage shortage = engine.stats().shortage;
    EXPECT_EQ(shortage.waits + shortage.refusals + shortage.given_back, 0u);
    EXPECT_EQ(n_lines(), 0u);
    return all;
  }
  size_t n_lines() {
    std::lock_guard lock(mutex_);
    return lines_.size();
  }

  std::unique_ptr<models::Model> model_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

// The device has room for two of five conversations at their ends, but all five begin.
TEST_P(ShortageTest, AllFinishWithTheAnswersOfOneWithRoom) {
  const auto expected = with_room();
  for (const uint64_t cache_bytes : {uint64_t{0}, uint64_t{1} << 30}) {
    EngineConfig c = config();
    c.cache.ram_bytes = cache_bytes;
    lines_.clear();
    TightDevice::room = TightDevice::held + 2 * state_of(340);
    Engine engine(*model_, c);
    EXPECT_EQ(ask_all(engine), expected) << cache_bytes;
    const Shortage shortage = engine.stats().shortage;
    EXPECT_GT(shortage.refusals, 0u);
    EXPECT_GT(shortage.waits, 0u);
    EXPECT_GT(shortage.given_back, 0u) << "nobody else could go on";
    EXPECT_EQ(n_lines(), 1u);
    EXPECT_NE(lines_.front().find("the device has no more"), std::string::npos) << lines_.front();
  }
}

// What was given back may have gone to the disk, and guesses may be made meanwhile.
TEST_P(ShortageTest, TheDiskAndDraftsChangeNothing) {
  const auto expected = with_room();
  const fs::path folder = fs::path(testing::TempDir()) / ("chimere-shortage-" + std::to_string(::getpid()));
  for (const auto mode : {speculative::Mode::off, speculative::Mode::always}) {
    EngineConfig c = config();
    c.speculate = mode;
    c.cache.disk.folder = folder.string();
    c.cache.disk.quota_bytes = uint64_t{1} << 30;
    TightDevice::room = TightDevice::held + 2 * state_of(340);
    Engine engine(*model_, c);
    engine.clear_cache({}, [](const CacheUse&) {});
    EXPECT_EQ(ask_all(engine), expected) << name(mode);
    EXPECT_GT(engine.stats().shortage.given_back, 0u);
  }
  fs::remove_all(folder);
}

// Forks of answers that are under way, which nothing is reserved for when they begin.
TEST_P(ShortageTest, ForksWaitForRoom) {
  Request r = one_of_many(1);
  std::vector<std::vector<int32_t>> answers[2];
  for (const bool is_tight : {false, true}) {
    TightDevice::room = is_tight ? TightDevice::held + state_of(320) + state_of(64) / 2 : UINT64_MAX;
    Gate gate;
    EngineConfig c = config();
    c.cache.ram_bytes = 0;
    Engine engine(*model_, c);
    auto first = engine.submit(r, gate.hook());
    ASSERT_TRUE(first);
    std::vector<Submitted> all{*first};
    first->events->wait();
    for (int i = 0; i < 2; ++i) {
      SamplingParams other = r.sampling;
      other.seed = static_cast<uint64_t>(100 + i);
      all.push_back(*engine.fork(first->id, other));
    }
    gate.open();
    for (Submitted& s : all) {
      const Answer answer = collect(*s.events);
      EXPECT_EQ(answer.end.kind, Event::Kind::finished) << (answer.end.error ? answer.end.error->message : "");
      answers[is_tight].push_back(answer.ids);
    }
    EXPECT_EQ(engine.stats().shortage.waits > 0, is_tight);
  }
  EXPECT_EQ(answers[1], answers[0]);
}

TEST_P(ShortageTest, OneThatDoesNotFitAloneIsToldSo) {
  TightDevice::room = TightDevice::held + state_of(200);
  Engine engine(*model_, config());
  const Answer failed = collect(*engine.submit(one_of_many(0))->events);
  ASSERT_EQ(failed.end.kind, Event::Kind::failed);
  EXPECT_EQ(failed.end.error->code, Code::exhausted);
  EXPECT_NE(failed.end.error->message.find("this request alone"), std::string::npos) << failed.end.error->message;
  EXPECT_NE(failed.end.error->message.find("the device has"), std::string::npos) << failed.end.error->message;
  Request small = one_of_many(0);
  small.max_tokens = 5;
  EXPECT_EQ(collect(*engine.submit(small)->events).end.kind, Event::Kind::finished);
  TightDevice::room = 0;  // not even a state that is empty
  if (model_->executable().layout().recurrent_floats() > 0) {
    engine.clear_cache({}, [](const CacheUse&) {});
    const Answer none = collect(*engine.submit(small)->events);
    ASSERT_EQ(none.end.kind, Event::Kind::failed);
    EXPECT_NE(none.end.error->message.find("this request alone"), std::string::npos) << none.end.error->message;
  }
  TightDevice::room = UINT64_MAX;
  EXPECT_EQ(collect(*engine.submit(one_of_many(0))->events).end.kind, Event::Kind::finished) << "it has room again";
  while (engine.stats().shortage.limit_bytes < engine.stats().shortage.wanted_bytes) std::this_thread::yield();
  EXPECT_EQ(engine.stats().shortage.waiting, 0);
}

// The limit of the engine, not of the device: nobody is refused, and those beyond it wait.
TEST_P(ShortageTest, ThoseBeyondTheLimitWait) {
  const auto expected = with_room();
  EngineConfig c = config();
  c.state_bytes = 2 * state_of(340);
  Engine engine(*model_, c);
  EXPECT_EQ(ask_all(engine), expected);
  const Shortage shortage = engine.stats().shortage;
  EXPECT_EQ(shortage.refusals, 0u);
  EXPECT_GT(shortage.waits, 0u);
  EXPECT_EQ(n_lines(), 1u);
  EXPECT_NE(lines_.front().find("--state-gb"), std::string::npos) << lines_.front();
}

TEST_P(ShortageTest, TextsThatAreEmbeddedWaitAndBeginAnew) {
  std::vector<std::vector<int32_t>> texts;
  for (int i = 0; i < 4; ++i) texts.push_back(one_of_many(i).prompt);
  Vectors vectors[2];
  std::vector<std::vector<int32_t>> answers[2];
  for (const bool is_tight : {false, true}) {
    TightDevice::room = is_tight ? TightDevice::held + 2 * state_of(340) : UINT64_MAX;
    EngineConfig c = config();
    Engine engine(*model_, c);
    auto embedded = engine.embed({.texts = texts});
    ASSERT_TRUE(embedded);
    answers[is_tight] = ask_all(engine);
    auto found = embedded->result->wait();
    ASSERT_TRUE(found) << found.error().message;
    vectors[is_tight] = *found;
  }
  EXPECT_EQ(vectors[1], vectors[0]);
  EXPECT_EQ(answers[1], answers[0]);
}

Result<uint64_t> put_to_sleep(Engine& engine) {
  std::promise<Result<uint64_t>> done;
  engine.sleep([&](Result<uint64_t> given) { done.set_value(std::move(given)); });
  return done.get_future().get();
}

TEST_P(ShortageTest, ASleepingModelIsWaitedForWhileOthersHoldTheCard) {
  const std::vector<int32_t> alone = [&] {
    Engine engine(*model_, config());
    return collect(*engine.submit(one_of_many(1))->events).ids;
  }();
  EngineConfig c = config();
  c.max_queued = 2;
  Engine engine(*model_, c);
  ASSERT_TRUE(put_to_sleep(engine));
  TightDevice::waking = Code::exhausted;
  TightDevice::n_wakes = 0;
  auto waits = engine.submit(one_of_many(1));
  ASSERT_TRUE(waits);
  Request late = one_of_many(2);
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  auto ends = engine.submit(std::move(late));
  ASSERT_TRUE(ends);
  const auto refused = engine.submit(one_of_many(3));
  ASSERT_FALSE(refused) << "the line is as long as ever";
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_EQ(collect(*ends->events).end.reason, FinishReason::deadline);
  auto leaves = engine.submit(one_of_many(4));
  ASSERT_TRUE(leaves);
  engine.cancel(leaves->id);
  EXPECT_EQ(collect(*leaves->events).end.reason, FinishReason::cancelled);
  while (TightDevice::n_wakes < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LT(TightDevice::n_wakes, 10) << "it is not asked all the time";
  EXPECT_GT(engine.stats().asleep_bytes, 0u);
  EXPECT_EQ(engine.stats().queued, 1);
  TightDevice::waking = TightDevice::kAwake;
  EXPECT_EQ(collect(*waits->events).ids, alone);
  EXPECT_EQ(engine.stats().asleep_bytes, 0u);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(std::count_if(lines_.begin(), lines_.end(),
                          [](const std::string& line) { return line.find("requests wait") != std::string::npos; }),
            1)
      << "said once";
}

TEST_P(ShortageTest, ASleepingModelThatCanNotBeWokenEndsItsRequests) {
  Engine engine(*model_, config());
  ASSERT_TRUE(put_to_sleep(engine));
  TightDevice::waking = Code::device;
  const Answer answer = collect(*engine.submit(one_of_many(1))->events);
  EXPECT_EQ(answer.end.kind, Event::Kind::failed);
  EXPECT_NE(answer.end.error->message.find("can not be woken: others hold the card"), std::string::npos);
  TightDevice::waking = TightDevice::kAwake;
  EXPECT_EQ(collect(*engine.submit(one_of_many(1))->events).end.kind, Event::Kind::finished) << "it is tried again";
}

INSTANTIATE_TEST_SUITE_P(Models, ShortageTest, testing::Values("qwen3_5-A", "qwen2-A"), [](const auto& info) {
  return std::string(info.param) == "qwen2-A" ? "attention" : "hybrid";
});

}  // namespace
}  // namespace chimere::engine
