// Requests with different adapters in one engine: the answers of each alone, and a cache that never mixes them.
#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/adapter_for_test.h"

namespace chimere::engine {
namespace {

class EngineAdapters : public testing::Test {
 protected:
  void SetUp() override {
    const auto folder = fixture::kept("qwen3_5-A");
    scratch_ = fixture::scratch_folder();
    model_ = fixture::load(folder, models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
    ASSERT_TRUE(model_);
    const auto one = fixture::adapter_on(model_->executable(), folder, 1, scratch_),
               two = fixture::adapter_on(model_->executable(), folder, 2, scratch_);
    ASSERT_TRUE(one && two);
    const auto set = [](std::vector<AdapterSet::Use> uses) {
      return std::make_shared<AdapterSet>(AdapterSet{std::move(uses)});
    };
    sets_ = {nullptr, set({{one, 1.0f}}), set({{two, 1.0f}}), set({{one, 0.5f}}), set({{one, 1.0f}, {two, 1.0f}})};
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  Request request(size_t set) const {
    Request r;
    for (int i = 0; i < 90; ++i) r.prompt.push_back((7919 + i * 104729 + i * i % 31) % 1000);
    r.snapshot_points = {85};
    r.sampling.temperature = 0;
    r.max_tokens = 12;
    r.adapters = sets_[set];
    return r;
  }
  EngineConfig config(bool cache) const {
    EngineConfig c;
    c.prefill_tokens = 64;
    if (!cache) c.cache.ram_bytes = 0;
    return c;
  }
  Answer ask(Engine& engine, size_t set) {
    auto submitted = engine.submit(request(set));
    EXPECT_TRUE(submitted);
    return collect(*submitted->events);
  }

  std::filesystem::path scratch_;
  std::unique_ptr<models::Model> model_;
  std::vector<std::shared_ptr<const AdapterSet>> sets_;
};

TEST_F(EngineAdapters, TogetherAndAloneCachedAndCold) {
  std::vector<std::vector<int32_t>> alone;
  for (size_t i = 0; i < sets_.size(); ++i) {
    Engine engine(*model_, config(false));
    alone.push_back(ask(engine, i).ids);
    ASSERT_FALSE(alone.back().empty());
  }
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_NE(alone[1], alone[2]);

  Engine engine(*model_, config(true));
  std::vector<Submitted> running;
  for (size_t i = 0; i < sets_.size(); ++i) {
    auto submitted = engine.submit(request(i));
    ASSERT_TRUE(submitted);
    running.push_back(*submitted);
  }
  for (size_t i = 0; i < sets_.size(); ++i) {
    const Answer answer = collect(*running[i].events);
    EXPECT_EQ(answer.ids, alone[i]) << i;
    EXPECT_EQ(answer.cached(), 0) << "the same prompt under another adapter is another prompt";
  }
  for (size_t i = 0; i < sets_.size(); ++i) {
    const Answer again = ask(engine, i);
    EXPECT_EQ(again.ids, alone[i]) << i;
    EXPECT_EQ(again.cached(), 85) << i;
  }
}

// A snapshot on the disk belongs to its adapters too.
TEST_F(EngineAdapters, SnapshotsOnTheDiskAreKeptApart) {
  EngineConfig c = config(true);
  c.cache.disk.folder = (scratch_ / "cache").string();
  c.cache.disk.quota_bytes = uint64_t{1} << 30;
  std::vector<int32_t> before;
  {
    Engine engine(*model_, c);
    before = ask(engine, 1).ids;
  }
  Engine engine(*model_, c);
  EXPECT_EQ(ask(engine, 0).cached(), 0);
  EXPECT_EQ(ask(engine, 2).cached(), 0);
  EXPECT_EQ(ask(engine, 3).cached(), 0);
  const Answer again = ask(engine, 1);
  EXPECT_EQ(again.cached(), 85);
  EXPECT_EQ(again.ids, before);
}

}  // namespace
}  // namespace chimere::engine
