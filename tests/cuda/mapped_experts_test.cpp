// Experts in RAM that the card reads, and those of them that have a slot on it: bits, which ones get a slot, what is
// planned and what is taken.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/runtime/device.h"
#include "backend/memory_plan.h"
#include "base/scratch_for_test.h"
#include "parity/loaded_model.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

LoadOptions mapped_options(bool exact, int cpu_moe, uint64_t device_bytes = 0) {
  LoadOptions options = options_for(exact, kHalfKv, cpu_moe);
  options.ram_experts = RamExperts::card;
  options.device_bytes = device_bytes;
  return options;
}

Loaded open(const fs::path& folder, const LoadOptions& options) {
  auto loaded = Loaded::open(folder, cuda::compile, options);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return std::move(*loaded);
}

// The budget that leaves about this share of the experts on the card.
uint64_t budget_for(const fs::path& folder, double share) {
  auto file = gguf::File::open((folder / "model.gguf").string());
  models::FileSource source(*file);
  const auto program = models::build_program(source);
  const auto bytes = [&](int cpu_moe) {
    uint64_t too_little = 0, enough = uint64_t{1} << 32;
    while (enough - too_little > uint64_t{1} << 10) {
      const uint64_t middle = (too_little + enough) / 2;
      (cuda::plan_memory(*program, mapped_options(false, cpu_moe, middle)) ? enough : too_little) = middle;
    }
    return static_cast<double>(enough);
  };
  const double none = bytes(kAllMixtures), all = bytes(0);
  return static_cast<uint64_t>(none + share * (all - none));
}

std::vector<fs::path> mixtures_of_experts() {
  if (kSanitized) return {fixture::kept("qwen3_5_moe-B-untied")};
  return {fixture::kept("qwen3_5_moe-B-untied"), fixture::kept("nemotron_h-moe-L"), fixture::kept("gpt_oss-A")};
}

// In prompts, in slices of few rows and in single ones, in both modes.
TEST(MappedExperts, GiveTheBitsOfThoseOnTheCard) {
  for (const fs::path& folder : mixtures_of_experts()) {
    const std::vector<int32_t> tokens = some_tokens(folder, 29);
    for (const bool exact : {false, true}) {
      Loaded resident = open(folder, mapped_options(exact, 0));
      Loaded mapped = open(folder, mapped_options(exact, kAllMixtures));
      const auto placement = mapped->placement();
      ASSERT_TRUE(placement && placement->card_reads);
      EXPECT_EQ(placement->n_slots, 0);
      for (const std::vector<int>& pieces : {std::vector<int>{27, 1}, std::vector<int>{20, 5, 2}}) {
        EXPECT_EQ(feed_alone(*resident, tokens, pieces), feed_alone(*mapped, tokens, pieces)) << folder.filename();
      }
      EXPECT_FALSE(mapped->expert_traffic()) << "nothing is on disk";
    }
  }
}

// The model in the box has other formats in every layer, so that no layer's experts are as large as the next one's.
TEST(MappedExperts, OfAnyFormatsShareTheStage) {
  auto file = gguf::File::open((fs::path(CHIMERE_TESTS_DIR) / ".." / "assets" / "chimere-nano.gguf").string());
  ASSERT_TRUE(file) << file.error().message;
  models::FileSource source(*file);
  const std::vector<int32_t> tokens = {3, 141, 59, 26, 535, 8, 97, 93, 238, 46, 264, 33, 83, 279, 50, 288, 419, 71};
  std::vector<std::vector<float>> found;
  for (const int cpu_moe : {0, kAllMixtures}) {
    auto nano = cuda::compile(std::move(*models::build_program(source)), mapped_options(false, cpu_moe));
    ASSERT_TRUE(nano) << nano.error().message;
    found.push_back(feed_alone(**nano, tokens, {18}));
  }
  EXPECT_EQ(found[0], found[1]);
}

// Long enough for experts to move: every step has the bits of a card that holds all, before, while and after.
TEST(MappedExperts, ThatMoveLeaveNoTrace) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 64);
  Loaded resident = open(folder, mapped_options(false, 0));
  Loaded cached = open(folder, mapped_options(false, kFittingMixtures, budget_for(folder, 0.6)));
  const auto placement = cached->placement();
  ASSERT_TRUE(placement && placement->card_reads);
  ASSERT_GT(placement->n_slots, 0) << placement->text;
  EXPECT_EQ(placement->n_hosted, placement->n_mixtures);
  EXPECT_NE(placement->text.find("which the card reads, and the " + std::to_string(placement->n_slots) + " most used"),
            std::string::npos)
      << placement->text;
  EXPECT_EQ(feed_alone(*resident, tokens, {20, 1}), feed_alone(*cached, tokens, {20, 1}));
  const auto traffic = cached->card_traffic();
  ASSERT_TRUE(traffic);
  EXPECT_GT(traffic->moved, 0u);
  EXPECT_GT(traffic->misses, 0u);
  // Every counted row used as many experts of every layer.
  const auto* moe =
      std::get_if<op::MoeFfn>(&*std::find_if(cached->program().ops.begin(), cached->program().ops.end(),
                                             [](const Op& op) { return std::holds_alternative<op::MoeFfn>(op); }));
  const auto of_a_row = static_cast<uint64_t>(placement->n_mixtures * moe->n_used);
  EXPECT_EQ((traffic->hits + traffic->misses) % of_a_row, 0u);
  EXPECT_GT(traffic->hits + traffic->misses, 30 * of_a_row);
  EXPECT_LT(traffic->n_slots, traffic->n_experts);
}

// Drawn unevenly: after a while the slots have what is used.
TEST(MappedExperts, ThatAreUsedMostGetTheSlots) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 40);
  LoadOptions options = mapped_options(false, kFittingMixtures, budget_for(folder, 0.6));
  options.imposed_skew = 3.0f;
  Loaded cached = open(folder, options);
  feed_alone(*cached, tokens, {1});
  const CardTraffic before = *cached->card_traffic();
  feed_alone(*cached, tokens, {1});
  const CardTraffic after = *cached->card_traffic();
  const auto hits = static_cast<double>(after.hits - before.hits);
  const auto all = hits + static_cast<double>(after.misses - before.misses);
  // Slots that had any experts would be found as often as they are.
  EXPECT_GT(hits / all, static_cast<double>(after.n_slots) / static_cast<double>(after.n_experts) + 0.1);
}

// What one run has learned, the next one begins with.
TEST(MappedExperts, AreRememberedByTheirUses) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 38);
  LoadOptions options = mapped_options(false, kFittingMixtures, budget_for(folder, 0.6));
  options.imposed_skew = 3.0f;
  options.experts_folder = fixture::scratch_folder().string();
  options.fingerprint = 7;
  double share[2];
  for (double& s : share) {
    Loaded cached = open(folder, options);
    feed_alone(*cached, tokens, {1});
    const CardTraffic traffic = *cached->card_traffic();
    s = static_cast<double>(traffic.hits) / static_cast<double>(traffic.hits + traffic.misses);
  }
  EXPECT_GT(share[1], share[0] + 0.1);
}

// Asleep between any two steps, also while experts move.
TEST(MappedExperts, SleepAndWake) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 24);
  LoadOptions options = mapped_options(false, kFittingMixtures, budget_for(folder, 0.6));
  options.imposed_skew = 3.0f;
  Loaded awake = open(folder, options), sleeper = open(folder, options);
  Sequence expected = new_sequence(*awake), found = new_sequence(*sleeper);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::span<const int32_t> next(&tokens[i], 1);
    EXPECT_EQ(feed(*awake, expected, next, {1}), feed(*sleeper, found, next, {1})) << i;
    if (i < 15) continue;
    ASSERT_TRUE(sleeper->sleep());
    ASSERT_TRUE(sleeper->wake());
  }
  EXPECT_GT(sleeper->card_traffic()->moved, 0u);
}

// What is planned is what the ledger then has, for any budget; the slots are as many as fit.
TEST(MappedExperts, TakeWhatWasPlanned) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  auto file = gguf::File::open((folder / "model.gguf").string());
  models::FileSource source(*file);
  const auto program = models::build_program(source);
  int fewer = -1;
  for (const double share : {0.0, 0.3, 0.6, 0.9}) {
    const LoadOptions options = mapped_options(false, kFittingMixtures, budget_for(folder, share));
    const auto plan = cuda::plan_memory(*program, options);
    ASSERT_TRUE(plan) << plan.error().message;
    Loaded loaded = open(folder, options);
    const auto placement = loaded->placement();
    EXPECT_EQ(plan->n_slots, placement->n_slots);
    EXPECT_EQ(plan->text, placement->text);
    EXPECT_EQ(plan->slot_bytes, loaded->card_traffic()->slot_bytes);
    EXPECT_GE(placement->n_slots, fewer);
    fewer = placement->n_slots;
    uint64_t in_ram = 0;
    for (const MemoryPlan::Matrix& m : plan->matrices) in_ram += m.tier == Tier::ram ? m.bytes : 0;
    EXPECT_EQ(in_ram, placement->host_bytes);
    const auto report = loaded->report();
    ASSERT_TRUE(report && *report);
    EXPECT_LE((*report)->peak_bytes, options.device_bytes);
  }
  EXPECT_GT(fewer, 0);
}

// Another program takes what is left of the card: slots are given up one piece after another for the states of more
// sequences, nothing of an answer changes, prompts go on though more experts have no slot than are brought for them, and
// the slots come back with the memory.
TEST(MappedExperts, GiveWayToStatesAndComeBack) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 42);
  // Nearly enough for all experts beside one conversation.
  LoadOptions options = mapped_options(false, kFittingMixtures, budget_for(folder, 0.95));
  options.context_tokens = kPageTokens;
  Loaded resident = open(folder, mapped_options(false, 0));
  Loaded cached = open(folder, options);
  ASSERT_TRUE(cached->card_traffic()) << cached->placement()->text;
  const CardTraffic before = *cached->card_traffic();
  ASSERT_GT(before.n_slots, 0u);
  std::vector<Sequence> sequences;
  const auto expected = feed_alone(*resident, tokens, {20, 1});
  cuda::refuse_device_beyond(0);
  for (int i = 0; i < 4000 && cached->card_traffic()->n_slots == before.n_slots; ++i) {
    sequences.push_back(new_sequence(*cached));
    const auto begun = sequences.back().begin(1);
    ASSERT_TRUE(begun) << i << ": " << begun.error().message;
  }
  const CardTraffic fewer = *cached->card_traffic();
  EXPECT_LT(fewer.n_slots, before.n_slots);
  EXPECT_LT(fewer.slot_bytes, before.slot_bytes);
  sequences.clear();
  EXPECT_EQ(feed_alone(*cached, tokens, {20, 1}), expected);
  // All of them.
  while (cached->card_traffic()->n_slots > 0 && sequences.size() < 4000) {
    sequences.push_back(new_sequence(*cached));
    if (!sequences.back().begin(1)) break;
  }
  EXPECT_EQ(cached->card_traffic()->n_slots, 0u);
  EXPECT_EQ(cached->card_traffic()->slot_bytes, 0u);
  sequences.clear();
  EXPECT_EQ(feed_alone(*cached, tokens, {20, 1}), expected);
  cuda::refuse_device_beyond(UINT64_MAX);
  for (int i = 0; i < 60 && cached->card_traffic()->n_slots < before.n_slots; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(feed_alone(*cached, tokens, {20, 1}), expected) << i;
  }
  EXPECT_EQ(cached->card_traffic()->n_slots, before.n_slots);
  EXPECT_EQ(cached->card_traffic()->slot_bytes, before.slot_bytes);
}

// RAM for all of them, or the CPU computes them, with those beyond the RAM on disk.
TEST(MappedExperts, AreForMachinesWithRoomInRam) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  LoadOptions options = mapped_options(false, kAllMixtures);
  options.ram_experts = RamExperts::automatic;
  const uint64_t in_ram = open(folder, options)->placement()->host_bytes;
  options.ram_bytes = in_ram;
  EXPECT_TRUE(open(folder, options)->placement()->card_reads);
  options.ram_bytes = in_ram - 1;
  auto file = gguf::File::open((folder / "model.gguf").string());
  models::FileSource source(*file);
  const auto plan = cuda::plan_memory(*models::build_program(source), options);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_FALSE(plan->card_reads);
}

// A system that pins the tables and not the experts: the CPU computes them, unless the card was asked for.
TEST(MappedExperts, AreComputedWhereTheyCanNotBePinned) {
  constexpr int kTables = 2;
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  LoadOptions options = mapped_options(false, kAllMixtures);
  cuda::refuse_pinned_after(kTables);
  const auto refused = Loaded::open(folder, cuda::compile, options);
  options.ram_experts = RamExperts::automatic;
  cuda::refuse_pinned_after(kTables);
  auto computed = Loaded::open(folder, cuda::compile, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("pinned memory"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(computed) << computed.error().message;
  EXPECT_FALSE((*computed)->placement()->card_reads);
  const std::vector<int32_t> tokens = some_tokens(folder, 6);
  Loaded asked = load(folder, cuda::compile, false, kHalfKv, kAllMixtures);
  EXPECT_EQ(feed_alone(**computed, tokens, {6}), feed_alone(*asked, tokens, {6}));
}

TEST(MappedExperts, AreToldByName) {
  EXPECT_EQ(*ram_experts_from_text("auto"), RamExperts::automatic);
  EXPECT_EQ(*ram_experts_from_text("cpu"), RamExperts::cpu);
  EXPECT_EQ(*ram_experts_from_text("card"), RamExperts::card);
  EXPECT_FALSE(ram_experts_from_text("gpu"));
  EXPECT_FALSE(*imposed_skew_from_text("model"));
  EXPECT_EQ(**imposed_skew_from_text("uniform"), 0.0f);
  EXPECT_EQ(**imposed_skew_from_text("zipf:1.5"), 1.5f);
  for (const char* wrong : {"", "zipf", "zipf:", "zipf:-1", "zipf:nan", "zipf:1x", "zipf:11"}) {
    EXPECT_FALSE(imposed_skew_from_text(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace chimere
