// LoRA adapters on the CUDA backend, in the emulator: as the oracle has them, whatever shares the batch, and nothing
// changed for those without.
#include <cstdio>
#include <thread>

#include "card_models.h"
#include "models/adapter_for_test.h"

namespace chimere {
namespace {

using namespace card;  // NOLINT

std::shared_ptr<const Adapter> adapter_on(Executable& executable, const fs::path& folder, int seed,
                                          const fs::path& scratch) {
  const std::string name = "adapter" + std::to_string(seed);
  const auto file = gguf::File::open(fixture::write_adapter(folder, seed, scratch / (name + ".gguf")));
  EXPECT_TRUE(file);
  const auto model = gguf::File::open((folder / "model.gguf").string());
  EXPECT_TRUE(model);
  auto adapter = models::read_adapter(*file, name, executable.program(),
                                      std::string(*model->metadata().get_string("general.architecture")));
  EXPECT_TRUE(adapter) << adapter.error().message;
  auto held = executable.hold_adapter(**adapter);
  EXPECT_TRUE(held) << held.error().message;
  (*adapter)->held = std::move(*held);
  return *adapter;
}

// The model has every kind of matrix that adapters change, beside attention and Gated DeltaNet.
class CudaAdapters : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fixture::kept("qwen3_5-A");
    scratch_ = fixture::scratch_folder();
  }
  void TearDown() override { fs::remove_all(scratch_); }

  AdapterSet both_on(Executable& executable) {
    return {
        {{adapter_on(executable, folder_, 1, scratch_), 1.0f}, {adapter_on(executable, folder_, 2, scratch_), -0.5f}}};
  }

  fs::path folder_, scratch_;
};

// Whole, in slices of both classes, and decoded token by token, from the third step on by a graph.
TEST_F(CudaAdapters, LogitsAreThoseOfTheOracle) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 28);
  Loaded oracle = load(folder_, reference::compile, true, kFloatKv);
  Loaded exact = load(folder_, cuda::compile, true, kFloatKv), fast = load(folder_, cuda::compile, false, kHalfKv);
  const AdapterSet of_oracle = both_on(*oracle), of_exact = both_on(*exact), of_fast = both_on(*fast);
  const std::vector<float> expected = feed_alone(*oracle, tokens, {28}, &of_oracle);
  EXPECT_GT(max_difference(expected, feed_alone(*exact, tokens, {28})), 0.1f) << "the adapters change nothing";
  const size_t v = oracle->program().n_vocab;
  for (const std::vector<int>& lengths : {std::vector<int>{28}, {19, 5, 4}, {24, 1}}) {
    const float difference = max_difference(expected, feed_alone(*exact, tokens, lengths, &of_exact));
    const double divergence = mean_divergence(expected, feed_alone(*fast, tokens, lengths, &of_fast), v);
    std::printf("    %zu lengths: exact %.1e  fast KL %.1e\n", lengths.size(), difference, divergence);
    EXPECT_LE(difference, kExactLimit);
    EXPECT_LE(divergence, 1.6e-2);
  }
}

// In float32 the two forms differ by rounding alone, as models/adapter_test.cpp says.
TEST_F(CudaAdapters, EqualMergedWeights) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 40);
  fixture::write_merged(folder_, 1, 0.75, scratch_ / "model.gguf");
  Loaded merged = load(scratch_, cuda::compile, true, kFloatKv), plain = load(folder_, cuda::compile, true, kFloatKv);
  const AdapterSet set{{{adapter_on(*plain, folder_, 1, scratch_), 0.75f}}};
  const std::vector<float> expected = feed_alone(*merged, tokens, {40});
  EXPECT_LE(max_difference(expected, feed_alone(*plain, tokens, {40}, &set)), 1e-3f);
  EXPECT_GT(max_difference(expected, feed_alone(*plain, tokens, {40})), 0.1f);
}

// Two adapters, both at once and none, as prompts and decoding, in one batch and each alone: the same bits. Those
// without adapters are as they were before any was loaded.
TEST_F(CudaAdapters, ABatchOfSeveralEqualsEachAlone) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 40);
  const std::span<const int32_t> text = std::span(tokens).first(5), prompt = std::span(tokens).subspan(5, 17);
  for (const bool exact : {false, true}) {
    Loaded card = load(folder_, cuda::compile, exact, kHalfKv);
    const std::vector<float> plain_text = feed_alone(*card, text, {40}), plain_prompt = feed_alone(*card, prompt, {40});
    const AdapterSet both = both_on(*card), first{{both.uses[0]}}, again = first,
                     second{{{both.uses[1].adapter, 0.5f}}};
    std::vector<Sequence> sequences;
    for (int i = 0; i < 8; ++i) sequences.push_back(start(*card));
    const std::vector<Part> parts = {{&sequences[0], text, &first},    {&sequences[1], text, &second},
                                     {&sequences[2], text, nullptr},   {&sequences[3], text.first(1), &both},
                                     {&sequences[4], text, &again},    {&sequences[5], prompt, &second},
                                     {&sequences[6], prompt, nullptr}, {&sequences[7], prompt, &both}};
    const std::vector<float> together = step(*card, parts);
    const float* row = together.data();
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<float> alone = feed_alone(*card, parts[i].tokens, {40}, parts[i].adapters);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), row)) << "part " << i << ", exact " << exact;
      const std::span<const float> plain = std::span(i < 5 ? plain_text : plain_prompt).first(alone.size());
      if (parts[i].adapters) {
        EXPECT_GT(max_difference(alone, plain), 0.01f) << i;
      } else {
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), plain.begin())) << i;
      }
      row += alone.size();
    }
  }
}

// A graph captured under one adapter serves another, and requests without any keep their own.
TEST_F(CudaAdapters, GraphsServeWhoeverComes) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 6);
  Loaded card = load(folder_, cuda::compile, false, kHalfKv), fresh = load(folder_, cuda::compile, false, kHalfKv);
  const AdapterSet both = both_on(*card), first{{both.uses[0]}}, second{{both.uses[1]}};
  const AdapterSet fresh_second{{both_on(*fresh).uses[1]}};
  const std::vector<float> plain = feed_alone(*card, tokens, {1});
  feed_alone(*card, tokens, {1}, &first);
  EXPECT_EQ(feed_alone(*card, tokens, {1}, &second), feed_alone(*fresh, tokens, {1}, &fresh_second));
  EXPECT_EQ(feed_alone(*card, tokens, {1}), plain);
}

// Adapters find their matrices by name, also those whose rows were gathered at load.
TEST(CudaExecutable, KeepsTheNamesOfItsMatrices) {
  const fs::path folder = fixture::kept("mamba-A");
  Loaded card = load(folder, cuda::compile, false, kHalfKv), oracle = load(folder, reference::compile, false, kHalfKv);
  const auto &found = card->program().matrices, &expected = oracle->program().matrices;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].name, expected[i].name);
}

// Adapters come and go on another thread while the engine's runs steps.
TEST(CudaExecutable, HoldsAdaptersWhileStepsRun) {
  const fs::path folder = fixture::kept("llama-spm"), scratch = fixture::scratch_folder();
  const std::vector<int32_t> tokens = some_tokens(folder, 4);
  Loaded card = load(folder, cuda::compile, false, kHalfKv);
  const AdapterSet set{{{adapter_on(*card, folder, 1, scratch), 1.0f}}};
  const auto other = adapter_on(*card, folder, 2, scratch);
  const std::vector<float> expected = feed_alone(*card, tokens, {1}, &set);
  std::thread loader([&] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(card->hold_adapter(*other));
  });
  EXPECT_EQ(feed_alone(*card, tokens, {1}, &set), expected);
  loader.join();
  fs::remove_all(scratch);
}

}  // namespace
}  // namespace chimere
