// LoRA adapters: as the oracle has them, equal to merged weights, whatever shares the batch, and nothing changed for
// those without.
#include <cstdio>

#include "backend_under_test.h"
#include "loaded_model.h"
#include "models/adapter_for_test.h"
#include "models/compare_for_test.h"

namespace chimere::parity {
namespace {

// The first has every kind of matrix that adapters change, beside attention and Gated DeltaNet.
std::vector<const char*> adapted_models() {
  if (backend_under_test().is_emulated) return {"qwen3_5-A"};
  return {"qwen3_5-A", "llama-spm"};
}

class Adapters : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fixture::kept(GetParam());
    scratch_ = fixture::scratch_folder();
  }
  void TearDown() override { fs::remove_all(scratch_); }

  Loaded load_it(bool exact, const KvFormat& kv) const {
    return load(folder_, backend_under_test().compile, exact, kv);
  }
  std::shared_ptr<const Adapter> adapter_on(Executable& executable, int seed) const {
    return fixture::adapter_on(executable, folder_, seed, scratch_);
  }
  AdapterSet both_on(Executable& executable) const {
    return {{{adapter_on(executable, 1), 1.0f}, {adapter_on(executable, 2), -0.5f}}};
  }

  fs::path folder_, scratch_;
};

// Whole, in slices of both classes, and decoded token by token, which a card does by a graph from the third step on.
TEST_P(Adapters, LogitsAreThoseOfTheOracle) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 28);
  Loaded oracle = load(folder_, reference::compile, true, kFloatKv);
  Loaded exact = load_it(true, kFloatKv), fast = load_it(false, kHalfKv);
  const AdapterSet of_oracle = both_on(*oracle), of_exact = both_on(*exact), of_fast = both_on(*fast);
  const std::vector<float> expected = feed_alone(*oracle, tokens, {28}, &of_oracle);
  EXPECT_GT(max_difference(expected, feed_alone(*exact, tokens, {28})), 0.1f) << "the adapters change nothing";
  const size_t v = oracle->program().n_vocab;
  for (const std::vector<int>& lengths : {std::vector<int>{28}, {19, 5, 4}, {24, 1}}) {
    const float difference = max_difference(expected, feed_alone(*exact, tokens, lengths, &of_exact));
    const double divergence = mean_divergence(expected, feed_alone(*fast, tokens, lengths, &of_fast), v);
    std::printf("    %zu lengths: exact %.1e  fast KL %.1e\n", lengths.size(), difference, divergence);
    EXPECT_LE(difference, kExactLimit);
    EXPECT_LE(divergence, kFastDivergence);
  }
}

// In float32 the two forms differ by rounding alone: W + BA is rounded once, BAx is added to Wx. 1e-3 is the distance
// that golden tests allow for float32 logits; without the adapter they are hundreds of times further apart.
TEST_P(Adapters, EqualMergedWeights) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 40);
  fixture::write_merged(folder_, 1, 0.75, scratch_ / "model.gguf");
  for (const CompileFunction compile : backend_and_oracle()) {
    Loaded merged = load(scratch_, compile, true, kFloatKv), plain = load(folder_, compile, true, kFloatKv);
    const AdapterSet set{{{adapter_on(*plain, 1), 0.75f}}};
    const std::vector<float> expected = feed_alone(*merged, tokens, {40});
    EXPECT_LT(max_difference(expected, feed_alone(*plain, tokens, {40}, &set)), 1e-3f);
    EXPECT_GT(max_difference(expected, feed_alone(*plain, tokens, {40})), 0.1f);
  }
}

// Two adapters, both at once, one twice over and none, as prompts and decoding, in one batch and each alone: the same
// bits. Those without adapters are as they were before any was loaded.
TEST_P(Adapters, ABatchOfSeveralEqualsEachAlone) {
  const std::vector<int32_t> tokens = some_tokens(folder_, 40);
  const std::span<const int32_t> text = std::span(tokens).first(5), prompt = std::span(tokens).subspan(5, 17);
  for (const bool exact : {false, true}) {
    Loaded loaded = load_it(exact, kHalfKv);
    const std::vector<float> plain_text = feed_alone(*loaded, text, {40}),
                             plain_prompt = feed_alone(*loaded, prompt, {40});
    const AdapterSet both = both_on(*loaded), first{{both.uses[0]}}, again = first,
                     second{{{both.uses[1].adapter, 0.5f}}};
    std::vector<Sequence> sequences;
    for (int i = 0; i < 9; ++i) sequences.push_back(new_sequence(*loaded));
    std::vector<Part> parts = {{&sequences[0], text, &first},    {&sequences[1], text, &second},
                               {&sequences[2], text, nullptr},   {&sequences[3], text.first(1), &both},
                               {&sequences[4], text, &again},    {&sequences[5], prompt, &second},
                               {&sequences[6], prompt, nullptr}, {&sequences[7], prompt, &both}};
    // The longest slice of the decode class, which an emulator takes a second for.
    if (!backend_under_test().is_emulated) parts.emplace_back(&sequences[8], prompt.first(kDecodeTokens), &both);
    const std::vector<std::vector<float>> together = step(*loaded, parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<float> alone = feed_alone(*loaded, parts[i].tokens, {40}, parts[i].adapters);
      EXPECT_EQ(alone, together[i]) << "part " << i << ", exact " << exact;
      const std::span<const float> plain = std::span(i < 5 ? plain_text : plain_prompt).first(alone.size());
      if (parts[i].adapters) {
        EXPECT_GT(max_difference(alone, plain), 0.01f) << i;
      } else {
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), plain.begin())) << i;
      }
    }
    EXPECT_GT(max_difference(together[0], together[1]), 0.01f) << "two adapters that do the same";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Adapters, testing::ValuesIn(adapted_models()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace chimere::parity
