// tiers_test.cpp  One answer wherever the weights are: three budgets of a card's memory, experts in RAM and on disk, with and
// without drafts, before and after a restart that finds the prompt on the disk.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "backend/memory_plan.h"
#include "base/scratch_for_test.h"
#include "engine/engine.h"
#include "engine/speculation_for_test.h"
#include "models/draft_block_for_test.h"
#include "models/fixture_for_test.h"
#include "models/model.h"
#include "models/registry.h"

namespace chimere::engine {
namespace {

using speculative::Mode;

class CudaTiers : public testing::Test, protected SpeculationRuns {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    const auto bytes = fixture::with_draft_block(fixture::kept("qwen3_5_moe-B-untied"));
    ASSERT_TRUE(bytes) << bytes.error().message;
    path_ = (scratch_ / "model.gguf").string();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  // For the states of a conversation and what is kept of it: several slabs (cuda/runtime/state_memory.h).
  static constexpr uint64_t kStateBytes = uint64_t{128} << 20;

  static LoadOptions options(RamExperts who, int cpu_moe, int gpu_layers = kAllLayers) {
    LoadOptions o;
    o.max_rows = 96;
    o.ram_experts = who;
    o.cpu_moe = cpu_moe;
    o.gpu_layers = gpu_layers;
    o.state_bytes = kStateBytes;
    return o;
  }

  // The least of a card's memory in which it can be like that, within a kilobyte.
  uint64_t least_budget(LoadOptions o, bool drafts) const {
    auto file = gguf::File::open(path_);
    models::FileSource source(*file);
    const auto program = models::build_program(source, drafts);
    EXPECT_TRUE(program);
    uint64_t too_little = 0, enough = uint64_t{1} << 32;
    while (enough - too_little > uint64_t{1} << 10) {
      o.device_bytes = (too_little + enough) / 2;
      (cuda::plan_memory(*program, o) ? enough : too_little) = o.device_bytes;
    }
    return enough;
  }

  // A conversation of two turns, before and after a restart.
  using Look = void (*)(const Executable&);
  std::vector<Outcome> answers(LoadOptions o, Mode mode, const std::filesystem::path& cache, Look look) const {
    o.drafts = mode != Mode::off;
    EngineConfig c = config(mode, 3);
    c.cache.ram_bytes = uint64_t{64} << 20;
    c.cache.disk.folder = cache.string();
    c.cache.disk.quota_bytes = uint64_t{1} << 30;
    std::vector<Outcome> turns;
    Request next = plain(5, 70, 9);
    next.sampling.temperature = 0.8f;
    next.sampling.seed = 3;
    next.snapshot_points = {64};
    for (int start = 0; start < 2; ++start) {
      auto model = models::Model::load(path_, models::BackendKind::cuda, o, cuda::compile);
      EXPECT_TRUE(model) << model.error().message;
      if (!model) return turns;
      look((*model)->executable());
      {
        Engine engine(**model, c);
        turns.push_back(ask(engine, next));
      }
      EXPECT_EQ(turns.back().end.kind, Event::Kind::finished)
          << (turns.back().end.error ? turns.back().end.error->message : "");
      EXPECT_GE(turns.back().end.usage.cached_tokens, start > 0 ? 64 : 0) << "a restart was made for this";
      EXPECT_GE(turns.back().end.usage.draft_tokens, mode != Mode::off ? 1 : 0);
      next.prompt.insert(next.prompt.end(), {200, 201, 202});
    }
    return turns;
  }

  struct Place {
    const char* name;
    std::function<LoadOptions(bool drafts)> options;
    Look look;
  };
  // All of these give the answers of the first.
  void all_answer_alike(const std::vector<Place>& places) const {
    std::vector<Outcome> expected;
    for (const Place& place : places) {
      for (const Mode mode : {Mode::off, Mode::always}) {
        const auto cache = scratch_ / (std::string(place.name) + (mode == Mode::off ? "" : " with drafts"));
        const std::vector<Outcome> found = answers(place.options(mode != Mode::off), mode, cache, place.look);
        if (expected.empty()) expected = found;
        ASSERT_EQ(found.size(), expected.size()) << cache.filename();
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_TRUE(same_outcome(found[i], expected[i])) << cache.filename() << ", start " << i;
        }
      }
    }
  }

  std::filesystem::path scratch_;
  std::string path_;
};

// What the card computes has the same bits wherever it lies.
TEST_F(CudaTiers, AnswersDoNotTellTheBudget) {
  const LoadOptions all = options(RamExperts::card, 0), none = options(RamExperts::card, kAllMixtures);
  const auto with_budget = [&](int gpu_layers, auto budget) {
    return [gpu_layers, budget](bool drafts) {
      LoadOptions o = options(RamExperts::card, kFittingMixtures, gpu_layers);
      o.device_bytes = budget(o, drafts);
      return o;
    };
  };
  const auto for_others = [&](const LoadOptions&, bool drafts) {
    return (least_budget(all, drafts) + least_budget(none, drafts)) / 2 + kStateBytes;
  };
  const auto for_least = [&](const LoadOptions& o, bool drafts) { return least_budget(o, drafts) + kStateBytes; };
  all_answer_alike({
      {"all on the card", [&](bool) { return all; },
       [](const Executable& e) { EXPECT_EQ(e.placement()->n_hosted, 0); }},
      {"experts in RAM", with_budget(kAllLayers, for_others),
       [](const Executable& e) {
         EXPECT_EQ(e.placement()->n_hosted, e.placement()->n_mixtures) << e.placement()->text;
         EXPECT_EQ(e.placement()->n_layers_in_ram, 0) << e.placement()->text;
       }},
      {"layers in RAM", with_budget(kFittingLayers, for_least),
       [](const Executable& e) {
         EXPECT_GT(e.placement()->n_layers_in_ram, 0) << e.placement()->text;
         EXPECT_GT(e.placement()->n_hosted, 0) << e.placement()->text;
         EXPECT_LE((*const_cast<Executable&>(e).report())->peak_bytes, e.placement()->budget_bytes);
       }},
  });
}

// So has what the CPU computes beside it.
TEST_F(CudaTiers, AnswersDoNotTellTheDisk) {
  const LoadOptions in_ram = options(RamExperts::cpu, kAllMixtures);
  const auto on_disk = [&](bool drafts) {
    LoadOptions o = in_ram;
    o.drafts = drafts;
    auto model = models::Model::load(path_, models::BackendKind::cuda, o, cuda::compile);
    EXPECT_TRUE(model) << model.error().message;
    o.ram_bytes = (*model)->executable().placement()->host_bytes / 4 * 3;
    o.experts_folder = (scratch_ / "experts").string();
    return o;
  };
  all_answer_alike({
      {"in RAM", [&](bool) { return in_ram; }, [](const Executable& e) { EXPECT_FALSE(e.expert_traffic()); }},
      {"on disk", on_disk,
       [](const Executable& e) {
         ASSERT_TRUE(e.expert_traffic());
         EXPECT_LT(e.expert_traffic()->n_slots, e.expert_traffic()->n_experts);
       }},
  });
}

}  // namespace
}  // namespace chimere::engine
