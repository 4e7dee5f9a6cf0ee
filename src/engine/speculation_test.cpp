// speculation_test.cpp  Drafts change no answer: with every architecture and everything that acts on tokens, the same
// tokens, figures, ends and kept states as without, with guesses that are right at some positions and wrong at others.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "engine/drawing_device_for_test.h"
#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "engine/speculation_for_test.h"
#include "engram/text_ngrams.h"
#include "models/adapter_for_test.h"
#include "models/fixture_for_test.h"
#include "models/tiny_recurrent_for_test.h"
#include "speculative/engram_guesses.h"

namespace chimere::engine {
namespace {

using speculative::Guess;
using speculative::Mode;

// Knows the answer and says it, but for some positions, by `seed`: so drafts of every length fail at every place.
class Hints : public speculative::DraftSource {
 public:
  Hints(size_t n_prompt, std::vector<int32_t> answer, int n_vocab, uint64_t seed)
      : n_prompt_(n_prompt), answer_(std::move(answer)), n_vocab_(n_vocab), seed_(seed) {}
  std::unique_ptr<DraftSource> clone() const override { return std::make_unique<Hints>(*this); }
  void propose(std::span<const int32_t> tokens, int most, std::vector<Guess>& guesses) override {
    const size_t at = tokens.size() - n_prompt_;
    const auto n = static_cast<size_t>(std::min<int64_t>(most, static_cast<int64_t>(hash_mix(at ^ seed_) % 16)));
    for (size_t i = at; i < at + n; ++i) {
      const int32_t right = i < answer_.size() ? answer_[i] : 0;
      const bool is_wrong = hash_mix(i * 977 ^ seed_ << 32) % 5 == 0;
      guesses.push_back({is_wrong ? (right + 1) % n_vocab_ : right, speculative::kFirstOwn});
    }
  }

 private:
  size_t n_prompt_;
  std::vector<int32_t> answer_;
  int n_vocab_;
  uint64_t seed_;
};

class Speculation : public testing::TestWithParam<std::string>, protected SpeculationRuns {
 protected:
  void SetUp() override { load(fixture::kept(GetParam())); }
  void load(const std::filesystem::path& folder) {
    model_ = fixture::load(folder, models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
    ASSERT_TRUE(model_);
  }

  Outcome undrafted(const Request& request) {
    Engine engine(*model_, config(Mode::off));
    return ask(engine, request);
  }
  Request hinted(Request r, const Outcome& expected, uint64_t seed) const {
    r.drafts = std::make_shared<Hints>(r.prompt.size(), expected.ids(), model_->n_vocab(), seed);
    return r;
  }
  // Tables with the text of the answer, in which every twelfth token is another one.
  Request remembered(Request r, const Outcome& expected) const {
    std::vector<int32_t> text(r.prompt.end() - 8, r.prompt.end());
    for (const int32_t id : expected.ids()) text.push_back(text.size() % 12 == 0 ? (id + 1) % model_->n_vocab() : id);
    auto table = std::make_shared<engram::TextNgrams>();
    table->add(text, 1);
    r.drafts = std::make_shared<speculative::EngramGuesses>(speculative::EngramGuesses::Tables{table});
    return r;
  }
  std::vector<std::pair<Named, Outcome>> expected() { return undrafted_cases(*model_); }

  std::unique_ptr<models::Model> model_;
};

TEST_P(Speculation, AloneItGivesTheSameAnswers) {
  int64_t n_drafted = 0, n_accepted = 0;
  for (const auto& [c, outcome] : expected()) {
    SCOPED_TRACE(c.name);
    for (const int draft_max : {15, 3, 1}) {
      Engine engine(*model_, config(Mode::always, draft_max));
      const Outcome found = ask(engine, hinted(c.request, outcome, 5));
      EXPECT_TRUE(same_outcome(found, outcome)) << draft_max;
      const Usage& u = found.end.usage;
      EXPECT_GT(u.draft_tokens_accepted, 0);
      if (!c.request.constraint) {  // which cuts wrong guesses off
        EXPECT_LT(u.draft_tokens_accepted, u.draft_tokens);
      }
      EXPECT_LT(u.draft_tokens_accepted, u.completion_tokens);
      n_drafted += u.draft_tokens;
      n_accepted += u.draft_tokens_accepted;
      ASSERT_TRUE(engine.score({1, 2}));  // behind the step, so what it did is published
      const EngineStats stats = engine.stats();
      EXPECT_GT(stats.drafts, 0u);
      EXPECT_EQ(stats.drafts, static_cast<uint64_t>(u.drafts));
      EXPECT_EQ(stats.draft_tokens, static_cast<uint64_t>(u.draft_tokens));
      EXPECT_EQ(stats.draft_tokens_accepted, static_cast<uint64_t>(u.draft_tokens_accepted));
      EXPECT_EQ(stats.generated_tokens, outcome.tokens.size());
      EXPECT_LT(stats.steps, outcome.tokens.size() + 4) << "some tokens cost no step";
    }
  }
  EXPECT_GT(n_accepted, n_drafted / 4);
}

// What tables know of the answer is guessed, where they are right and where they are not.
TEST_P(Speculation, EngramTablesGiveTheSameAnswers) {
  uint64_t n_tried = 0, n_taken = 0;
  for (const auto& [c, outcome] : expected()) {
    SCOPED_TRACE(c.name);
    for (const Mode mode : {Mode::always, Mode::engram, Mode::automatic}) {
      Engine engine(*model_, config(mode));
      EXPECT_TRUE(same_outcome(ask(engine, remembered(c.request, outcome)), outcome)) << speculative::name(mode);
      ASSERT_TRUE(engine.score({1, 2}));
      const auto total = engine.stats().guesses.total(speculative::Source::engram);
      n_tried += total.tried;
      n_taken += total.taken;
      if (mode != Mode::engram) continue;
      EXPECT_EQ(engine.stats().guesses.total(speculative::Source::text).tried, 0u);
    }
  }
  EXPECT_GT(n_taken, 50u);
  EXPECT_LT(n_taken, n_tried) << "some fail";
}

TEST_P(Speculation, TogetherTheyGiveTheSameAnswers) {
  const auto all = expected();
  for (const Mode mode : {Mode::always, Mode::automatic, Mode::ngram, Mode::engram}) {
    SCOPED_TRACE(speculative::name(mode));
    EngineConfig c = config(mode);
    c.max_running = 8;
    Engine engine(*model_, c);
    const std::vector<Outcome> found = ask_together(engine, all, [&](Request r, size_t i) {
      r = i % 2 == 0 ? hinted(std::move(r), all[i].second, i) : remembered(std::move(r), all[i].second);
      // Some say for themselves whether they are drafted for.
      if (i % 4 == 3) r.speculate = i % 8 == 3 ? Mode::off : Mode::always;
      return r;
    });
    for (size_t i = 3; i < found.size(); i += 8) EXPECT_EQ(found[i].end.usage.draft_tokens, 0);
  }
}

// Without a source of its own: a text that repeats itself is guessed from itself.
TEST_P(Speculation, RepeatsAreFoundInTheText) {
  Request r = plain(3, 30, 150);
  r.constraint = std::make_shared<Path>(model_->n_vocab(), 150, false);
  const Outcome expected = undrafted(r);
  Engine engine(*model_, config(Mode::always));
  const Outcome found = ask(engine, r);
  EXPECT_TRUE(same_outcome(found, expected));
  EXPECT_GT(found.end.usage.draft_tokens_accepted, 40);
}

TEST_P(Speculation, ForksGiveTheSameAnswers) {
  Request r = plain(4);
  r.sampling.temperature = 1.0f;
  r.sampling.seed = 3;
  const auto choices = [&](Mode mode, const Request& request) {
    Engine engine(*model_, config(mode));
    auto submitted = engine.submit_choices(request, std::vector<std::function<void()>>(3));
    EXPECT_TRUE(submitted);
    std::vector<Outcome> all;
    for (const Submitted& s : *submitted) all.push_back(outcome_of(*s.events));
    return all;
  };
  // One that begins in the middle of an answer, behind its first event.
  const auto late = [&](Mode mode, const Request& request) {
    Engine engine(*model_, config(mode));
    Gate gate;
    auto first = engine.submit(request, gate.hook());
    EXPECT_TRUE(first);
    const Event event = first->events->wait();
    SamplingParams sampling = request.sampling;
    sampling.choice = 5;
    auto fork = engine.fork(first->id, sampling);
    EXPECT_TRUE(fork);
    gate.open();
    outcome_of(*first->events);
    return outcome_of(*fork->events);
  };
  const std::vector<Outcome> expected = choices(Mode::off, r);
  const Outcome forked = late(Mode::off, r);
  const std::vector<Outcome> found = choices(Mode::always, hinted(r, expected[1], 2));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_outcome(found[i], expected[i])) << "choice " << i;
  EXPECT_TRUE(same_outcome(late(Mode::always, hinted(r, forked, 2)), forked));
}

// What is kept of an answer, inside it and at its end, is kept at the same positions: the next turns find the same and
// go on the same way.
TEST_P(Speculation, NextTurnsFindTheSameStates) {
  Request r = plain(5, 40, 300);
  r.sampling.temperature = 0.8f;
  r.sampling.seed = 1;
  std::vector<std::vector<Outcome>> outcomes;
  std::vector<int32_t> stop;
  for (const Mode mode : {Mode::off, Mode::always}) {
    Engine engine(*model_, config(mode));
    Request first = r;
    if (!outcomes.empty()) first = hinted(r, outcomes[0][0], 9);
    outcomes.push_back({ask(engine, first)});
    std::vector<Outcome>& all = outcomes.back();
    const std::vector<int32_t> ids = all[0].ids();
    ASSERT_EQ(ids.size(), 300u);
    // The whole answer, a part of it with another end, and an answer that a stop ended in the middle of a draft.
    for (const size_t n : {size_t{300}, size_t{280}, size_t{100}}) {
      Request next = r;
      next.prompt.insert(next.prompt.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
      for (int i = 0; i < 9; ++i) next.prompt.push_back(200 + i);
      next.max_tokens = 20;
      if (outcomes.size() > 1) next = hinted(next, outcomes[0][all.size()], n);
      all.push_back(ask(engine, next));
    }
    if (stop.empty()) stop = {ids[50]};
    // Where the answer stops, the guesses go on.
    for (uint64_t seed = 0; seed < 6; ++seed) {
      Request stopped = r;
      stopped.stop_ids = stop;
      stopped.cache_scope = 7 + seed;
      Request next = stopped;
      if (outcomes.size() > 1) stopped = hinted(stopped, outcomes[0][all.size()], seed);
      all.push_back(ask(engine, stopped));
      const auto n = static_cast<std::ptrdiff_t>(all.back().tokens.size());
      next.prompt.insert(next.prompt.end(), ids.begin(), ids.begin() + n);
      next.prompt.insert(next.prompt.end(), {200, 201, 202});
      next.max_tokens = 20;
      all.push_back(ask(engine, next));
    }
  }
  ASSERT_EQ(outcomes[0].size(), outcomes[1].size());
  for (size_t i = 0; i < outcomes[0].size(); ++i) {
    EXPECT_TRUE(same_outcome(outcomes[1][i], outcomes[0][i])) << "turn " << i;
  }
  EXPECT_GT(outcomes[0][1].end.usage.cached_tokens, 300) << "the turns were made for this";
  EXPECT_GT(outcomes[0][2].end.usage.cached_tokens, 250);
}

// A cancelled and a forced one, between steps: nothing of a draft is left.
TEST_P(Speculation, UpdatesComeBetweenDrafts) {
  const auto forced = [&](Mode mode, const Outcome* expected) {
    Engine engine(*model_, config(mode));
    Gate gate;
    Request r = plain(6);
    if (expected) r = hinted(r, *expected, 3);
    auto s = engine.submit(r, gate.hook());
    EXPECT_TRUE(s);
    const Event first = s->events->wait();
    engine.update(s->id, {.force = {11, 12, 13, 14, 15}});
    gate.open();
    return outcome_of(*s->events);
  };
  const Outcome off = forced(Mode::off, nullptr);
  const std::vector<int32_t> ids = off.ids();
  EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.begin() + 5), (std::vector<int32_t>{11, 12, 13, 14, 15}));
  Outcome whole = off;
  Sampled first;
  first.id = 0;
  whole.tokens.insert(whole.tokens.begin(), first);
  const Outcome found = forced(Mode::always, &whole);
  EXPECT_TRUE(same_outcome(found, off));
  EXPECT_GE(found.end.usage.draft_tokens_accepted, 4) << "what is forced is guessed";
}

// Where there is no room for a second state, nothing is drafted and nothing fails.
TEST_P(Speculation, GivesWayToMemory) {
  const Request r = plain(7);
  const Outcome expected = undrafted(r);
  const StateLayout& layout = model_->executable().layout();
  EngineConfig c = config(Mode::always);
  c.cache.ram_bytes = 0;
  c.state_bytes = layout.recurrent_floats() * sizeof(float) + 2 * layout.page_bytes();
  Engine engine(*model_, c);
  const Outcome found = ask(engine, hinted(r, expected, 5));
  EXPECT_TRUE(same_outcome(found, expected));
  if (layout.recurrent_floats() > 0) {
    EXPECT_EQ(found.end.usage.draft_tokens, 0);
  }
}

// Every architecture with a state that is no list of positions.
class RecurrentSpeculation : public Speculation {
 protected:
  void SetUp() override { load(fixture::recurrent_folder(GetParam())); }
};

TEST_P(RecurrentSpeculation, GivesTheSameAnswersAndNextTurns) {
  const auto all = expected();
  EngineConfig c = config(Mode::always);
  c.max_running = 4;
  Engine engine(*model_, c);
  const std::vector<Outcome> found =
      ask_together(engine, all, [&](Request r, size_t i) { return hinted(std::move(r), all[i].second, i); });
  int n_drafted = 0, n_accepted = 0;
  for (const Outcome& outcome : found) {
    n_drafted += outcome.end.usage.draft_tokens;
    n_accepted += outcome.end.usage.draft_tokens_accepted;
  }
  EXPECT_GT(n_accepted, 100);
  EXPECT_LT(n_accepted, n_drafted) << "some fail";
  // What is kept of an answer that was drafted for is what the next turn finds.
  Request next = all[0].first.request;
  for (const int32_t id : all[0].second.ids()) next.prompt.push_back(id);
  next.prompt.insert(next.prompt.end(), {3, 1, 4});
  Engine plain_engine(*model_, config(Mode::off));
  ask(plain_engine, all[0].first.request);
  EXPECT_TRUE(same_outcome(ask(engine, next), ask(plain_engine, next)));
}

INSTANTIATE_TEST_SUITE_P(Models, RecurrentSpeculation, testing::ValuesIn(fixture::recurrent_models()),
                         fixture::recurrent_name);

// Where the device draws, the rows of drafts are drawn there, too, as long as nothing but the guesses decides what a row
// is given; else their logits come back. Both give the answers of the host without drafts.
class DeviceSpeculation : public Speculation {
 protected:
  void SetUp() override {
    Speculation::SetUp();
    LoadOptions options;
    options.kv = {DType::F16, DType::F16, false};
    options.n_threads = 1;
    options.max_rows = 160;
    const std::string path = (fixture::kept(GetParam()) / "model.gguf").string();
    auto device = models::Model::load(path, models::BackendKind::cpu, options, DrawingDevice::compile);
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
  }

  std::unique_ptr<models::Model> device_;
};

TEST_P(DeviceSpeculation, AloneItGivesTheSameAnswers) {
  for (const auto& [c, outcome] : expected()) {
    SCOPED_TRACE(c.name);
    for (const int draft_max : {15, 3, 1}) {
      const int64_t n_given = DrawingDevice::n_rows_given;
      Engine engine(*device_, config(Mode::always, draft_max));
      const Outcome found = ask(engine, hinted(c.request, outcome, 5));
      EXPECT_TRUE(same_outcome(found, outcome)) << draft_max;
      EXPECT_GT(found.end.usage.draft_tokens_accepted, 0);
      const bool follows_from_tokens = c.request.constraint || c.request.memory;
      if (!follows_from_tokens && !c.request.thought.open) {
        EXPECT_EQ(DrawingDevice::n_rows_given, n_given);
      }
    }
  }
}

TEST_P(DeviceSpeculation, TogetherTheyGiveTheSameAnswers) {
  const auto all = expected();
  for (const Mode mode : {Mode::always, Mode::automatic, Mode::ngram}) {
    SCOPED_TRACE(speculative::name(mode));
    EngineConfig c = config(mode);
    c.max_running = 4;
    Engine engine(*device_, c);
    ask_together(engine, all, [&](Request r, size_t i) { return hinted(std::move(r), all[i].second, i); });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceSpeculation, testing::Values("qwen3_5_moe-B-untied", "nemotron_h-moe-L"),
                         [](const auto& info) { return "m" + std::to_string(info.index); });

INSTANTIATE_TEST_SUITE_P(Models, Speculation,
                         testing::Values("bamba-A", "gpt_oss-A", "llama-spm", "mamba-A", "nemotron_h-moe-L", "qwen2-A",
                                         "qwen3_5-A", "qwen3_5_moe-B-untied", "smollm3-A"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

TEST(SpeculationWithAdapters, GivesTheSameAnswers) {
  const auto folder = fixture::kept("qwen3_5-A");
  const auto scratch = fixture::scratch_folder();
  const auto model = fixture::load(folder, models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
  ASSERT_TRUE(model);
  const auto adapter = fixture::adapter_on(model->executable(), folder, 1, scratch);
  ASSERT_TRUE(adapter);
  Request r = plain(2);
  const auto ask = [&](Mode mode, const Request& request) {
    EngineConfig c;
    c.speculate = mode;
    Engine engine(*model, c);
    auto s = engine.submit(request);
    EXPECT_TRUE(s);
    return outcome_of(*s->events);
  };
  const Outcome without = ask(Mode::off, r);
  r.adapters = std::make_shared<AdapterSet>(AdapterSet{{{adapter, 1.0f}}});
  const Outcome expected = ask(Mode::off, r);
  EXPECT_NE(expected.ids(), without.ids());
  r.drafts = std::make_shared<Hints>(r.prompt.size(), expected.ids(), model->n_vocab(), 5);
  const Outcome found = ask(Mode::always, r);
  EXPECT_TRUE(same_outcome(found, expected));
  EXPECT_GT(found.end.usage.draft_tokens_accepted, 0);
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace chimere::engine
