// speculation_for_test.h  Requests with everything that acts on tokens, and what came of them: what drafts must not change.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "engine/request.h"

namespace chimere::engine {

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

inline Outcome outcome_of(Channel<Event>& events) {
  Outcome o;
  int32_t n_guessed = 0;
  while (true) {
    Event e = events.wait();
    n_guessed += e.was_guessed ? 1 : 0;
    if (e.is_terminal()) {
      EXPECT_EQ(n_guessed, e.usage.draft_tokens_accepted);
      o.end = std::move(e);
      return o;
    }
    o.tokens.push_back(std::move(e.token));
  }
}

inline testing::AssertionResult same_outcome(const Outcome& a, const Outcome& b) {
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

inline Request plain(int seed = 1, int n_prompt = 24, int max_tokens = 60) {
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
inline std::vector<Named> cases(int n_vocab) {
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

// What the fixtures of all sources of guesses do.
struct SpeculationRuns {
  static EngineConfig config(speculative::Mode mode, int draft_max = 15) {
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
  // Asks for the cases at once, changed by `change(request, i)`, and compares what comes of them.
  template <class Change>
  static std::vector<Outcome> ask_together(Engine& engine, const std::vector<std::pair<Named, Outcome>>& cases,
                                           Change&& change) {
    std::vector<Submitted> submitted;
    for (size_t i = 0; i < cases.size(); ++i) {
      auto s = engine.submit(change(cases[i].first.request, i));
      EXPECT_TRUE(s) << s.error().message;
      if (s) submitted.push_back(*s);
    }
    std::vector<Outcome> found;
    for (size_t i = 0; i < submitted.size(); ++i) {
      found.push_back(outcome_of(*submitted[i].events));
      EXPECT_TRUE(same_outcome(found[i], cases[i].second)) << cases[i].first.name;
    }
    return found;
  }
  // The cases, with what they give without drafts. A stop is a token of the answer.
  static std::vector<std::pair<Named, Outcome>> undrafted_cases(models::Model& model) {
    std::vector<std::pair<Named, Outcome>> all;
    Engine engine(model, config(speculative::Mode::off));
    for (Named& c : cases(model.n_vocab())) {
      if (c.name == "stops") c.request.stop_ids = {ask(engine, c.request).ids()[17]};
      Outcome outcome = ask(engine, c.request);
      EXPECT_EQ(outcome.end.kind, Event::Kind::finished);
      EXPECT_EQ(outcome.end.usage.draft_tokens, 0);
      all.emplace_back(std::move(c), std::move(outcome));
    }
    return all;
  }
};

}  // namespace chimere::engine
