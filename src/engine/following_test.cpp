// following_test.cpp  Guesses of the model's own draft pass, or of a DFlash drafter, change no answer either; what it costs to keep it up with texts,
// and that it guesses what it would have guessed without drafts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/scratch_for_test.h"
#include "engine/draft_pass.h"
#include "engine/drawing_device_for_test.h"
#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "engine/speculation_for_test.h"
#include "models/draft_block_for_test.h"
#include "models/drafter_for_test.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"
#include "speculative/likely_tokens.h"

namespace chimere::engine {
namespace {

using speculative::Mode;

// No token twice, so nothing that stood before can be guessed to follow again.
class Fresh : public TokenConstraint {
 public:
  Fresh(int n_vocab, std::span<const int32_t> said) : bits_((static_cast<size_t>(n_vocab) + 63) / 64) {
    for (int i = 0; i < n_vocab; ++i) bits_[static_cast<size_t>(i) / 64] |= uint64_t{1} << (i % 64);
    for (const int32_t id : said) accept(id);
  }
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Fresh>(*this); }
  bool prepare(int64_t) override { return true; }
  std::span<const uint64_t> mask() override { return bits_; }
  void accept(int32_t id) override { bits_[static_cast<size_t>(id) / 64] &= ~(uint64_t{1} << (id % 64)); }
  bool is_finished() const override { return false; }

 private:
  std::vector<uint64_t> bits_;
};

// With the model's own draft pass as the source, of a block with random weights and of a trained one; where the host
// draws, and where the device does and chains drafts itself. And with a drafter of random weights.
struct Block {
  const char* name;
  bool is_trained, draws;
  bool is_drafter = false;
};

class DraftPassSpeculation : public testing::TestWithParam<Block>, protected SpeculationRuns {
 protected:
  static bool is_trained() { return GetParam().is_trained; }
  static bool is_drafter() { return GetParam().is_drafter; }
  static Mode own_mode() { return is_drafter() ? Mode::dflash : Mode::mtp; }
  void SetUp() override { load(false); }
  void load(bool exact) {
    scratch_ = fixture::scratch_folder();
    std::string path = CHIMERE_TESTS_DIR "/../assets/chimere-nano.gguf";
    if (!is_trained()) {
      const auto bytes = fixture::with_draft_block(fixture::kept("qwen3_5_moe-B-untied"));
      ASSERT_TRUE(bytes) << bytes.error().message;
      path = (scratch_ / "model.gguf").string();
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
    }
    LoadOptions options;
    options.n_threads = 1;
    options.max_rows = 160;
    options.exact = exact;
    for (const bool drafts : {false, true}) {
      if (drafts && is_drafter()) {
        const auto drafter = fixture::write_drafter(scratch_, path);
        ASSERT_TRUE(drafter) << drafter.error().message;
        options.drafter = *drafter;
      }
      options.drafts = drafts;
      const models::Compile compile = drafts && GetParam().draws ? DrawingDevice::compile : cpu::compile;
      auto model = models::Model::load(path, models::BackendKind::cpu, options, compile);
      ASSERT_TRUE(model) << model.error().message;
      ASSERT_EQ((*model)->has_drafts(), drafts && !is_drafter()) << (*model)->draft_problem();
      ASSERT_EQ((*model)->draft_blocks() != nullptr, drafts && is_drafter());
      (drafts ? drafting_ : plain_) = std::move(*model);
    }
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  // What the cases give on a model without the block, without drafts.
  std::vector<std::pair<Named, Outcome>> expected() { return undrafted_cases(*plain_); }

  std::filesystem::path scratch_;
  std::unique_ptr<models::Model> plain_, drafting_;
};

TEST_P(DraftPassSpeculation, AloneItGivesTheSameAnswers) {
  uint64_t n_drafted = 0, n_accepted = 0;
  for (const auto& [c, outcome] : expected()) {
    SCOPED_TRACE(c.name);
    for (const int draft_max : {15, 3, 1}) {
      Engine engine(*drafting_, config(Mode::always, draft_max));
      EXPECT_TRUE(same_outcome(ask(engine, c.request), outcome)) << draft_max;
      ASSERT_TRUE(engine.score({1, 2}));  // behind the step, so what it did is published
      const EngineStats stats = engine.stats();
      const speculative::Tally::Count of_drafter = stats.guesses.total(speculative::Source::dflash);
      n_drafted += is_drafter() ? of_drafter.tried : stats.draft_pass_tokens;
      n_accepted += is_drafter() ? of_drafter.taken : stats.draft_pass_tokens_accepted;
      EXPECT_LE(stats.draft_pass_tokens, stats.draft_tokens);
      EXPECT_LE(stats.draft_pass_tokens_accepted, stats.draft_tokens_accepted);
    }
  }
  EXPECT_GT(n_drafted, 1000u);
  EXPECT_GT(n_accepted, is_trained() ? n_drafted / 20 : 0u);
  EXPECT_LT(n_accepted, n_drafted / 2) << "some fail";
}

TEST_P(DraftPassSpeculation, TogetherTheyGiveTheSameAnswers) {
  const auto all = expected();
  for (const Mode mode : {Mode::always, own_mode(), Mode::automatic, Mode::off}) {
    SCOPED_TRACE(speculative::name(mode));
    EngineConfig c = config(mode);
    c.max_running = 4;
    Engine engine(*drafting_, c);
    // Some say for themselves what is tried.
    ask_together(engine, all, [](Request r, size_t i) {
      if (i % 4 == 3) r.speculate = i % 8 == 3 ? Mode::off : own_mode();
      return r;
    });
    ASSERT_TRUE(engine.score({1, 2}));
    const EngineStats stats = engine.stats();
    if (mode != Mode::always) continue;
    EXPECT_LT(stats.draft_passes, stats.draft_tokens) << "they share passes";
    EXPECT_EQ(stats.drafter_rows > 0, is_drafter());
    EXPECT_EQ(stats.draft_pass_rows > 0, !is_drafter()) << "rows of the MTP block are no drafter's";
    EXPECT_EQ(stats.drafter.block_rows > 0, is_drafter());
  }
}

// The engine guesses what the pass says that saw the whole text at once, with the trunk's states alone: nothing of what
// was guessed before, taken back or caught up with stands in its way.
TEST_P(DraftPassSpeculation, GuessesAreThoseOfAPassOverTheWholeText) {
  if (is_drafter()) GTEST_SKIP() << "block_pass_test.cpp is about drafters";
  // Float activations: with quantised ones the bits of a row of many differ from those of one alone, near ties with them,
  // and one guess that differs shifts all the steps behind it.
  TearDown();
  ASSERT_NO_FATAL_FAILURE(load(true));
  Request r = plain(3, 90, 250);
  r.sampling.temperature = 0.4f;
  r.sampling.seed = 4;
  r.constraint = std::make_shared<Fresh>(plain_->n_vocab(), r.prompt);
  Engine undrafted(*plain_, config(Mode::off));
  const std::vector<int32_t> answer = ask(undrafted, r).ids();
  ASSERT_EQ(answer.size(), 250u);
  std::vector<int32_t> text = r.prompt;
  text.insert(text.end(), answer.begin(), answer.end());

  Executable& executable = drafting_->executable();
  Sequence sequence = new_sequence(executable);
  const auto d = static_cast<size_t>(drafting_->d_model());
  std::vector<float> hidden(d, 0.0f);
  std::vector<int32_t> guesses;  // [position]: of the token behind it
  DraftPass pass(*drafting_);
  pass.set_candidates(
      speculative::LikelyTokens(drafting_->n_vocab(), kHeadBlock).blocks());  // the text is too short for others
  for (size_t at = 0; at < text.size(); at += 64) {
    const std::span<const int32_t> part = std::span(text).subspan(at, std::min<size_t>(64, text.size() - at));
    Batch batch = begin_batch({Part(&sequence, part)});
    batch.logit_rows.clear();
    std::vector<float> rows(part.size() * d);
    ASSERT_TRUE(executable.run(batch, {.row_hidden = rows.data()}));
    commit_batch({Part(&sequence, part)});
    hidden.insert(hidden.end(), rows.begin(), rows.end());
    const DraftPass::Part passed{&sequence, static_cast<int32_t>(at), part,
                                 std::span(hidden).subspan(at * d, part.size() * d), static_cast<int>(part.size())};
    ASSERT_TRUE(pass.run({&passed, 1}));
    for (size_t i = 0; i < part.size(); ++i) guesses.push_back(pass.guess(0, static_cast<int>(i)));
  }
  // A step with one guess takes two tokens where it is right, else one. Guesses that the form refuses are not tried, and
  // the last token is not guessed.
  size_t n_drafted = 0, n_right = 0;
  for (size_t at = r.prompt.size(); at + 2 < text.size();) {
    const auto said = text.begin() + static_cast<std::ptrdiff_t>(at + 1);
    n_drafted += std::find(text.begin(), said, guesses[at]) == said;
    const bool is_right = guesses[at] == text[at + 1];
    n_right += is_right;
    at += is_right ? 2 : 1;
  }
  Engine engine(*drafting_, config(Mode::always, 1));
  EXPECT_EQ(ask(engine, r).ids(), answer);
  ASSERT_TRUE(engine.score({1, 2}));
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.draft_pass_tokens, stats.draft_tokens);
  EXPECT_NEAR(static_cast<double>(stats.draft_pass_tokens), static_cast<double>(n_drafted), 1);
  EXPECT_NEAR(static_cast<double>(stats.draft_pass_tokens_accepted), static_cast<double>(n_right), 1);
  EXPECT_GT(n_drafted, 20u);
  if (is_trained()) {
    EXPECT_GT(n_right, 5u);
  }
  std::printf("    %zu of %zu guesses right\n", n_right, n_drafted);
}

// Logits of some blocks of the vocabulary have the bits that they have among all, and the others are not touched.
TEST_P(DraftPassSpeculation, CandidatesAloneAreComputed) {
  Executable& executable = plain_->executable();
  const int32_t n_vocab = plain_->n_vocab(), last = (n_vocab - 1) / kHeadBlock;
  const std::vector<int32_t> text{5, 9, 2}, blocks{0, 2, 3, 4, last};
  ASSERT_TRUE(executable.prepare_head_blocks(static_cast<int>(blocks.size())));
  std::vector<std::vector<float>> logits;
  for (const bool is_part : {false, true}) {
    Sequence sequence = new_sequence(executable);
    Batch batch = begin_batch({Part(&sequence, text)});
    batch.logit_rows = {1, 2};
    if (is_part) batch.head_blocks = blocks;
    logits.emplace_back(2 * static_cast<size_t>(n_vocab), -77.0f);
    ASSERT_TRUE(executable.run(batch, {.logits = logits.back().data()}));
  }
  for (size_t i = 0; i < logits[0].size(); ++i) {
    const auto block = static_cast<int32_t>(i % static_cast<size_t>(n_vocab)) / kHeadBlock;
    const bool is_wanted = std::find(blocks.begin(), blocks.end(), block) != blocks.end();
    ASSERT_EQ(logits[1][i], is_wanted ? logits[0][i] : -77.0f) << i;
  }
}

// Nobody who does not want them pays for guesses.
TEST_P(DraftPassSpeculation, CostsNothingWhereItIsNotWanted) {
  for (const Mode mode : {Mode::off, Mode::ngram}) {
    Engine engine(*drafting_, config(mode));
    ask(engine, plain(2, 200, 100));
    ASSERT_TRUE(engine.score({1, 2}));
    EXPECT_EQ(engine.stats().draft_passes, 0u) << speculative::name(mode);
  }
}

// An answer that is followed and not drafted for: a few passes of many rows.
TEST_P(DraftPassSpeculation, CatchesUpInFewPasses) {
  if (is_drafter()) GTEST_SKIP() << "there is nothing that a drafter has to catch up with";
  EngineConfig c = config(Mode::always, 15);
  c.draft_max = 0;
  Engine engine(*drafting_, c);
  Request r = plain(2, 200, 400);
  ask(engine, r);
  ASSERT_TRUE(engine.score({1, 2}));
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.draft_tokens, 0u);
  EXPECT_GE(stats.draft_pass_rows, 590u);
  EXPECT_LE(stats.draft_passes, 16u);
}

TEST_P(DraftPassSpeculation, ForksGiveTheSameAnswers) {
  Request r = plain(4);
  r.sampling.temperature = 1.0f;
  r.sampling.seed = 3;
  const auto choices = [&](models::Model& model, Mode mode) {
    Engine engine(model, config(mode));
    auto submitted = engine.submit_choices(r, std::vector<std::function<void()>>(3));
    EXPECT_TRUE(submitted);
    std::vector<Outcome> all;
    for (const Submitted& s : *submitted) all.push_back(outcome_of(*s.events));
    return all;
  };
  const auto late = [&](models::Model& model, Mode mode) {
    Engine engine(model, config(mode));
    Gate gate;
    auto first = engine.submit(r, gate.hook());
    EXPECT_TRUE(first);
    const Event event = first->events->wait();
    SamplingParams sampling = r.sampling;
    sampling.choice = 5;
    auto fork = engine.fork(first->id, sampling);
    EXPECT_TRUE(fork);
    gate.open();
    outcome_of(*first->events);
    return outcome_of(*fork->events);
  };
  const std::vector<Outcome> expected = choices(*plain_, Mode::off), found = choices(*drafting_, Mode::always);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_outcome(found[i], expected[i])) << "choice " << i;
  EXPECT_TRUE(same_outcome(late(*drafting_, Mode::always), late(*plain_, Mode::off)));
}

// Turns that go on from what was kept: the whole answer, a part of it with another end, a prompt that begins as another
// in the middle of one; after turns that were drafted for and after one that was not.
TEST_P(DraftPassSpeculation, NextTurnsFindTheSameStates) {
  Request r = plain(5, 150, 300);
  r.sampling.temperature = 0.8f;
  r.sampling.seed = 1;
  std::vector<std::vector<Outcome>> outcomes;
  for (const Mode mode : {Mode::off, Mode::always}) {
    Engine engine(mode == Mode::off ? *plain_ : *drafting_, config(mode));
    std::vector<Outcome>& all = outcomes.emplace_back();
    all.push_back(ask(engine, r));
    const std::vector<int32_t> ids = all[0].ids();
    for (const size_t n : {ids.size(), ids.size() - 20, ids.size() / 3, size_t{0}}) {
      Request next = r;
      next.prompt.insert(next.prompt.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
      if (n == 0) next.prompt.resize(100);
      for (int i = 0; i < 9; ++i) next.prompt.push_back(200 + i);
      next.max_tokens = 40;
      if (n == ids.size() - 20) next.speculate = Mode::off;
      all.push_back(ask(engine, next));
      next.speculate.reset();
      next.prompt.push_back(100);
      all.push_back(ask(engine, next));
    }
  }
  ASSERT_EQ(outcomes[0].size(), outcomes[1].size());
  for (size_t i = 0; i < outcomes[0].size(); ++i) {
    EXPECT_TRUE(same_outcome(outcomes[1][i], outcomes[0][i])) << "turn " << i;
  }
  EXPECT_GT(outcomes[0][1].end.usage.cached_tokens, 150) << "the turns were made for this";
}

TEST_P(DraftPassSpeculation, GivesWayToMemory) {
  const Request r = plain(7);
  Engine undrafted(*plain_, config(Mode::off));
  const Outcome expected = ask(undrafted, r);
  const StateLayout& layout = drafting_->executable().layout();
  EngineConfig c = config(Mode::always);
  c.cache.ram_bytes = 0;
  c.state_bytes = layout.recurrent_floats() * sizeof(float) + 2 * layout.page_bytes();
  Engine engine(*drafting_, c);
  EXPECT_TRUE(same_outcome(ask(engine, r), expected));
}

INSTANTIATE_TEST_SUITE_P(Blocks, DraftPassSpeculation,
                         testing::Values(Block{"random", false, false}, Block{"trained", true, false},
                                         Block{"random_on_a_device", false, true},
                                         Block{"trained_on_a_device", true, true},
                                         Block{"drafter", false, false, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace chimere::engine
