// What a forecast says of memory is what a load takes; its speed follows from the machine's figures.
#include "engine/forecast.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/scratch_for_test.h"
#include "cache/sequence.h"
#include "models/fixture_for_test.h"
#include "models/registry.h"
#include "models/synthetic.h"

namespace chimere::engine {
namespace {

namespace fs = std::filesystem;

// A machine of round figures.
Machine round_machine() {
  Machine m;
  m.host.cores = 4;
  m.ram = {{4, 20e9}};
  m.barrier_s = 1e-6;
  for (const DTypeInfo& t : all_dtypes()) m.products.push_back({t.type, 10e9, 40e9, 1e12, 1e12});
  m.disk = {"/", 2e9, 1e9, true};
  return m;
}

Program program_of(const char* spec, std::unique_ptr<models::WeightSource>& source) {
  auto made = models::synthetic_source(spec);
  EXPECT_TRUE(made) << made.error().message;
  source = std::move(*made);
  auto program = models::build_program(*source);
  EXPECT_TRUE(program) << program.error().message;
  return std::move(*program);
}

ForecastOptions options_for(int context, int parallel = 1) {
  ForecastOptions o;
  o.load.context_tokens = context;
  o.n_sequences = parallel;
  o.load.n_threads = 2;
  return o;
}

uint64_t weights(const Forecast& f, Tier tier) {
  uint64_t bytes = 0;
  for (const ForecastPart& part : f.parts) bytes += part.tier == tier ? part.bytes : 0;
  return bytes;
}

TEST(Forecast, OfMemoryIsWhatALoadTakes) {
  for (const char* name : {"qwen3_5_moe-B-untied", "qwen2-A", "nemotron_h-moe-L", "gpt_oss-A", "mamba-A"}) {
    const std::string path = (fixture::kept(name) / "model.gguf").string();
    const ForecastOptions o = options_for(200, 2);
    auto file = gguf::File::open(path);
    ASSERT_TRUE(file) << file.error().message;
    models::FileSource source(*file);
    const auto program = models::build_program(source);
    ASSERT_TRUE(program) << program.error().message;
    const auto f = forecast(*program, o, round_machine());
    ASSERT_TRUE(f) << f.error().message;

    auto model = models::Model::load(path, models::BackendKind::cpu, o.load);
    ASSERT_TRUE(model) << model.error().message;
    Executable& executable = (*model)->executable();
    EXPECT_EQ(weights(*f, Tier::ram), executable.weight_bytes()) << name;
    EXPECT_EQ(f->memory.working_bytes, executable.scratch_bytes()) << name;
    EXPECT_EQ(f->memory.max_rows, executable.max_rows());
    EXPECT_EQ(f->memory.prefill_rows, executable.prefill_rows());
    for (size_t i = 0; i < program->matrices.size(); ++i) {
      EXPECT_EQ(f->memory.matrices[i].bytes, executable.matrix_bytes(static_cast<MatrixId>(i)));
    }
    uint64_t states = 0;
    for (int s = 0; s < 2; ++s) {
      auto sequence = Sequence::create(executable);
      ASSERT_TRUE(sequence);
      ASSERT_TRUE(sequence->begin(200));
      states += sequence->size_bytes();
    }
    EXPECT_EQ(f->kv_bytes + f->recurrent_bytes, states) << name;
    EXPECT_EQ(f->ram_bytes, executable.weight_bytes() + executable.scratch_bytes() + states);
    EXPECT_EQ(f->disk_bytes, 0u);
  }
}

TEST(Forecast, PutsOnDiskWhatTheBudgetDoesNotHold) {
  std::unique_ptr<models::WeightSource> source;
  const Program program = program_of("qwen3.5-tiny", source);
  ForecastOptions o = options_for(64);
  const Machine machine = round_machine();
  const auto whole = forecast(program, o, machine);
  ASSERT_TRUE(whole) << whole.error().message;
  o.ram_bytes = whole->ram_bytes;
  EXPECT_EQ(forecast(program, o, machine)->disk_bytes, 0u);
  uint64_t experts = 0;
  double expert_token_bytes = 0;
  for (const ForecastPart& part : whole->parts) {
    if (part.role == "routed experts") experts = part.bytes, expert_token_bytes = part.token_bytes;
  }
  o.ram_bytes = whole->ram_bytes - experts / 2;
  const auto half = forecast(program, o, machine);
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_EQ(half->disk_bytes, experts / 2);
  EXPECT_NEAR(1 / half->decode_tok_s - 1 / whole->decode_tok_s, expert_token_bytes / 2 / 1e9, 1e-9);
  Machine diskless = machine;
  diskless.disk.reset();
  EXPECT_EQ(forecast(program, o, diskless)->decode_tok_s, 0);
  o.ram_bytes = whole->ram_bytes - experts - 1;
  const auto refused = forecast(program, o, machine);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_NE(refused.error().message.find("beside its routed experts"), std::string::npos) << refused.error().message;
}

TEST(Forecast, IsFasterWithSmallerStatesAndFasterMemory) {
  std::unique_ptr<models::WeightSource> source;
  const Program program = program_of("qwen3.5-tiny", source);
  const Machine machine = round_machine();
  ForecastOptions o = options_for(32768);
  const auto f16 = forecast(program, o, machine);
  ASSERT_TRUE(f16);
  EXPECT_LT(f16->decode_full_tok_s, f16->decode_tok_s);
  o.load.kv = {DType::Q8_0, DType::Q4_0, false};
  const auto small = forecast(program, o, machine);
  ASSERT_TRUE(small);
  EXPECT_LT(small->kv_bytes, f16->kv_bytes / 2);
  EXPECT_GT(small->decode_full_tok_s, f16->decode_full_tok_s);
  EXPECT_EQ(small->decode_tok_s, f16->decode_tok_s);
  Machine fast = machine;
  for (ProductSpeed& p : fast.products) p.decode_bytes_s *= 2, p.prompt_flop_s *= 2, p.expert_flop_s *= 2;
  EXPECT_GT(forecast(program, o, fast)->decode_tok_s, small->decode_tok_s);
  EXPECT_NEAR(forecast(program, o, fast)->prompt_tok_s, 2 * small->prompt_tok_s, 1);
}

TEST(MachineDisk, IsMeasuredAndLeavesNothing) {
  const fs::path folder = fixture::scratch_folder();
  const auto speed = measure_disk(folder.string(), 32 << 20);
  ASSERT_TRUE(speed) << speed.error().message;
  EXPECT_GT(speed->sequential_bytes_s, 0);
  EXPECT_GT(speed->random_bytes_s, 0);
  EXPECT_TRUE(fs::is_empty(folder));
  const auto nowhere = measure_disk((folder / "missing").string(), 32 << 20);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::io);
  EXPECT_NE(nowhere.error().message.find("no file can be written there"), std::string::npos);
}

}  // namespace
}  // namespace chimere::engine
