// Experts that stay with the host: what the card's ledger then lacks, what is proposed when a model does not fit, and
// what is refused. Their logits are tested with those of all models (executable_test.cpp).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cuda/program_binding.h"
#include "backend/cuda/weights/pack.h"
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
    EXPECT_EQ(all - experts, cuda::ProgramBinding(*program, ++mixtures).size_bytes());
  }
  EXPECT_EQ(mixtures, 6);
  EXPECT_GT(experts, all / 4);
}

TEST(HostExperts, AreProposedWhereTheModelDoesNotFit) {
  const gguf::File file = open_nano();
  uint64_t too_little = 0, enough = uint64_t{1} << 32;
  while (enough - too_little > uint64_t{1} << 19) {
    const uint64_t middle = (too_little + enough) / 2;
    (load_nano(file, 0, middle) ? enough : too_little) = middle;
  }
  const uint64_t budget = too_little - (uint64_t{4} << 20);
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
  const auto number = cpu_moe_from_text("12"), all = cpu_moe_from_text("all");
  ASSERT_TRUE(number && all);
  EXPECT_EQ(*number, 12);
  EXPECT_EQ(*all, kAllMixtures);
  for (const char* wrong : {"", "-1", "3x", "some", "99999999999"}) EXPECT_FALSE(cpu_moe_from_text(wrong)) << wrong;
}

}  // namespace
}  // namespace chimere
