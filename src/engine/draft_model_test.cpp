// draft_model_test.cpp  Guesses of a draft model change no answer: what it reads, takes back and guesses, and when it is
// left out.
#include "engine/draft_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "engine/speculation_for_test.h"
#include "models/adapter_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

using speculative::Mode;
using speculative::Source;

// A model, and the one that guesses for it: of the same weights, which are right whenever the best token is taken, or of
// others, which seldom are.
struct Pair {
  const char* name;
  const char* model;
  const char* draft_model;
};

std::unique_ptr<models::Model> load_kept(const std::string& name) {
  if (name == "chimere-nano") {
    LoadOptions options;
    options.n_threads = 1;
    auto model =
        models::Model::load(CHIMERE_TESTS_DIR "/../assets/chimere-nano.gguf", models::BackendKind::cpu, options);
    return model ? std::move(*model) : nullptr;
  }
  return fixture::load(fixture::kept(name), models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
}

class DraftModelSpeculation : public testing::TestWithParam<Pair>, protected SpeculationRuns {
 protected:
  void SetUp() override {
    model_ = load_kept(GetParam().model);
    draft_ = load_kept(GetParam().draft_model);
    ASSERT_TRUE(model_ && draft_);
  }
  bool is_same() const { return std::string(GetParam().model) == GetParam().draft_model; }
  EngineConfig with_draft(Mode mode, int draft_max = 15) {
    EngineConfig c = config(mode, draft_max);
    c.draft_model = draft_.get();
    return c;
  }
  EngineStats stats_after(Engine& engine) {
    EXPECT_TRUE(engine.score({1, 2}));  // behind the step, so what it did is published
    return engine.stats();
  }

  std::unique_ptr<models::Model> model_, draft_;
};

TEST_P(DraftModelSpeculation, AloneItGivesTheSameAnswers) {
  uint64_t n_tried = 0, n_taken = 0;
  for (const auto& [c, outcome] : undrafted_cases(*model_)) {
    SCOPED_TRACE(c.name);
    for (const int draft_max : {15, 3, 1}) {
      Engine engine(*model_, with_draft(Mode::always, draft_max));
      EXPECT_TRUE(same_outcome(ask(engine, c.request), outcome)) << draft_max;
      const EngineStats stats = stats_after(engine);
      const auto total = stats.guesses.total(Source::draft_model);
      n_tried += total.tried;
      n_taken += total.taken;
      EXPECT_LE(total.tried, stats.draft_tokens);
    }
  }
  EXPECT_GT(n_tried, 500u);
  if (is_same()) {
    EXPECT_GT(n_taken, 500u) << "where the best token is taken, all of them";
  }
  EXPECT_LT(n_taken, n_tried) << "some fail";
}

TEST_P(DraftModelSpeculation, TogetherTheyGiveTheSameAnswers) {
  const auto all = undrafted_cases(*model_);
  for (const Mode mode : {Mode::always, Mode::draft, Mode::automatic, Mode::off}) {
    SCOPED_TRACE(speculative::name(mode));
    EngineConfig c = with_draft(mode);
    c.max_running = 8;
    Engine engine(*model_, c);
    // Some say for themselves what is tried.
    ask_together(engine, all, [](Request r, size_t i) {
      if (i % 4 == 3) r.speculate = i % 8 == 3 ? Mode::off : Mode::draft;
      return r;
    });
    if (mode == Mode::always) {
      EXPECT_GT(stats_after(engine).guesses.total(Source::draft_model).tried, 100u);
    }
  }
}

// Turns that the model finds in its cache, in memory and on the disk, and that the draft model has to read.
TEST_P(DraftModelSpeculation, NextTurnsAndRestartsGiveTheSameAnswers) {
  Request first = plain(5, 200, 60);
  first.sampling.temperature = 0.8f;
  first.sampling.seed = 1;
  std::vector<std::vector<Outcome>> outcomes;
  for (const Mode mode : {Mode::off, Mode::always}) {
    const auto folder = fixture::scratch_folder();
    EngineConfig c = mode == Mode::off ? config(mode) : with_draft(mode);
    c.cache.disk.folder = folder.string();
    c.cache.disk.quota_bytes = uint64_t{1} << 30;
    std::vector<Outcome> turns;
    Request next = first;
    for (int start = 0; start < 2; ++start) {
      Engine engine(*model_, c);
      for (int turn = 0; turn < 2; ++turn) {
        turns.push_back(ask(engine, next));
        const std::vector<int32_t> ids = turns.back().ids();
        next.prompt.insert(next.prompt.end(), ids.begin(), ids.end());
        next.prompt.insert(next.prompt.end(), {200, 201, 202});
      }
      if (mode == Mode::off) continue;
      EXPECT_GT(stats_after(engine).guesses.total(Source::draft_model).tried, 0u) << "start " << start;
    }
    outcomes.push_back(std::move(turns));
    std::filesystem::remove_all(folder);
  }
  for (size_t i = 0; i < outcomes[0].size(); ++i) {
    EXPECT_TRUE(same_outcome(outcomes[1][i], outcomes[0][i])) << "turn " << i;
  }
  EXPECT_GT(outcomes[0][2].end.usage.cached_tokens, 200) << "a restart was made for this";
}

TEST_P(DraftModelSpeculation, ForksGiveTheSameAnswers) {
  Request r = plain(4);
  r.sampling.temperature = 1.0f;
  r.sampling.seed = 3;
  std::vector<std::vector<Outcome>> outcomes;
  for (const Mode mode : {Mode::off, Mode::always}) {
    Engine engine(*model_, mode == Mode::off ? config(mode) : with_draft(mode));
    auto submitted = engine.submit_choices(r, std::vector<std::function<void()>>(3));
    ASSERT_TRUE(submitted);
    outcomes.emplace_back();
    for (const Submitted& s : *submitted) outcomes.back().push_back(outcome_of(*s.events));
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_outcome(outcomes[1][i], outcomes[0][i])) << "choice " << i;
}

// Where there is no room for what the draft model has to keep, nothing of it is tried and nothing fails.
TEST_P(DraftModelSpeculation, GivesWayToMemory) {
  const Request r = plain(7);
  Engine undrafted(*model_, config(Mode::off));
  const Outcome expected = ask(undrafted, r);
  const StateLayout& layout = model_->executable().layout();
  EngineConfig c = with_draft(Mode::always);
  c.cache.ram_bytes = 0;
  c.state_bytes = layout.recurrent_floats() * sizeof(float) + 2 * layout.page_bytes();
  Engine engine(*model_, c);
  EXPECT_TRUE(same_outcome(ask(engine, r), expected));
  EXPECT_EQ(stats_after(engine).guesses.total(Source::draft_model).tried, 0u);
}

INSTANTIATE_TEST_SUITE_P(Pairs, DraftModelSpeculation,
                         testing::Values(Pair{"nano", "chimere-nano", "chimere-nano"},
                                         Pair{"itself", "qwen3_5_moe-B-untied", "qwen3_5_moe-B-untied"},
                                         Pair{"recurrent", "qwen3_5-A", "mamba-A"},
                                         Pair{"attention", "qwen3_5_moe-B-untied", "qwen2-A"},
                                         Pair{"of_attention", "qwen2-A", "nemotron_h-moe-L"}),
                         [](const auto& info) { return info.param.name; });

TEST(DraftModelEngine, IsRefusedWhereItIsNotThere) {
  const auto model = load_kept("qwen2-A");
  ASSERT_TRUE(model);
  Engine engine(*model, {});
  for (const Mode mode : {Mode::draft, Mode::dflash}) {
    Request r = plain();
    r.speculate = mode;
    const auto refused = engine.submit(r);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
    EXPECT_NE(refused.error().message.find("FILE"), std::string::npos) << refused.error().message;
  }
}

// Where the best token is taken, every guess is right, whatever was read and taken back before it.
TEST(DraftModelEngine, AModelGuessesRightForItself) {
  for (const char* name : {"chimere-nano", "qwen3_5_moe-B-untied"}) {
    SCOPED_TRACE(name);
    const auto model = load_kept(name), draft = load_kept(name);
    ASSERT_TRUE(model && draft);
    EngineConfig c;
    c.speculate = Mode::always;
    c.draft_max = 4;
    c.draft_model = draft.get();
    Engine engine(*model, c);
    auto s = engine.submit(plain(3, 90, 120));
    ASSERT_TRUE(s) << s.error().message;
    outcome_of(*s->events);
    ASSERT_TRUE(engine.score({1, 2}));
    const auto total = engine.stats().guesses.total(Source::draft_model);
    EXPECT_GT(total.tried, 20u);
    EXPECT_EQ(total.taken, total.tried);
  }
}

// Beyond its context a draft model guesses nothing; the answer goes on.
TEST(DraftModelEngine, LeavesLongTextsAlone) {
  const auto model = load_kept("qwen3_5-A"), draft = load_kept("qwen2-A");
  ASSERT_TRUE(model && draft);
  const int context = draft->context_length();
  EngineConfig c;
  c.context_length = 4 * context;
  const auto ask_with = [&](Mode mode, int n_prompt) {
    c.speculate = mode;
    c.draft_model = draft.get();
    Engine engine(*model, c);
    auto s = engine.submit(plain(2, n_prompt, 60));
    EXPECT_TRUE(s) << s.error().message;
    const Outcome outcome = outcome_of(*s->events);
    EXPECT_TRUE(engine.score({1, 2}));
    return std::pair(outcome.ids(), engine.stats().draft_model_rows);
  };
  for (const int n_prompt : {context - 40, context, 2 * context}) {
    const auto off = ask_with(Mode::off, n_prompt), always = ask_with(Mode::always, n_prompt);
    EXPECT_EQ(always.first, off.first) << n_prompt;
    EXPECT_EQ(always.second > 0, n_prompt < context) << n_prompt;
  }
}

// What the engine does between steps: read, guess, take back, go on; the guesses are those of one that read the same text
// token by token.
TEST(DraftModel, GuessesAsIfNothingHadBeenTakenBack) {
  for (const char* name : {"qwen3_5_moe-B-untied", "mamba-A", "qwen2-A"}) {
    SCOPED_TRACE(name);
    const auto model = load_kept(name);
    ASSERT_TRUE(model);
    DraftModel draft(*model);
    std::vector<int32_t> text = plain(1, 20).prompt;
    Companion companion;
    ASSERT_TRUE(draft.begin(companion));
    for (int round = 0; round < 30; ++round) {
      ASSERT_TRUE(draft.settle(companion, text));
      ASSERT_LT(static_cast<size_t>(companion.length()), text.size());
      const auto rest = std::span(text).subspan(static_cast<size_t>(companion.length()));
      const DraftModel::Part part{&companion, rest, 1 + round % 7};
      ASSERT_TRUE(draft.run_chains({&part, 1}));
      EXPECT_TRUE(companion.has_guessed_behind(text.size()));
      ASSERT_EQ(companion.guesses.size(), static_cast<size_t>(part.n_guesses));

      Companion fresh;
      ASSERT_TRUE(draft.begin(fresh));
      for (size_t at = 0; at + 1 < text.size(); ++at) {
        const DraftModel::Part one{&fresh, std::span(text).subspan(at, 1)};
        ASSERT_TRUE(draft.run({&one, 1}));
      }
      const DraftModel::Part whole{&fresh, std::span(text).last(1), part.n_guesses};
      ASSERT_TRUE(draft.run_chains({&whole, 1}));
      EXPECT_EQ(fresh.guesses, companion.guesses) << "round " << round;
      // Some of them are right, then another token comes.
      const auto n_right = static_cast<std::ptrdiff_t>(companion.guesses.size() * static_cast<size_t>(round % 4) / 3);
      text.insert(text.end(), companion.guesses.begin(), companion.guesses.begin() + n_right);
      if (round % 5 != 4 || n_right == 0) text.push_back((7 * round + 3) % 250);
    }
  }
}

TEST(DraftModelWithAdapters, GivesTheSameAnswers) {
  const auto folder = fixture::kept("qwen3_5-A");
  const auto scratch = fixture::scratch_folder();
  const auto model = load_kept("qwen3_5-A"), draft = load_kept("qwen3_5-A");
  ASSERT_TRUE(model && draft);
  const auto adapter = fixture::adapter_on(model->executable(), folder, 1, scratch);
  ASSERT_TRUE(adapter);
  Request r = plain(2);
  r.adapters = std::make_shared<AdapterSet>(AdapterSet{{{adapter, 1.0f}}});
  const auto ask = [&](Mode mode) {
    EngineConfig c;
    c.speculate = mode;
    c.draft_model = draft.get();
    Engine engine(*model, c);
    auto s = engine.submit(r);
    EXPECT_TRUE(s);
    return outcome_of(*s->events);
  };
  const Outcome expected = ask(Mode::off), found = ask(Mode::always);
  EXPECT_TRUE(same_outcome(found, expected));
  EXPECT_GT(found.end.usage.draft_tokens, 0);
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace chimere::engine
