// Layers in RAM that are brought to the card: bits, what is planned and what is taken, drafts, sleep, and what is refused.
#include "backend/cuda/ram_layers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cuda/runtime/device.h"
#include "backend/memory_plan.h"
#include "models/runs_for_test.h"
#include "models/synthetic.h"
#include "parity/loaded_model.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

LoadOptions options_of(bool exact, int gpu_layers, uint64_t device_bytes = 0) {
  LoadOptions options = options_for(exact, kHalfKv);
  options.ram_experts = RamExperts::card;
  options.gpu_layers = gpu_layers;
  options.device_bytes = device_bytes;
  return options;
}

Loaded loaded(const fs::path& folder, const LoadOptions& options) {
  auto made = Loaded::open(folder, cuda::compile, options);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

std::vector<fs::path> some_models() {
  if (kSanitized) return {fixture::kept("qwen3_5-A")};
  return {fixture::kept("llama-spm"), fixture::kept("qwen3_5-A"), fixture::kept("qwen3_5_moe-B-untied")};
}

// In prompts, in slices of few rows and in single ones that come again as graphs, in both modes.
TEST(RamLayers, GiveTheBitsOfThoseOnTheCard) {
  for (const fs::path& folder : some_models()) {
    const std::vector<int32_t> tokens = some_tokens(folder, 29);
    for (const bool exact : {false, true}) {
      Loaded resident = loaded(folder, options_of(exact, kAllLayers));
      for (const int on_card : {0, 1}) {
        if (exact && on_card == 1) continue;
        Loaded brought = loaded(folder, options_of(exact, on_card));
        const auto placement = brought->placement();
        ASSERT_TRUE(placement);
        EXPECT_EQ(placement->n_layers_in_ram, placement->n_layers - on_card) << placement->text;
        EXPECT_GT(placement->n_layers_in_ram, 0) << folder.filename();
        EXPECT_GT(placement->host_bytes, 0u);
        EXPECT_LT(placement->card_bytes, resident->placement()->card_bytes) << folder.filename();
        for (const std::vector<int>& pieces : {std::vector<int>{27, 1}, std::vector<int>{20, 5, 2, 1}}) {
          EXPECT_EQ(feed_alone(*resident, tokens, pieces), feed_alone(*brought, tokens, pieces))
              << folder.filename() << ", " << on_card << " layers on the card";
        }
      }
    }
  }
}

// With experts in RAM, too, some of which move to and from slots meanwhile.
TEST(RamLayers, BesideExpertsThatTheCardReads) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 40);
  LoadOptions options = options_of(false, 0);
  options.cpu_moe = kAllMixtures;
  Loaded resident = loaded(folder, options_of(false, kAllLayers)), brought = loaded(folder, options);
  const auto placement = brought->placement();
  EXPECT_EQ(placement->n_hosted, placement->n_mixtures);
  EXPECT_EQ(placement->n_layers_in_ram, placement->n_layers);
  EXPECT_EQ(feed_alone(*resident, tokens, {20, 1}), feed_alone(*brought, tokens, {20, 1}));
}

class DenseShape : public testing::Test {
 protected:
  void SetUp() override {
    auto source = models::synthetic_source("llama-tiny:q4_k");
    ASSERT_TRUE(source) << source.error().message;
    source_ = std::move(*source);
    auto program = models::build_program(*source_);
    ASSERT_TRUE(program) << program.error().message;
    program_ = std::move(*program);
  }
  Result<MemoryPlan> plan(const LoadOptions& options) const { return cuda::plan_memory(program_, options); }
  // The least memory in which it can be, within 64 KiB.
  uint64_t least_budget(LoadOptions options) const {
    uint64_t too_little = 0, enough = uint64_t{1} << 32;
    while (enough - too_little > uint64_t{1} << 16) {
      options.device_bytes = (too_little + enough) / 2;
      (plan(options) ? enough : too_little) = options.device_bytes;
    }
    return enough;
  }

  std::unique_ptr<models::WeightSource> source_;
  Program program_;
};

// Any budget: as few layers in RAM as it takes, the plan is what is then taken, which is never more than the budget.
TEST_F(DenseShape, GoesToTheCardAsFarAsItFits) {
  LoadOptions options = options_of(false, kFittingLayers);
  options.context_tokens = 256;
  const uint64_t least = least_budget(options), whole = least_budget(options_of(false, kAllLayers));
  ASSERT_LT(least + (uint64_t{8} << 20), whole);
  int fewer = 9;
  for (const double share : {0.0, 0.3, 0.7, 1.1}) {
    options.device_bytes = least + static_cast<uint64_t>(share * static_cast<double>(whole - least)) + (4 << 20);
    const auto planned = plan(options);
    ASSERT_TRUE(planned) << planned.error().message;
    auto made = cuda::compile(program_, options);
    ASSERT_TRUE(made) << made.error().message;
    const auto placement = (*made)->placement();
    EXPECT_EQ(planned->text, placement->text);
    EXPECT_EQ(planned->n_layers_in_ram, placement->n_layers_in_ram);
    EXPECT_EQ(planned->n_layers, 8);
    uint64_t in_ram = 0, brought = 0;
    for (const MemoryPlan::Matrix& m : planned->matrices) {
      in_ram += m.tier == Tier::ram ? m.bytes : 0;
      brought += m.is_brought ? m.bytes : 0;
    }
    EXPECT_EQ(in_ram, placement->host_bytes);
    EXPECT_EQ(brought > 0, placement->n_layers_in_ram > 0);
    EXPECT_LE(placement->n_layers_in_ram, fewer) << "more room, more layers";
    fewer = placement->n_layers_in_ram;
    const auto report = (*made)->report();
    ASSERT_TRUE(report && *report);
    EXPECT_LE((*report)->peak_bytes, options.device_bytes);
    if (placement->n_layers_in_ram == 0) continue;
    EXPECT_NE(placement->text.find(std::to_string(placement->n_layers_in_ram) +
                                   " of 8 layers and the table of tokens in RAM"),
              std::string::npos)
        << placement->text;
    EXPECT_NE((*report)->memory.find("in RAM: " + std::to_string(placement->n_layers_in_ram) + " layers"),
              std::string::npos)
        << (*report)->memory;
  }
  EXPECT_EQ(fewer, 0) << "with room for all of it, all is there";
}

TEST_F(DenseShape, AsManyAsWereAskedForAndNoMore) {
  LoadOptions options = options_of(false, 3);
  const auto some = plan(options);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->n_layers_in_ram, 5);
  EXPECT_NE(some->text.find("--gpu-layers asked for it"), std::string::npos) << some->text;
  for (const int all : {8, 99}) {
    options.gpu_layers = all;
    const auto plan_of_all = plan(options);
    ASSERT_TRUE(plan_of_all);
    EXPECT_EQ(plan_of_all->n_layers_in_ram, 0);
    EXPECT_NE(plan_of_all->text.find("all weights on"), std::string::npos) << plan_of_all->text;
  }
  // Too much for the card: the message says what is not.
  options.gpu_layers = 7;
  options.device_bytes = least_budget(options_of(false, kFittingLayers)) + (uint64_t{1} << 20);
  const auto refused = plan(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_NE(refused.error().message.find("with 1 of 8 layers in RAM"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("--gpu-layers auto"), std::string::npos) << refused.error().message;
}

TEST_F(DenseShape, HasNoPlaceWhereRamIsToSmallToo) {
  LoadOptions options = options_of(false, 0);
  const auto planned = plan(options);
  ASSERT_TRUE(planned);
  uint64_t in_ram = 0;
  for (const MemoryPlan::Matrix& m : planned->matrices) in_ram += m.tier == Tier::ram ? m.bytes : 0;
  options.ram_bytes = in_ram;
  EXPECT_TRUE(plan(options));
  options.ram_bytes = in_ram - 1;
  const auto refused = plan(options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("nor into RAM"), std::string::npos) << refused.error().message;
}

// A system that lets a program pin nothing says so; models::Model goes to the CPU then.
TEST_F(DenseShape, WithoutPinnedMemoryIsAnError) {
  cuda::refuse_pinned_after(2);
  const auto refused = cuda::compile(program_, options_of(false, 0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_NE(refused.error().message.find("pinned memory"), std::string::npos) << refused.error().message;
}

// Asleep between any two steps.
TEST(RamLayers, SleepAndWake) {
  const fs::path folder = fixture::kept("qwen3_5-A");
  const std::vector<int32_t> tokens = some_tokens(folder, 12);
  Loaded awake = loaded(folder, options_of(false, 1)), sleeper = loaded(folder, options_of(false, 1));
  Sequence expected = new_sequence(*awake), found = new_sequence(*sleeper);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::span<const int32_t> next(&tokens[i], 1);
    EXPECT_EQ(feed(*awake, expected, next, {1}), feed(*sleeper, found, next, {1})) << i;
    if (i % 3 != 2) continue;
    ASSERT_TRUE(sleeper->sleep());
    ASSERT_TRUE(sleeper->wake());
  }
}

TEST(RamLayers, AreToldByNumber) {
  EXPECT_EQ(*gpu_layers_from_text("12"), 12);
  EXPECT_EQ(*gpu_layers_from_text("all"), kAllLayers);
  EXPECT_EQ(*gpu_layers_from_text("auto"), kFittingLayers);
  for (const char* wrong : {"", "-1", "3x", "some", "99999999999"}) EXPECT_FALSE(gpu_layers_from_text(wrong)) << wrong;
}

// What several ops read is on the card: a table that is the head as well.
TEST(RamLayers, LeaveWhatIsSharedWhereItIs) {
  auto file = gguf::File::open((fixture::kept("qwen3_5-A") / "model.gguf").string());
  ASSERT_TRUE(file);
  models::FileSource source(*file);
  const auto program = models::build_program(source);
  ASSERT_TRUE(program);
  const auto* head = std::get_if<op::LmHead>(&program->ops.back());
  ASSERT_TRUE(head);
  const cuda::RamLayers layers(*program, cuda::n_layers(*program), true, cuda::PackForm::compact);
  const auto& embed = std::get<op::Embed>(program->ops.front());
  EXPECT_EQ(layers.table(), embed.table == head->weight ? kNone : embed.table);
  EXPECT_FALSE(layers.has(head->weight));
}

}  // namespace
}  // namespace chimere
