// prefix_reuse_test.cpp  What prompts share: reuse, equality with cold runs, restarts, bad files, memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

namespace fs = std::filesystem;

std::vector<int32_t> text(int seed, int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((seed * 7919 + i * 104729 + i * i % 31) % 1000);
  return ids;
}

std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Request greedy(std::vector<int32_t> prompt, std::vector<int32_t> points, int max_tokens = 8) {
  Request r;
  r.prompt = std::move(prompt);
  r.snapshot_points = std::move(points);
  r.sampling.temperature = 0;
  r.max_tokens = max_tokens;
  return r;
}

// Hybrid and pure attention.
class PrefixReuse : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept(GetParam()), models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
    ASSERT_TRUE(model_);
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = fs::path(testing::TempDir()) / ("chimere-prefix-reuse-" + std::to_string(::getpid()) + "-" + name);
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  EngineConfig config(bool cache = true) const {
    EngineConfig c;
    c.prefill_tokens = 64;
    if (!cache) c.cache.ram_bytes = 0;
    return c;
  }
  EngineConfig on_disk() {
    EngineConfig c = config();
    c.cache.disk.folder = folder_.string();
    c.cache.disk.quota_bytes = uint64_t{1} << 30;
    c.cache.disk.log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    return c;
  }
  Answer ask(Engine& engine, const Request& request) {
    auto s = engine.submit(request);
    EXPECT_TRUE(s);
    return collect(*s->events);
  }
  Answer cold(const Request& request) {
    Engine engine(*model_, config(false));
    return ask(engine, request);
  }
  std::vector<fs::path> files(const char* extension) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() == extension) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  uint64_t misses(const Engine& engine, CacheMiss why) const {
    for (const auto& [reason, n] : engine.stats().cache.misses) {
      if (reason == name(why)) return n;
    }
    return 0;
  }
  size_t n_lines() {
    std::lock_guard lock(mutex_);
    return lines_.size();
  }

  std::unique_ptr<models::Model> model_;
  fs::path folder_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_P(PrefixReuse, CachedAnswersEqualColdOnes) {
  const auto system = text(1, 150);
  const Request first = greedy(system + text(2, 70) + text(3, 5), {150, 220});
  const Request other = greedy(system + text(4, 40) + text(3, 5), {150, 190});
  const Request edited = greedy(system + text(2, 30) + text(5, 50) + text(3, 5), {150, 230});
  const std::vector<int32_t> expected[] = {cold(first).ids, cold(other).ids, cold(edited).ids};

  Engine engine(*model_, config());
  const Answer a = ask(engine, first);
  EXPECT_EQ(a.ids, expected[0]);
  EXPECT_EQ(a.cached(), 0);
  EXPECT_EQ(a.end.usage.cache_miss, CacheMiss::empty);
  const Answer again = ask(engine, first);
  EXPECT_EQ(again.ids, expected[0]);
  EXPECT_EQ(again.cached(), 220) << "all but what is behind the last point";
  EXPECT_EQ(again.end.usage.cache_miss, CacheMiss::none);
  const Answer b = ask(engine, other);
  EXPECT_EQ(b.ids, expected[1]);
  EXPECT_EQ(b.cached(), 150);
  EXPECT_EQ(b.end.usage.cache_miss, CacheMiss::changed);
  EXPECT_EQ(b.end.usage.cache_differs_at, 150);
  const Answer c = ask(engine, edited);
  EXPECT_EQ(c.ids, expected[2]);
  EXPECT_EQ(c.cached(), 150);
  EXPECT_EQ(c.end.usage.cache_differs_at, 180);
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.cache.lookups, 4u);
  EXPECT_EQ(stats.cache.hits, 3u);
  EXPECT_EQ(stats.prompt_tokens_reused, 220u + 150 + 150);
  EXPECT_EQ(stats.prompt_tokens, 225u + 5 + 45 + 85);
}

TEST_P(PrefixReuse, AnAnswerThatComesBackIsNotReadAgain) {
  Engine engine(*model_, config());
  const auto prompt = text(1, 100);
  const Answer a = ask(engine, greedy(prompt, {95}, 20));
  ASSERT_EQ(a.ids.size(), 20u);
  const Answer b = ask(engine, greedy(prompt + a.ids + text(2, 30), {95, 125}));
  EXPECT_EQ(b.cached(), 119) << "the last token of an answer was never an input";
}

TEST_P(PrefixReuse, ScopesShareNothing) {
  Engine engine(*model_, config());
  Request r = greedy(text(1, 100), {95});
  ask(engine, r);
  r.cache_scope = 7;
  const Answer b = ask(engine, r);
  EXPECT_EQ(b.cached(), 0);
  EXPECT_EQ(b.end.usage.cache_miss, CacheMiss::empty) << "what others asked is not told";
  EXPECT_EQ(misses(engine, CacheMiss::scope), 1u);
  EXPECT_EQ(ask(engine, r).cached(), 95);
}

TEST_P(PrefixReuse, SurvivesARestart) {
  const Request r = greedy(text(1, 150) + text(2, 75), {150, 220});
  std::vector<int32_t> before;
  {
    Engine engine(*model_, on_disk());
    before = ask(engine, r).ids;
  }
  EXPECT_FALSE(files(".point").empty());
  Engine engine(*model_, on_disk());
  EXPECT_GT(engine.stats().cache.disk_bytes, 0u);
  const Answer after = ask(engine, r);
  EXPECT_EQ(after.ids, before);
  EXPECT_EQ(after.cached(), 220);
  EXPECT_EQ(ask(engine, greedy(text(1, 150) + text(3, 30), {150})).cached(), 150) << "pages are shared on disk too";
  EXPECT_EQ(n_lines(), 0u);
}

TEST_P(PrefixReuse, ABadFileIsIgnoredWithALine) {
  const Request r = greedy(text(1, 150) + text(2, 75), {150, 220});
  const std::vector<int32_t> expected = cold(r).ids;
  enum class Harm { truncate, flip_state, flip_head, foreign, lose_pages };
  for (const Harm harm : {Harm::truncate, Harm::flip_state, Harm::flip_head, Harm::foreign, Harm::lose_pages}) {
    fs::remove_all(folder_);
    lines_.clear();
    {
      Engine engine(*model_, on_disk());
      ask(engine, r);
    }
    ASSERT_FALSE(files(".point").empty());
    for (const fs::path& file : files(".point")) {
      std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
      const auto size = static_cast<std::streamoff>(fs::file_size(file));
      if (harm == Harm::flip_state) f.seekp(size - 20).put('\x55');
      if (harm == Harm::flip_head) f.seekp(70).put('\x55');
      if (harm == Harm::foreign) f.seekp(0).write("GGUF", 4);
      f.close();
      if (harm == Harm::truncate) fs::resize_file(file, fs::file_size(file) / 2);
    }
    if (harm == Harm::lose_pages) {
      for (const fs::path& file : files(".page")) fs::remove(file);
    }
    Engine engine(*model_, on_disk());
    const Answer a = ask(engine, r);
    EXPECT_EQ(a.ids, expected) << static_cast<int>(harm);
    EXPECT_EQ(a.cached(), 0) << static_cast<int>(harm);
    EXPECT_GT(n_lines(), 0u) << static_cast<int>(harm);
    EXPECT_EQ(ask(engine, r).cached(), 220) << "and it is kept anew";
  }
}

TEST_P(PrefixReuse, ADiskThatCannotBeWrittenHurtsNobody) {
  EngineConfig c = on_disk();
  c.cache.disk.write_file = [](const std::string&, std::span<const std::byte>) -> Status {
    return Error{Code::io, "no space left"};
  };
  const Request r = greedy(text(1, 150) + text(2, 75), {150, 220});
  {
    Engine engine(*model_, c);
    const Answer a = ask(engine, r);
    EXPECT_EQ(ask(engine, r).ids, a.ids);
  }
  EXPECT_GT(n_lines(), 0u);
  EXPECT_TRUE(files(".point").empty());
}

TEST_P(PrefixReuse, ACancelledPromptIsNotComputedTwice) {
  const Request r = greedy(text(1, 400), {}, 4);
  const std::vector<int32_t> expected = cold(r).ids;
  Engine engine(*model_, config());
  // Another request holds the thread while this one is in the middle of its prompt.
  Gate gate;
  auto blocker = engine.submit(greedy(text(9, 70), {}, 1), gate.hook());
  auto s = engine.submit(r);
  blocker->events->wait();
  engine.cancel(s->id);
  gate.open();
  const Answer cancelled = collect(*s->events);
  EXPECT_EQ(cancelled.end.reason, FinishReason::cancelled);
  const Answer retried = ask(engine, r);
  EXPECT_EQ(retried.ids, expected);
  EXPECT_EQ(retried.cached() % 64, 0);
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.prompt_tokens, 70u + 400u) << "each token once";
}

TEST_P(PrefixReuse, OneThatIsComputedNowIsWaitedFor) {
  const Request r = greedy(text(1, 300), {295}, 6);
  const std::vector<int32_t> expected = cold(r).ids;
  Engine engine(*model_, config());
  std::vector<Submitted> submitted;
  for (int i = 0; i < 8; ++i) submitted.push_back(*engine.submit(r));
  for (Submitted& s : submitted) EXPECT_EQ(collect(*s.events).ids, expected);
  EXPECT_EQ(engine.stats().prompt_tokens, 300u + 7 * 5) << "the prompt was computed once";
}

TEST_P(PrefixReuse, TogetherAsAlone) {
  std::vector<Request> requests;
  for (int i = 0; i < 8; ++i) {
    const auto beginning = text(i % 2, 130);
    requests.push_back(greedy(beginning + text(10 + i, 20 + 9 * i) + text(3, 5), {130, 150 + 9 * i}, 10));
  }
  std::vector<std::vector<int32_t>> alone;
  for (const Request& r : requests) alone.push_back(cold(r).ids);
  Engine engine(*model_, config());
  std::vector<Submitted> submitted;
  for (const Request& r : requests) submitted.push_back(*engine.submit(r));
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(collect(*submitted[i].events).ids, alone[i]) << i;
}

TEST_P(PrefixReuse, TheBudgetHolds) {
  EngineConfig c = on_disk();
  const StateLayout& layout = model_->executable().layout();
  const uint64_t point = layout.recurrent_floats() * sizeof(float) + 3 * layout.page_bytes();
  c.cache.ram_bytes = 4 * point;
  c.cache.disk.quota_bytes = 12 * point;
  Engine engine(*model_, c);
  const Request kept = greedy(text(0, 120) + text(1, 20), {120}, 4);
  const std::vector<int32_t> expected = ask(engine, kept).ids;
  for (int i = 0; i < 12; ++i) {
    ask(engine, greedy(text(i + 20, 150), {100, 140}, 4));
    const EngineStats stats = engine.stats();
    EXPECT_LE(stats.cache.ram_bytes, c.cache.ram_bytes);
    EXPECT_LE(stats.cache.disk_bytes, c.cache.disk.quota_bytes);
  }
  EXPECT_EQ(ask(engine, kept).ids, expected);
}

TEST_P(PrefixReuse, WhatGaveWayIsSaid) {
  EngineConfig c = config();
  const StateLayout& layout = model_->executable().layout();
  c.cache.ram_bytes = 2 * layout.recurrent_floats() * sizeof(float) + 5 * layout.page_bytes();
  Engine engine(*model_, c);
  const Request r = greedy(text(1, 100), {95}, 4);
  ask(engine, r);
  for (int i = 0; i < 4; ++i) ask(engine, greedy(text(i + 20, 100), {95}, 4));
  const Answer again = ask(engine, r);
  EXPECT_EQ(again.cached(), 0);
  EXPECT_EQ(again.end.usage.cache_miss, CacheMiss::evicted);
}

TEST_P(PrefixReuse, MemoryForRequestsComesBeforeTheCache) {
  EngineConfig c = config();
  const StateLayout& layout = model_->executable().layout();
  const uint64_t recurrent = layout.recurrent_floats() * sizeof(float);
  // Two conversations of 5 pages, and little more.
  c.state_bytes = 2 * (recurrent + 5 * layout.page_bytes()) + layout.page_bytes();
  c.max_running = 4;
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) requests.push_back(greedy(text(i, 200), {100, 190}, 40));
  std::vector<std::vector<int32_t>> alone;
  for (const Request& r : requests) alone.push_back(cold(r).ids);
  Engine engine(*model_, c);
  std::vector<Submitted> submitted;
  for (const Request& r : requests) submitted.push_back(*engine.submit(r));
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer a = collect(*submitted[i].events);
    EXPECT_EQ(a.end.kind, Event::Kind::finished);
    EXPECT_EQ(a.ids, alone[i]);
    EXPECT_LE(engine.stats().state_bytes, c.state_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PrefixReuse, testing::Values("qwen3_5-A", "qwen2-A"), [](const auto& info) {
  return std::string(info.param) == "qwen2-A" ? "attention" : "hybrid";
});

}  // namespace
}  // namespace chimere::engine
