// A DFlash drafter on the CUDA backend, in the emulator: the trunk stores what it reads, and its blocks see that and all
// of themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/scratch_for_test.h"
#include "engine/block_pass.h"
#include "engine/engine.h"
#include "engine/speculation_for_test.h"
#include "models/compare_for_test.h"
#include "models/drafter_for_test.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"
#include "parity/backend_under_test.h"

namespace chimere::engine {
namespace {

using speculative::Mode;

class CudaDrafter : public testing::TestWithParam<const char*>, protected SpeculationRuns {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    path_ = fixture::kept(GetParam()) / "model.gguf";
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  // With a drafter that is made for the model, whose last layer has a window.
  std::unique_ptr<models::Model> load(models::BackendKind backend, const LoadOptions& options) {
    auto model = models::Model::load(path_.string(), backend, options,
                                     backend == models::BackendKind::cuda ? cuda::compile : reference::compile);
    EXPECT_TRUE(model) << model.error().message;
    return model ? std::move(*model) : nullptr;
  }
  std::string drafter(int window = 0, uint64_t head_dim = 16) {
    const auto file = gguf::File::open(path_.string());
    const TensorView* table = file->find("token_embd.weight");
    fixture::DrafterShape shape{table->ne[0], table->ne[1], {1, 2, 4}};
    shape.window = window;
    shape.head_dim = head_dim;
    auto drafter = fixture::write_drafter(scratch_, path_, shape);
    EXPECT_TRUE(drafter) << drafter.error().message;
    return drafter ? *drafter : "";
  }
  static LoadOptions options(std::string drafter, bool exact, const KvFormat& kv) {
    LoadOptions o;
    o.exact = exact;
    o.kv = kv;
    o.max_rows = 96;
    o.n_threads = 1;
    o.drafter = std::move(drafter);
    return o;
  }

  std::filesystem::path scratch_, path_;
};

std::vector<float> block_logits(Executable& executable, Sequence& sequence, const std::vector<int32_t>& block) {
  Batch batch;
  batch.draft_blocks = true;
  batch.tokens = block;
  auto slice = sequence.begin_pass(sequence.length(), static_cast<int>(block.size()));
  EXPECT_TRUE(slice);
  batch.slices.push_back(*slice);
  for (int i = 0; i < batch.n_rows(); ++i) batch.logit_rows.push_back(i);
  std::vector<float> logits(block.size() * static_cast<size_t>(executable.program().n_vocab));
  const Status ran = executable.run(batch, {.logits = logits.data()});
  EXPECT_TRUE(ran) << ran.error().message;
  return logits;
}

// Behind texts of several lengths, read in slices of both classes, across the end of a page: the logits of a block are
// the oracle's, which models/dflash_test.cpp holds against the formula.
TEST_P(CudaDrafter, BlocksHaveTheLogitsOfTheOracle) {
  for (const int window : {0, 6}) {
    const std::string file = drafter(window);
    const auto card = load(models::BackendKind::cuda, options(file, true, kFloatKv));
    const auto oracle = load(models::BackendKind::reference, options(file, true, kFloatKv));
    ASSERT_TRUE(card && oracle && card->draft_blocks());
    const auto n_rows = static_cast<size_t>(card->draft_blocks()->n_rows);
    const std::vector<int32_t> text = script_tokens(1, 0, 80, card->n_vocab());
    Sequence on_card = new_sequence(card->executable()), expected = new_sequence(oracle->executable());
    size_t at = 0;
    for (const size_t length : {1u, 7u, 30u, 62u, 70u}) {
      SCOPED_TRACE(std::to_string(length) + " tokens, window " + std::to_string(window));
      const auto more = std::span(text).subspan(at, length - at);
      for (auto [model, sequence] : {std::pair{card.get(), &on_card}, {oracle.get(), &expected}}) {
        feed(model->executable(), *sequence, more, {static_cast<int>(more.size())});
      }
      at = length;
      std::vector<int32_t> block(n_rows, card->draft_blocks()->mask_token);
      block[0] = text[length];
      const std::vector<float> found = block_logits(card->executable(), on_card, block);
      const std::vector<float> wanted = block_logits(oracle->executable(), expected, block);
      float largest = 0, off = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        largest = std::max(largest, std::abs(wanted[i]));
        off = std::max(off, std::abs(found[i] - wanted[i]));
      }
      EXPECT_LT(off, 1e-3f * std::max(1.0f, largest));
      EXPECT_GT(largest, 0.1f);
    }
  }
}

// With caches of every type, and heads that the model's kernels on tensor cores take.
TEST_P(CudaDrafter, TakesNothingFromTheModel) {
  const std::string file = drafter(0, 64);
  for (const KvFormat& kv : {kHalfKv, KvFormat{DType::Q8_0, DType::Q4_0, true}}) {
    const auto with = load(models::BackendKind::cuda, options(file, false, kv));
    const auto plain = load(models::BackendKind::cuda, options("", false, kv));
    ASSERT_TRUE(with && plain);
    const std::vector<int32_t> text = script_tokens(2, 0, 42, with->n_vocab());
    EXPECT_EQ(feed_alone(with->executable(), text, {36, 1, 5}), feed_alone(plain->executable(), text, {36, 1, 5}));
  }
}

// After drafts that failed and were taken back guesses are those behind a text that was read anew, drawn by the host and
// by the card.
TEST_P(CudaDrafter, GuessesTheSameAfterDraftsThatFailed) {
  const auto model = load(models::BackendKind::cuda, options(drafter(0, 64), false, kHalfKv));
  ASSERT_TRUE(model);
  Executable& executable = model->executable();
  const int n_guesses = model->draft_blocks()->n_rows - 1;
  const std::vector<int32_t> text = script_tokens(1, 0, 100, model->n_vocab());
  BlockPass pass(*model);
  const auto guesses = [&](Sequence& sequence, size_t at) {
    const BlockPass::Part part{&sequence, text[at], n_guesses};
    const Status ran = pass.run({&part, 1});
    EXPECT_TRUE(ran) << ran.error().message;
    std::vector<int32_t> all;
    for (int i = 0; i < n_guesses; ++i) all.push_back(pass.guess(0, i));
    return all;
  };
  Sequence drafted = new_sequence(executable);
  feed(executable, drafted, std::span(text).first(57), {57});
  for (size_t at = 57; at < 62;) {
    const std::vector<int32_t> found = guesses(drafted, at);
    Sequence fresh = new_sequence(executable);
    feed(executable, fresh, std::span(text).first(at), {57, 1});
    ASSERT_EQ(guesses(fresh, at), found) << at;
    if (at == 57) {
      const auto draws = executable.prepare_draws({});
      ASSERT_TRUE(draws && *draws);
      ASSERT_EQ(guesses(fresh, at), found) << "drawn on the card";
    }
    const size_t n = 4, n_right = at % 3;
    std::vector<int32_t> tokens(text.begin() + static_cast<std::ptrdiff_t>(at),
                                text.begin() + static_cast<std::ptrdiff_t>(at + 1 + n));
    for (size_t i = 1 + n_right; i < tokens.size(); ++i) tokens[i] = (tokens[i] + 1) % model->n_vocab();
    step(executable, {Part::draft(&drafted, tokens)});
    ASSERT_TRUE(drafted.rollback(static_cast<int>(n - n_right)));
    at += 1 + n_right;
  }
}

class CudaDrafterAnswers : public CudaDrafter {};

TEST_P(CudaDrafterAnswers, AreThoseWithoutIt) {
  const auto plain_model = load(models::BackendKind::cuda, options("", false, kHalfKv));
  const auto model = load(models::BackendKind::cuda, options(drafter(), false, kHalfKv));
  ASSERT_TRUE(plain_model && model);
  std::vector<Named> all = cases(model->n_vocab());
  std::erase_if(all, [](const Named& c) { return c.name != "greedy" && c.name != "penalties" && c.name != "thought"; });
  std::vector<Outcome> expected;
  for (const Mode mode : {Mode::off, Mode::always}) {
    Engine engine(mode == Mode::off ? *plain_model : *model, config(mode, 4));
    std::vector<Submitted> submitted;
    for (Named& c : all) {
      c.request.prompt.resize(6);
      c.request.max_tokens = 10;
      auto s = engine.submit(c.request);
      ASSERT_TRUE(s) << s.error().message;
      submitted.push_back(*s);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      Outcome found = outcome_of(*submitted[i].events);
      EXPECT_EQ(found.end.kind, Event::Kind::finished);
      if (mode == Mode::off) {
        expected.push_back(std::move(found));
      } else {
        EXPECT_TRUE(same_outcome(found, expected[i])) << all[i].name;
        EXPECT_GT(found.end.usage.draft_tokens, 0) << all[i].name;
      }
    }
  }
}

std::string drafted_model(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Checked addresses make the emulator several times slower: one model then.
INSTANTIATE_TEST_SUITE_P(Models, CudaDrafter,
                         testing::ValuesIn(parity::kSanitized
                                               ? std::vector{"qwen3_5_moe-B-untied"}
                                               : std::vector{"qwen3_5_moe-B-untied", "nemotron_h-moe-L"}),
                         drafted_model);
INSTANTIATE_TEST_SUITE_P(Models, CudaDrafterAnswers, testing::Values("qwen3_5_moe-B-untied"), drafted_model);

}  // namespace
}  // namespace chimere::engine
