// speculation_test.cpp  Drafts on a card, in the emulator: their rows are drawn from on the device, guesses of the draft
// pass are chained there, in graphs, and nothing of an answer changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/draft_pass.h"
#include "engine/engine.h"
#include "engine/speculation_for_test.h"
#include "models/adapter_for_test.h"
#include "models/draft_block_for_test.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"

namespace chimere::engine {
namespace {

using speculative::Mode;

class CudaSpeculation : public testing::Test, protected SpeculationRuns {
 protected:
  void SetUp() override {
    scratch_ = fixture::scratch_folder();
    const auto bytes = fixture::with_draft_block(fixture::kept("qwen3_5_moe-B-untied"));
    ASSERT_TRUE(bytes) << bytes.error().message;
    const std::string path = (scratch_ / "model.gguf").string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
    LoadOptions options;
    options.max_rows = 96;
    options.drafts = true;
    auto model = models::Model::load(path, models::BackendKind::cuda, options, cuda::compile);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_TRUE((*model)->has_drafts()) << (*model)->draft_problem();
    model_ = std::move(*model);
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  // So many of the vocabulary, its last among them, which may be short; others for each `turn`.
  std::vector<int32_t> blocks(int turn) const {
    constexpr int kBlocks = 5;
    const int32_t last = (model_->n_vocab() - 1) / kHeadBlock;
    std::vector<int32_t> all{last};
    for (int32_t b = turn % 3; static_cast<int>(all.size()) < kBlocks; b += 1 + turn % 2) all.push_back(b);
    std::sort(all.begin(), all.end());
    return all;
  }

  std::filesystem::path scratch_;
  std::unique_ptr<models::Model> model_;
};

// Logits of some blocks have the bits that they have among all, the others are not touched, and the best of them is what
// the card draws; in both classes, and again after others were chosen.
TEST_F(CudaSpeculation, CandidatesAloneAreComputed) {
  Executable& executable = model_->executable();
  ASSERT_TRUE(executable.prepare_head_blocks(2));
  ASSERT_TRUE(executable.prepare_head_blocks(5)) << "more than before";
  EXPECT_FALSE(executable.prepare_head_blocks(1 << 20));
  const auto n_vocab = static_cast<size_t>(model_->n_vocab());
  std::vector<float> hidden(20 * static_cast<size_t>(model_->d_model()));
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = static_cast<float>(i * 7919 % 211) / 50 - 2;
  const auto draws = executable.prepare_draws(std::vector<int32_t>{3, 17});
  ASSERT_TRUE(draws && *draws);
  SamplingParams greedy;
  greedy.temperature = 0;
  const SamplerState nothing_said;
  for (const int n : {3, 20}) {
    const std::vector<int32_t> text = script_tokens(1, 0, n, model_->n_vocab());
    const auto run = [&](std::span<const int32_t> blocks, bool draws_tokens, std::vector<int32_t>& drawn) {
      Sequence sequence = new_sequence(executable);
      auto slice = sequence.begin_pass(0, n);
      EXPECT_TRUE(slice);
      Batch batch;
      batch.tokens = text;
      batch.slices = {*slice};
      batch.logit_rows = {1, n - 1};
      batch.draft_hidden = hidden.data();
      batch.head_blocks = blocks;
      std::vector<float> logits(2 * n_vocab, -77.0f);
      const std::vector<Draw> wanted(2, {&greedy, &nothing_said, {}, 0});
      std::vector<Result<Sampled>> found(2, Sampled{});
      Outputs outputs{.logits = logits.data()};
      if (draws_tokens) outputs.draws = wanted, outputs.drawn = found;
      const Status ran = executable.run(batch, outputs);
      EXPECT_TRUE(ran) << ran.error().message;
      for (const auto& f : found) drawn.push_back(f ? f->id : -1);
      return logits;
    };
    std::vector<int32_t> ignored;
    const std::vector<float> all = run({}, false, ignored);
    for (int turn = 0; turn < 3; ++turn) {
      const std::vector<int32_t> chosen = blocks(turn);
      const std::vector<float> part = run(chosen, false, ignored);
      std::vector<int32_t> best(2, -1), drawn;
      for (size_t i = 0; i < all.size(); ++i) {
        const auto id = static_cast<int32_t>(i % n_vocab);
        const bool is_wanted = std::count(chosen.begin(), chosen.end(), id / kHeadBlock) > 0;
        ASSERT_EQ(part[i], is_wanted ? all[i] : -77.0f) << i;
        if (!is_wanted || id == 3 || id == 17) continue;
        int32_t& so_far = best[i / n_vocab];
        if (so_far < 0 || all[i] > all[i / n_vocab * n_vocab + static_cast<size_t>(so_far)]) so_far = id;
      }
      run(chosen, true, drawn);
      EXPECT_EQ(drawn, best);
    }
  }
}

// Three chains of several lengths, behind one token and behind several: what comes of them on the device is what comes
// of one pass after another with the host between them. Several times, so that graphs run them, and across pages; of all
// tokens, and of candidates that are others every time.
TEST_F(CudaSpeculation, ChainsAreThoseOfSinglePasses) {
  const auto d = static_cast<size_t>(model_->d_model());
  std::vector<float> hidden(4 * d);
  for (size_t i = 0; i < hidden.size(); ++i)
    hidden[i] = static_cast<float>(static_cast<int>(i * 7919 % 211) - 100) / 50;
  const std::vector<int32_t> tokens = {11, 47, 5, 101};
  std::vector<std::vector<int32_t>> guesses;
  int64_t n_outside = 0;
  for (const bool on_device : {false, true}) {
    if (on_device) {
      const auto draws = model_->executable().prepare_draws({});
      ASSERT_TRUE(draws && *draws);
      ASSERT_TRUE(model_->executable().chains_drafts());
    }
    std::vector<Sequence> sequences;
    for (int i = 0; i < 3; ++i) sequences.push_back(new_sequence(model_->executable()));
    DraftPass pass(*model_);
    std::vector<int32_t>& found = guesses.emplace_back();
    for (int32_t pos = 60; pos < 69; ++pos) {
      const std::vector<int32_t> candidates = pos < 64 ? std::vector<int32_t>() : blocks(pos);
      pass.set_candidates(candidates);
      const auto part = [&](int s, size_t n, int n_guesses) {
        return DraftPass::Part{&sequences[s], pos, std::span(tokens).first(n), std::span(hidden).first(n * d),
                               n_guesses};
      };
      const DraftPass::Part parts[] = {part(0, 1, 2), part(1, 3, 4), part(2, 2, 1)};
      const Status ran = pass.run_chains(parts);
      ASSERT_TRUE(ran) << ran.error().message;
      for (size_t p = 0; p < std::size(parts); ++p) {
        for (int i = 0; i < parts[p].n_guesses; ++i) {
          found.push_back(pass.guess(p, i));
          n_outside +=
              !candidates.empty() && std::count(candidates.begin(), candidates.end(), found.back() / kHeadBlock) == 0;
        }
      }
    }
  }
  ASSERT_EQ(guesses[0].size(), 63u);
  EXPECT_EQ(n_outside, 0);
  EXPECT_EQ(guesses[1], guesses[0]);
}

TEST_F(CudaSpeculation, AnswersAreThoseWithoutDrafts) {
  std::vector<Named> all = cases(model_->n_vocab());
  std::erase_if(all, [](const Named& c) {
    return c.name != "greedy" && c.name != "penalties" && c.name != "figures" && c.name != "thought";
  });
  std::vector<Outcome> expected;
  for (const Mode mode : {Mode::off, Mode::always}) {
    Engine engine(*model_, config(mode, 3));
    std::vector<Submitted> submitted;
    for (Named& c : all) {
      c.request.prompt.resize(6);
      c.request.max_tokens = 14;
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

}  // namespace
}  // namespace chimere::engine
