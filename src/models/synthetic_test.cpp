// The shapes of `bench --synthetic` load and run: prompts, decoding, and finite logits from random weights.
#include "models/synthetic.h"

#include <gtest/gtest.h>

#include "models/model.h"
#include "models/runs_for_test.h"

namespace chimere::models {
namespace {

TEST(Synthetic, TinyModelsRun) {
  for (const char* spec : {"qwen3.5-tiny:q4_0", "nemotron-tiny:q4_0"}) {
    SCOPED_TRACE(spec);
    auto source = synthetic_source(spec);
    ASSERT_TRUE(source) << source.error().message;
    LoadOptions options;
    options.n_threads = 2;
    options.max_rows = 96;
    auto model = Model::load(std::move(*source), BackendKind::cpu, options);
    ASSERT_TRUE(model) << model.error().message;
    Executable& executable = (*model)->executable();
    Sequence sequence = new_sequence(executable);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 71; ++i) tokens.push_back(i * 97 % (*model)->n_vocab());
    std::vector<float> logits = feed(executable, sequence, std::span(tokens).first(70), {70});
    const std::vector<float> next = feed(executable, sequence, std::span(tokens).last(1), {1});
    append_rows(logits, next);
    for (float l : logits) ASSERT_TRUE(std::isfinite(l));
    // Not all alike: something was computed.
    const auto [low, high] = std::minmax_element(next.begin(), next.end());
    EXPECT_GT(*high - *low, 1e-3f);
  }
}

TEST(Synthetic, DraftBlocksRunWhenTheyAreLoaded) {
  for (const bool drafts : {false, true}) {
    auto source = synthetic_source("qwen3.5-tiny:q4_0");
    ASSERT_TRUE(source) << source.error().message;
    LoadOptions options;
    options.n_threads = 2;
    options.max_rows = 96;
    options.drafts = drafts;
    auto model = Model::load(std::move(*source), BackendKind::cpu, options);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_EQ((*model)->has_drafts(), drafts) << (*model)->draft_problem();
    if (!drafts) continue;
    Executable& executable = (*model)->executable();
    Sequence sequence = new_sequence(executable);
    auto slice = sequence.begin_pass(0, 20);
    ASSERT_TRUE(slice);
    Batch batch;
    batch.slices = {*slice};
    for (int i = 0; i < 20; ++i) batch.tokens.push_back(i * 97);
    batch.logit_rows = {19};
    const std::vector<float> hidden(20 * static_cast<size_t>((*model)->d_model()), 0.5f);
    batch.draft_hidden = hidden.data();
    std::vector<float> logits(static_cast<size_t>((*model)->n_vocab()), NAN);
    ASSERT_TRUE(executable.run(batch, {.logits = logits.data()}));
    for (const float l : logits) ASSERT_TRUE(std::isfinite(l));
  }
}

TEST(Synthetic, UnknownNamesAreAnsweredWithTheKnownOnes) {
  auto model = synthetic_source("nonsense");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("nemotron-3-nano-30b-a3b"), std::string::npos);
  EXPECT_FALSE(synthetic_source("nemotron-tiny:nonsense"));
}

}  // namespace
}  // namespace chimere::models
