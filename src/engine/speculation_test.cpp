// speculation_test.cpp  Drafts change no answer: with every architecture and everything that acts on tokens, the same
// tokens, figures, ends and kept states as without, with guesses that are right at some positions and wrong at others.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/hash.h"
#include "engine/draft_pass.h"
#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/adapter_for_test.h"
#include "models/draft_block_for_test.h"
#include "models/fixture_for_test.h"
#include "models/runs_for_test.h"

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

// Three tokens may follow at every place but each fourth, where one alone may. `is_slow`: one in three times that a mask
// is asked for, it takes long.
class Path : public TokenConstraint {
 public:
  Path(int n_vocab, int length, bool is_slow)
      : bits_((static_cast<size_t>(n_vocab) + 63) / 64), length_(length), is_slow_(is_slow) {}
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Path>(*this); }
  bool prepare(int64_t steps) override {
    if (steps == kWholeMask || !is_slow_) ready_ = step_;
    if (ready_ != step_ && ++*n_asked_ % 3 != 0) ready_ = step_;
    return ready_ == step_;
  }
  std::span<const uint64_t> mask() override {
    std::fill(bits_.begin(), bits_.end(), 0);
    for (int i = 0; i < (step_ % 4 == 3 ? 1 : 3); ++i) set(10 + 7 * (step_ % 16) + i);
    return bits_;
  }
  void accept(int32_t) override { ++step_; }
  bool is_finished() const override { return step_ >= length_; }

 private:
  void set(int id) { bits_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  std::vector<uint64_t> bits_;
  int length_;
  bool is_slow_;
  int step_ = 0, ready_ = -1;
  std::shared_ptr<int> n_asked_ = std::make_shared<int>(0);  // on the engine's thread alone
};

// A memory that remembers: what it expects follows from all that it was told.
class Drift : public MemorySource {
 public:
  std::unique_ptr<MemorySource> clone() const override { return std::make_unique<Drift>(*this); }
  std::span<const MemoryEntry> expect(std::span<const int32_t> tokens, bool in_thought) override {
    if (in_thought || tokens.size() % 3 == 0) return {};
    entry_ = {static_cast<int32_t>(hash_mix(told_ ^ static_cast<uint64_t>(tokens.back())) % 250), 0.5f, 0.8f};
    return {&entry_, 1};
  }
  void accept(const Sampled& token) override {
    told_ = hash_mix(told_ ^ static_cast<uint64_t>(token.id) ^ std::bit_cast<uint32_t>(token.logprob));
  }

 private:
  MemoryEntry entry_{};
  uint64_t told_ = 1;
};

struct Outcome {
  std::vector<Sampled> tokens;
  Event end;

  std::vector<int32_t> ids() const {
    std::vector<int32_t> all;
    for (const Sampled& t : tokens) all.push_back(t.id);
    return all;
  }
};

Outcome outcome_of(Channel<Event>& events) {
  Outcome o;
  while (true) {
    Event e = events.wait();
    if (e.is_terminal()) {
      o.end = std::move(e);
      return o;
    }
    o.tokens.push_back(std::move(e.token));
  }
}

testing::AssertionResult same_outcome(const Outcome& a, const Outcome& b) {
  if (a.ids() != b.ids()) return testing::AssertionFailure() << "other tokens";
  const auto bits = [](float f) { return std::bit_cast<uint32_t>(f); };
  for (size_t i = 0; i < a.tokens.size(); ++i) {
    const Sampled &s = a.tokens[i], &t = b.tokens[i];
    const bool same = bits(s.logprob) == bits(t.logprob) && bits(s.entropy) == bits(t.entropy) &&
                      bits(s.max_prob) == bits(t.max_prob) && s.top.size() == t.top.size();
    if (!same) return testing::AssertionFailure() << "other figures of token " << i;
  }
  const Usage &u = a.end.usage, &v = b.end.usage;
  if (a.end.kind != b.end.kind || a.end.reason != b.end.reason) return testing::AssertionFailure() << "another end";
  if (u.completion_tokens != v.completion_tokens || u.reasoning_tokens != v.reasoning_tokens ||
      u.prompt_tokens != v.prompt_tokens || u.cached_tokens != v.cached_tokens) {
    return testing::AssertionFailure() << "another usage";
  }
  return testing::AssertionSuccess();
}

Request plain(int seed = 1, int n_prompt = 24, int max_tokens = 60) {
  Request r;
  for (int i = 0; i < n_prompt; ++i) r.prompt.push_back((seed * 7919 + i % 11 * 104729) % 250);
  r.sampling.temperature = 0;
  r.max_tokens = max_tokens;
  return r;
}

struct Named {
  std::string name;
  Request request;
};

// Everything that acts on tokens.
std::vector<Named> cases(int n_vocab) {
  std::vector<Named> all;
  const auto add = [&](const std::string& name) -> Request& {
    const int i = static_cast<int>(all.size());
    all.push_back({name, plain(i + 1, 20 + i)});
    return all.back().request;
  };
  const auto sampled = [](Request& r, uint64_t seed) {
    r.sampling.temperature = 0.9f;
    r.sampling.seed = seed;
  };
  add("greedy");
  sampled(add("sampled"), 7);
  {
    Request& r = add("penalties");
    sampled(r, 8);
    r.sampling.repetition_penalty = 1.3f;
    r.sampling.presence_penalty = 0.4f;
    r.sampling.frequency_penalty = 0.3f;
    r.sampling.dry_multiplier = 0.8f;
    r.sampling.top_k = 40;
    r.sampling.top_p = 0.95f;
  }
  {
    Request& r = add("figures");
    sampled(r, 9);
    r.sampling.top_logprobs = 3;
    r.token_stats = true;
  }
  for (const bool is_slow : {false, true}) {
    Request& r = add(is_slow ? "slow form" : "form");
    sampled(r, 10);
    r.constraint = std::make_shared<Path>(n_vocab, 37, is_slow);
  }
  {
    Request& r = add("thought");
    sampled(r, 11);
    r.thought = {.open = true, .end_ids = {8}, .close = {7, 8, 9}, .budget = 21};
    r.thinking.warning = {40, 41, 42};
    r.thinking.warn_before = 5;
    r.thinking.window = 4;
    r.thinking.max_entropy = std::log(static_cast<float>(n_vocab));
  }
  {
    Request& r = add("thought and form");
    sampled(r, 12);
    r.thought = {.open = true, .end_ids = {8}, .close = {7, 8, 9}, .budget = 12};
    r.constraint = std::make_shared<Path>(n_vocab, 30, false);
  }
  {
    Request& r = add("memory");
    sampled(r, 13);
    r.memory = std::make_shared<Drift>();
  }
  {
    Request& r = add("loops");
    r.thinking.loop.is_on = true;
    r.max_tokens = 200;
  }
  sampled(add("stops"), 14);
  return all;
}

class Speculation : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept(GetParam()), models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
    ASSERT_TRUE(model_);
  }

  static EngineConfig config(Mode mode, int draft_max = 15) {
    EngineConfig c;
    c.prefill_tokens = 64;
    c.speculate = mode;
    c.draft_max = draft_max;
    return c;
  }
  static Outcome ask(Engine& engine, const Request& request) {
    auto s = engine.submit(request);
    EXPECT_TRUE(s) << s.error().message;
    return outcome_of(*s->events);
  }
  Outcome undrafted(const Request& request) {
    Engine engine(*model_, config(Mode::off));
    return ask(engine, request);
  }
  Request hinted(Request r, const Outcome& expected, uint64_t seed) const {
    r.drafts = std::make_shared<Hints>(r.prompt.size(), expected.ids(), model_->n_vocab(), seed);
    return r;
  }
  // The cases, with what they give without drafts. A stop is a token of the answer.
  std::vector<std::pair<Named, Outcome>> expected() {
    std::vector<std::pair<Named, Outcome>> all;
    Engine engine(*model_, config(Mode::off));
    for (Named& c : cases(model_->n_vocab())) {
      if (c.name == "stops") c.request.stop_ids = {ask(engine, c.request).ids()[17]};
      Outcome outcome = ask(engine, c.request);
      EXPECT_EQ(outcome.end.kind, Event::Kind::finished);
      EXPECT_EQ(outcome.end.usage.draft_tokens, 0);
      all.emplace_back(std::move(c), std::move(outcome));
    }
    return all;
  }

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
      EXPECT_EQ(stats.draft_tokens, static_cast<uint64_t>(u.draft_tokens));
      EXPECT_EQ(stats.draft_tokens_accepted, static_cast<uint64_t>(u.draft_tokens_accepted));
      EXPECT_EQ(stats.generated_tokens, outcome.tokens.size());
      EXPECT_LT(stats.steps, outcome.tokens.size() + 4) << "some tokens cost no step";
    }
  }
  EXPECT_GT(n_accepted, n_drafted / 4);
}

TEST_P(Speculation, TogetherTheyGiveTheSameAnswers) {
  const auto all = expected();
  for (const Mode mode : {Mode::always, Mode::automatic, Mode::ngram}) {
    SCOPED_TRACE(speculative::name(mode));
    EngineConfig c = config(mode);
    c.max_running = 4;
    Engine engine(*model_, c);
    std::vector<Submitted> submitted;
    for (size_t i = 0; i < all.size(); ++i) {
      Request r = hinted(all[i].first.request, all[i].second, i);
      // Some say for themselves whether they are drafted for.
      if (i % 4 == 3) r.speculate = i % 8 == 3 ? Mode::off : Mode::always;
      auto s = engine.submit(r);
      ASSERT_TRUE(s) << s.error().message;
      submitted.push_back(*s);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const Outcome found = outcome_of(*submitted[i].events);
      EXPECT_TRUE(same_outcome(found, all[i].second)) << all[i].first.name;
      if (i % 8 == 3) {
        EXPECT_EQ(found.end.usage.draft_tokens, 0);
      }
    }
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

// With the model's own draft pass as the source, of a block with random weights and of a trained one.
class DraftPassSpeculation : public testing::TestWithParam<bool> {
 protected:
  static bool is_trained() { return GetParam(); }
  void SetUp() override {
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
    for (const bool drafts : {false, true}) {
      options.drafts = drafts;
      auto model = models::Model::load(path, models::BackendKind::cpu, options);
      ASSERT_TRUE(model) << model.error().message;
      ASSERT_EQ((*model)->has_drafts(), drafts) << (*model)->draft_problem();
      (drafts ? drafting_ : plain_) = std::move(*model);
    }
  }
  void TearDown() override { std::filesystem::remove_all(scratch_); }

  static EngineConfig config(Mode mode, int draft_max = 15) {
    EngineConfig c;
    c.prefill_tokens = 64;
    c.speculate = mode;
    c.draft_max = draft_max;
    return c;
  }
  static Outcome ask(Engine& engine, const Request& request) {
    auto s = engine.submit(request);
    EXPECT_TRUE(s) << s.error().message;
    return outcome_of(*s->events);
  }
  // What the cases give on a model without the block, without drafts.
  std::vector<std::pair<Named, Outcome>> expected() {
    std::vector<std::pair<Named, Outcome>> all;
    Engine engine(*plain_, config(Mode::off));
    for (Named& c : cases(plain_->n_vocab())) {
      if (c.name == "stops") c.request.stop_ids = {ask(engine, c.request).ids()[17]};
      Outcome outcome = ask(engine, c.request);
      all.emplace_back(std::move(c), std::move(outcome));
    }
    return all;
  }

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
      n_drafted += stats.draft_pass_tokens;
      n_accepted += stats.draft_pass_tokens_accepted;
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
  for (const Mode mode : {Mode::always, Mode::mtp, Mode::automatic, Mode::off}) {
    SCOPED_TRACE(speculative::name(mode));
    EngineConfig c = config(mode);
    c.max_running = 4;
    Engine engine(*drafting_, c);
    std::vector<Submitted> submitted;
    for (size_t i = 0; i < all.size(); ++i) {
      Request r = all[i].first.request;
      // Some say for themselves what is tried.
      if (i % 4 == 3) r.speculate = i % 8 == 3 ? Mode::off : Mode::mtp;
      auto s = engine.submit(r);
      ASSERT_TRUE(s) << s.error().message;
      submitted.push_back(*s);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(same_outcome(outcome_of(*submitted[i].events), all[i].second)) << all[i].first.name;
    }
    ASSERT_TRUE(engine.score({1, 2}));
    const EngineStats stats = engine.stats();
    if (mode == Mode::always) {
      EXPECT_LT(stats.draft_passes, stats.draft_pass_tokens) << "they share passes";
    }
  }
}

// The engine guesses what the pass says that saw the whole text at once, with the trunk's states alone: nothing of what
// was guessed before, taken back or caught up with stands in its way.
TEST_P(DraftPassSpeculation, GuessesAreThoseOfAPassOverTheWholeText) {
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
  // The bits of a row of many differ from those of one alone, and near ties may with them.
  EXPECT_NEAR(static_cast<double>(stats.draft_pass_tokens), static_cast<double>(n_drafted), 3);
  EXPECT_NEAR(static_cast<double>(stats.draft_pass_tokens_accepted), static_cast<double>(n_right), 2);
  EXPECT_GT(n_drafted, 20u);
  if (is_trained()) {
    EXPECT_GT(n_right, 5u);
  }
  std::printf("    %zu of %zu guesses right\n", n_right, n_drafted);
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

INSTANTIATE_TEST_SUITE_P(Blocks, DraftPassSpeculation, testing::Bool(),
                         [](const auto& info) { return info.param ? "trained" : "random"; });

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
