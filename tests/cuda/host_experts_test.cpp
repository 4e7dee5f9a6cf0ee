// Experts that stay with the host: what the card's ledger then lacks, what is proposed when a model does not fit, and
// what is refused. Their logits are tested with those of all models (executable_test.cpp).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cuda/program_binding.h"
#include "backend/cuda/weights/pack.h"
#include "backend/memory_plan.h"
#include "base/scratch_for_test.h"
#include "parity/loaded_model.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

// The model in the box: six mixtures, whose experts are most of its bytes.
Result<ExecutablePtr> load_nano(const gguf::File& file, int cpu_moe, uint64_t device_bytes) {
  models::FileSource source(file);
  TRY_ASSIGN(Program program, models::build_program(source));
  LoadOptions options = options_for(false, kHalfKv, cpu_moe);
  options.device_bytes = device_bytes;
  return cuda::compile(std::move(program), options);
}

gguf::File open_nano() {
  auto file = gguf::File::open((fs::path(CHIMERE_TESTS_DIR) / ".." / "assets" / "chimere-nano.gguf").string());
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

// Whether the model with so many mixtures on the host has room in a budget.
bool has_room(const gguf::File& file, int cpu_moe, uint64_t budget) {
  models::FileSource source(file);
  const auto program = models::build_program(source);
  LoadOptions options = options_for(false, kHalfKv, cpu_moe);
  options.device_bytes = budget;
  return program && cuda::plan_memory(*program, options);
}

// The least budget for the whole model, within half a megabyte.
uint64_t least_budget(const gguf::File& file) {
  uint64_t too_little = 0, enough = uint64_t{1} << 32;
  while (enough - too_little > uint64_t{1} << 19) {
    const uint64_t middle = (too_little + enough) / 2;
    (has_room(file, 0, middle) ? enough : too_little) = middle;
  }
  return enough;
}

TEST(HostExperts, AreNotAmongTheWeightsOfTheCard) {
  const gguf::File file = open_nano();
  models::FileSource source(file);
  const auto program = models::build_program(source);
  ASSERT_TRUE(program);
  const uint64_t all = cuda::ProgramBinding(*program).size_bytes();
  uint64_t experts = 0;
  int mixtures = 0;
  for (const Op& op : program->ops) {
    const auto* moe = std::get_if<op::MoeFfn>(&op);
    if (!moe) continue;
    for (const MatrixId id : {moe->gate, moe->up, moe->down}) {
      experts += cuda::DeviceArena::padded(cuda::packed_bytes(program->matrices[id]));
    }
    EXPECT_EQ(all - experts, cuda::ProgramBinding(*program, {++mixtures}).size_bytes());
  }
  EXPECT_EQ(mixtures, 6);
  EXPECT_GT(experts, all / 4);
}

TEST(HostExperts, AreProposedWhereTheModelDoesNotFit) {
  const gguf::File file = open_nano();
  const uint64_t budget = least_budget(file) - (uint64_t{5} << 20);
  const auto refused = load_nano(file, 0, budget);
  ASSERT_FALSE(refused);
  const std::string& message = refused.error().message;
  const size_t at = message.find("--cpu-moe ");
  ASSERT_NE(at, std::string::npos) << message;
  const int proposed = std::stoi(message.substr(at + 10));
  ASSERT_GE(proposed, 1);
  auto fits = load_nano(file, proposed, budget);
  ASSERT_TRUE(fits) << fits.error().message;
  if (proposed > 1) {
    EXPECT_FALSE(load_nano(file, proposed - 1, budget));
  }
  const auto report = (*fits)->report();
  ASSERT_TRUE(report && *report);
  EXPECT_NE((*report)->memory.find("in RAM: experts of " + std::to_string(proposed)), std::string::npos)
      << (*report)->memory;
}

// As few as it takes, with the bits of as many that were asked for, and never more of the card than the budget.
TEST(HostExperts, AreAsManyAsTheBudgetForces) {
  const gguf::File file = open_nano();
  const uint64_t whole = least_budget(file);
  const std::vector<int32_t> tokens = {3, 141, 59, 26, 535, 8, 97, 93, 238, 46, 264, 33, 83, 279, 50, 288, 419, 71};
  std::vector<int> counts;
  for (const uint64_t less : {0, 6}) {
    const uint64_t budget = whole - (less << 20);
    int n = 0;
    while (n < 6 && !has_room(file, n, budget)) ++n;
    counts.push_back(n);
    auto fitted = load_nano(file, kFittingMixtures, budget), asked = load_nano(file, n, budget);
    ASSERT_TRUE(fitted) << fitted.error().message;
    ASSERT_TRUE(asked) << asked.error().message;
    const auto placement = (*fitted)->placement();
    ASSERT_TRUE(placement);
    EXPECT_EQ(placement->n_hosted, n) << placement->text;
    EXPECT_EQ(placement->n_mixtures, 6);
    EXPECT_EQ(placement->budget_bytes, budget);
    EXPECT_EQ(placement->host_bytes > 0, n > 0);
    EXPECT_EQ(placement->everything_bytes > budget, n > 0) << placement->text;
    const std::string said = n > 0 ? "experts of " + std::to_string(n) + " of 6 layers in RAM" : "all weights on";
    EXPECT_NE(placement->text.find(said), std::string::npos) << placement->text;
    EXPECT_EQ((*fitted)->max_rows(), (*asked)->max_rows());
    EXPECT_EQ(feed_alone(**fitted, tokens, {17, 1}), feed_alone(**asked, tokens, {17, 1}));
    const auto report = (*fitted)->report();
    ASSERT_TRUE(report && *report);
    EXPECT_LE((*report)->peak_bytes, budget);
    EXPECT_GT((*report)->peak_bytes, placement->card_bytes);
  }
  EXPECT_EQ(counts.front(), 0);
  EXPECT_GT(counts.back(), 0);
}

// What is planned is what the ledger then has.
TEST(HostExperts, AreWhereThePlanSaid) {
  const gguf::File file = open_nano();
  models::FileSource source(file);
  for (const uint64_t less : {0, 6}) {
    auto program = models::build_program(source);
    LoadOptions options = options_for(false, kHalfKv, kFittingMixtures);
    options.device_bytes = least_budget(file) - (less << 20);
    const auto plan = cuda::plan_memory(*program, options);
    ASSERT_TRUE(plan) << plan.error().message;
    auto loaded = cuda::compile(std::move(*program), options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_TRUE((*loaded)->prepare_draws({}));
    const auto placement = (*loaded)->placement();
    EXPECT_EQ(plan->n_hosted, placement->n_hosted);
    EXPECT_EQ(plan->text, placement->text);
    EXPECT_EQ(plan->working_bytes, (*loaded)->scratch_bytes());
    uint64_t on_card = 0, in_ram = 0;
    for (const MemoryPlan::Matrix& m : plan->matrices) (m.tier == Tier::card ? on_card : in_ram) += m.bytes;
    EXPECT_EQ(in_ram, placement->host_bytes);
    EXPECT_LE(on_card, placement->card_bytes);
    EXPECT_GT(on_card, placement->card_bytes / 50 * 49);
  }
}

// States that were asked for have room, at the cost of experts; more than there is takes all of them and no more.
TEST(HostExperts, MakeRoomForStates) {
  const gguf::File file = open_nano();
  models::FileSource source(file);
  const auto load = [&](uint64_t budget, uint64_t state_bytes, int context) {
    auto program = models::build_program(source);
    LoadOptions options = options_for(false, kHalfKv, kFittingMixtures);
    options.device_bytes = budget;
    options.state_bytes = state_bytes;
    options.context_tokens = context;
    return cuda::compile(std::move(*program), options);
  };
  const auto hosted = [](const Result<ExecutablePtr>& e) { return e ? (*e)->placement()->n_hosted : -1; };
  const uint64_t budget = least_budget(file);
  EXPECT_EQ(hosted(load(budget, 0, 0)), 0);
  auto roomy = load(budget, uint64_t{4} << 20, 0);
  EXPECT_GT(hosted(roomy), 0);
  EXPECT_LT(hosted(roomy), 6);
  auto memory = (*roomy)->memory().allocate(uint64_t{4} << 20);
  ASSERT_TRUE(memory) << memory.error().message;
  (*roomy)->memory().release(*memory, uint64_t{4} << 20);
  EXPECT_GT(hosted(load(budget, 0, 4096)), 0);
  EXPECT_EQ(hosted(load(budget, uint64_t{1} << 40, 0)), 6);
}

// A draft block that has room only when experts go is left out; with room it stays.
TEST(HostExperts, HaveTheirPlaceBeforeADraftBlock) {
  const gguf::File file = open_nano();
  models::FileSource source(file);
  const auto load = [&](uint64_t budget) {
    auto program = models::build_program(source, true);
    EXPECT_TRUE(program && program->has_drafts());
    LoadOptions options = options_for(false, kHalfKv, kFittingMixtures);
    options.device_bytes = budget;
    options.drafts_need_room = true;
    return cuda::compile(std::move(*program), options);
  };
  const auto roomy = load(uint64_t{1} << 32);
  ASSERT_TRUE(roomy) << roomy.error().message;
  EXPECT_TRUE((*roomy)->program().has_drafts());
  const auto tight = load(least_budget(file));
  ASSERT_TRUE(tight) << tight.error().message;
  EXPECT_FALSE((*tight)->program().has_drafts());
  EXPECT_EQ((*tight)->placement()->n_hosted, 0);
  EXPECT_NE((*tight)->placement()->text.find("without its MTP block"), std::string::npos);
  const auto plain = load_nano(file, 0, least_budget(file));
  ASSERT_TRUE(plain);
  const std::vector<int32_t> tokens = {3, 141, 59};
  EXPECT_EQ(feed_alone(**tight, tokens, {1}), feed_alone(**plain, tokens, {1}));
}

TEST(HostExperts, CanNotHelpADenseModel) {
  LoadOptions options = options_for(false, kHalfKv, kFittingMixtures);
  options.device_bytes = 1 << 20;
  const auto refused = Loaded::open(fixture::kept("qwen2-A"), cuda::compile, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--backend cpu"), std::string::npos) << refused.error().message;
}

TEST(HostExperts, AreRefusedOfLayersThatAreNotThere) {
  const gguf::File nano = open_nano();
  const auto more = load_nano(nano, 7, 0);
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("at most 6"), std::string::npos) << more.error().message;
  const auto none = Loaded::open(fixture::kept("qwen2-A"), cuda::compile, options_for(false, kHalfKv, kAllMixtures));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::invalid_argument);
}

// More threads than cores, and all of them needed for every layer of a step that is a graph by then.
TEST(HostExperts, ManyThreadsGiveTheSameBits) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 24);
  std::vector<std::vector<float>> found;
  for (const int n_threads : {1, 4}) {
    LoadOptions options = options_for(false, kHalfKv, kAllMixtures);
    options.n_threads = n_threads;
    auto loaded = Loaded::open(folder, cuda::compile, options);
    ASSERT_TRUE(loaded) << loaded.error().message;
    found.push_back(feed_alone(**loaded, tokens, {18, 2, 1}));
  }
  EXPECT_EQ(found[0], found[1]);
}

// Below the card RAM, and below RAM the disk.
TEST(HostExperts, OnDiskGiveTheBitsOfThoseInRam) {
  const fs::path folder = fixture::kept("qwen3_5_moe-B-untied");
  const std::vector<int32_t> tokens = some_tokens(folder, 24);
  LoadOptions options = options_for(false, kHalfKv, kAllMixtures);
  auto in_ram = Loaded::open(folder, cuda::compile, options);
  ASSERT_TRUE(in_ram) << in_ram.error().message;
  options.experts_folder = fixture::scratch_folder().string();
  options.ram_bytes = 1;
  const auto refused = Loaded::open(folder, cuda::compile, options);
  ASSERT_FALSE(refused) << "not even the experts of one layer";
  uint64_t experts = 0;
  const Program& program = (*in_ram)->program();
  for (const Op& op : program.ops) {
    const auto* moe = std::get_if<op::MoeFfn>(&op);
    if (!moe) continue;
    for (const MatrixId id : {moe->gate, moe->up, moe->down}) experts += program.matrices[id].size_bytes();
  }
  options.ram_bytes = experts / 3 * 2;
  auto on_disk = Loaded::open(folder, cuda::compile, options);
  ASSERT_TRUE(on_disk) << on_disk.error().message;
  EXPECT_EQ(feed_alone(**in_ram, tokens, {18, 2, 1}), feed_alone(**on_disk, tokens, {18, 2, 1}));
  const auto traffic = (*on_disk)->expert_traffic();
  ASSERT_TRUE(traffic);
  EXPECT_GT(traffic->misses, 0u);
  EXPECT_LE(traffic->ram_bytes, options.ram_bytes);
}

TEST(HostExperts, AreToldByNumberOrAll) {
  const auto number = cpu_moe_from_text("12"), all = cpu_moe_from_text("all"), fitted = cpu_moe_from_text("auto");
  ASSERT_TRUE(number && all && fitted);
  EXPECT_EQ(*fitted, kFittingMixtures);
  EXPECT_EQ(*number, 12);
  EXPECT_EQ(*all, kAllMixtures);
  for (const char* wrong : {"", "-1", "3x", "some", "99999999999"}) EXPECT_FALSE(cpu_moe_from_text(wrong)) << wrong;
}

}  // namespace
}  // namespace chimere
