// What only a card has to do for LoRA adapters, in the emulator: graphs, gathered matrices and adapters that come while
// steps run. What they compute is tested as on other backends (tests/parity/adapter_test.cpp).
#include <thread>

#include "models/adapter_for_test.h"
#include "parity/loaded_model.h"

namespace chimere {
namespace {

using namespace parity;  // NOLINT

// A graph captured under one adapter serves another, and requests without any keep their own.
TEST(CudaAdapters, GraphsServeWhoeverComes) {
  const fs::path folder = fixture::kept("qwen3_5-A"), scratch = fixture::scratch_folder();
  const std::vector<int32_t> tokens = some_tokens(folder, 6);
  Loaded card = load(folder, cuda::compile, false, kHalfKv), fresh = load(folder, cuda::compile, false, kHalfKv);
  const auto use = [&](Loaded& loaded, int seed) { return fixture::adapter_on(*loaded, folder, seed, scratch); };
  const AdapterSet first{{{use(card, 1), 1.0f}}}, second{{{use(card, 2), -0.5f}}},
      fresh_second{{{use(fresh, 2), -0.5f}}};
  const std::vector<float> plain = feed_alone(*card, tokens, {1});
  feed_alone(*card, tokens, {1}, &first);
  EXPECT_EQ(feed_alone(*card, tokens, {1}, &second), feed_alone(*fresh, tokens, {1}, &fresh_second));
  EXPECT_EQ(feed_alone(*card, tokens, {1}), plain);
  fs::remove_all(scratch);
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
  const AdapterSet set{{{fixture::adapter_on(*card, folder, 1, scratch), 1.0f}}};
  const auto other = fixture::adapter_on(*card, folder, 2, scratch);
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
