// block_pass_test.cpp  A drafter guesses the same after drafts that failed and were taken back as behind a text that was
// read in one go, alone and beside others.
#include "engine/block_pass.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/hash.h"
#include "base/scratch_for_test.h"
#include "engine/engine.h"
#include "models/drafter_for_test.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"

namespace chimere::engine {
namespace {

class Blocks : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    const std::filesystem::path path = fixture::kept(GetParam()) / "model.gguf";
    const auto drafter = fixture::write_drafter(scratch_, path);
    ASSERT_TRUE(drafter) << drafter.error().message;
    LoadOptions options;
    options.n_threads = 1;
    options.max_rows = 24;
    options.drafter = *drafter;
    auto model = models::Model::load(path.string(), models::BackendKind::cpu, options);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  std::vector<int32_t> guesses(BlockPass& pass, std::span<const BlockPass::Part> parts) {
    EXPECT_TRUE(pass.run(parts));
    std::vector<int32_t> all;
    for (size_t p = 0; p < parts.size(); ++p) {
      for (int i = 0; i < parts[p].n_guesses; ++i) all.push_back(pass.guess(p, i));
    }
    return all;
  }

  std::filesystem::path scratch_;
  std::unique_ptr<models::Model> model_;
};

TEST_P(Blocks, AreTheSameAfterEveryDraftThatFailed) {
  Executable& executable = model_->executable();
  const int n_guesses = model_->draft_blocks()->n_rows - 1;
  const std::vector<int32_t> text = script_tokens(1, 0, 150, model_->n_vocab());
  BlockPass pass(*model_);
  Sequence drafted = new_sequence(executable);
  feed(executable, drafted, std::span(text).first(5), {5});
  std::vector<int32_t> first_guesses;
  for (size_t at = 5; at + 16 < text.size();) {
    const BlockPass::Part part{&drafted, text[at], n_guesses};
    const std::vector<int32_t> found = guesses(pass, {&part, 1});
    // Slices of the decode class alone, whose bits do not depend on where they are cut.
    Sequence fresh = new_sequence(executable);
    feed(executable, fresh, std::span(text).first(at), {1, 7});
    const BlockPass::Part again{&fresh, text[at], n_guesses};
    ASSERT_EQ(guesses(pass, {&again, 1}), found) << at;
    first_guesses.push_back(found[0]);
    // A draft of which some tokens are right.
    const auto n = static_cast<size_t>(1 + hash_mix(at) % 15), n_right = hash_mix(at * 7) % (n + 1);
    std::vector<int32_t> tokens(text.begin() + static_cast<std::ptrdiff_t>(at),
                                text.begin() + static_cast<std::ptrdiff_t>(at + 1 + n));
    for (size_t i = 1 + n_right; i < tokens.size(); ++i) tokens[i] = (tokens[i] + 1) % model_->n_vocab();
    step(executable, {Part::draft(&drafted, tokens)});
    ASSERT_TRUE(drafted.rollback(static_cast<int>(n - n_right)));
    at += 1 + n_right;
  }
  std::sort(first_guesses.begin(), first_guesses.end());
  EXPECT_NE(first_guesses.front(), first_guesses.back()) << "the guesses depend on the text";
}

// A batch of 24 rows has place for four blocks of five.
TEST_P(Blocks, OfManySequencesAreThoseOfEach) {
  Executable& executable = model_->executable();
  BlockPass pass(*model_);
  std::vector<Sequence> sequences;
  std::vector<BlockPass::Part> parts;
  for (int s = 0; s < 6; ++s) {
    sequences.push_back(new_sequence(executable));
    feed(executable, sequences.back(), script_tokens(s, 0, 9 * s + 2, model_->n_vocab()), {11});
  }
  std::vector<int32_t> alone;
  for (int s = 0; s < 6; ++s) {
    parts.push_back({&sequences[static_cast<size_t>(s)], 10 + s, 1 + s % 4});
    const std::vector<int32_t> own = guesses(pass, {&parts.back(), 1});
    alone.insert(alone.end(), own.begin(), own.end());
  }
  EXPECT_EQ(guesses(pass, parts), alone);
}

TEST_P(Blocks, ARequestForTheBlockWhosePlaceItHasIsRefused) {
  Engine engine(*model_, {});
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 1;
  request.speculate = speculative::Mode::mtp;
  const auto refused = engine.submit(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "speculation \"mtp\" needs an MTP block, whose place a drafter has");
  request.speculate = speculative::Mode::dflash;
  EXPECT_TRUE(engine.submit(request));
}

INSTANTIATE_TEST_SUITE_P(Models, Blocks,
                         testing::Values("qwen3_5_moe-B-untied", "mamba-A", "nemotron_h-moe-L", "bamba-A", "qwen2-A"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace chimere::engine
