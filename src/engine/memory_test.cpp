// memory_test.cpp  A request's memory in the engine: when it is asked, what it is told, and what it can not do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "engine/engine.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

// What happened to all copies of a memory.
struct Notes {
  std::mutex mutex;
  std::vector<Sampled> accepted;
  std::vector<bool> in_thought;
};

// Counts upwards from the last token with nearly all of the distribution; silent in thoughts, or always.
class Counter : public MemorySource {
 public:
  Counter(std::shared_ptr<Notes> notes, bool is_silent) : notes_(std::move(notes)), is_silent_(is_silent) {}
  std::unique_ptr<MemorySource> clone() const override { return std::make_unique<Counter>(*this); }
  std::span<const MemoryEntry> expect(std::span<const int32_t> tokens, bool in_thought) override {
    std::lock_guard lock(notes_->mutex);
    notes_->in_thought.push_back(in_thought);
    if (is_silent_ || in_thought) return {};
    entry_ = {(tokens.back() + 1) % 900, 1.0f, 0.99f};
    return {&entry_, 1};
  }
  void accept(const Sampled& token) override {
    std::lock_guard lock(notes_->mutex);
    notes_->accepted.push_back(token);
  }

 private:
  std::shared_ptr<Notes> notes_;
  bool is_silent_;
  MemoryEntry entry_{};
};

// Even tokens only.
class Even : public TokenConstraint {
 public:
  explicit Even(int n_vocab) : bits_((static_cast<size_t>(n_vocab) + 63) / 64, 0x5555555555555555ULL) {}
  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Even>(*this); }
  std::span<const uint64_t> mask() override { return bits_; }
  void accept(int32_t) override {}
  bool is_finished() const override { return false; }

 private:
  std::vector<uint64_t> bits_;
};

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false});
    ASSERT_TRUE(model_);
  }
  static Request request(std::shared_ptr<const MemorySource> memory, float temperature = 0) {
    Request r;
    r.prompt = {5, 6, 7, 8};
    r.sampling.temperature = temperature;
    r.sampling.seed = 3;
    r.max_tokens = 12;
    r.memory = std::move(memory);
    return r;
  }
  std::shared_ptr<const MemorySource> counter(bool is_silent = false) const {
    return std::make_shared<Counter>(notes_, is_silent);
  }
  std::vector<Sampled> run(Request r) {
    Engine engine(*model_, {});
    auto submitted = engine.submit(std::move(r));
    EXPECT_TRUE(submitted);
    std::vector<Sampled> tokens;
    while (submitted) {
      Event event = submitted->events->wait();
      if (event.is_terminal()) break;
      tokens.push_back(std::move(event.token));
    }
    return tokens;
  }
  static std::vector<int32_t> ids(const std::vector<Sampled>& tokens) {
    std::vector<int32_t> ids;
    for (const Sampled& token : tokens) ids.push_back(token.id);
    return ids;
  }

  std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
  std::unique_ptr<models::Model> model_;
};

TEST_F(MemoryTest, LeadsTheAnswerAndIsToldTheModelsOwnStats) {
  EXPECT_EQ(ids(run(request(counter()))), (std::vector<int32_t>{9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  ASSERT_EQ(notes_->accepted.size(), 12u);
  for (const Sampled& token : notes_->accepted) {
    EXPECT_LE(token.logprob, 0);
    EXPECT_GT(token.entropy, 0);
  }
}

TEST_F(MemoryTest, SaysNothingAndNothingChanges) {
  for (const float temperature : {0.0f, 1.0f}) {
    Request with = request(counter(true), temperature), without = request(nullptr, temperature);
    with.sampling.stats = without.sampling.stats = true;
    const std::vector<Sampled> a = run(with), b = run(without);
    EXPECT_EQ(ids(a), ids(b));
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) EXPECT_EQ(a[i].logprob, b[i].logprob);
  }
  EXPECT_TRUE(notes_->accepted.empty());
}

TEST_F(MemoryTest, NeverBreaksAMask) {
  for (const float temperature : {0.0f, 1.0f}) {
    Request r = request(counter(), temperature);
    r.constraint = std::make_shared<Even>(model_->n_vocab());
    for (const int32_t id : ids(run(r))) EXPECT_EQ(id % 2, 0);
  }
}

TEST_F(MemoryTest, KnowsWhetherAThoughtIsOpen) {
  Request r = request(counter());
  r.thought.open = true;
  r.thought.end_ids = {998};
  r.thought.close = {997, 998, 100};
  r.thought.budget = 4;
  for (int32_t id : {997, 998, 100}) r.sampling.logit_bias.push_back({id, -100.0f});  // only by force
  const std::vector<int32_t> answer = ids(run(r));
  ASSERT_EQ(answer.size(), 12u);
  EXPECT_EQ(std::vector<int32_t>(answer.begin() + 4, answer.end()),
            (std::vector<int32_t>{997, 998, 100, 101, 102, 103, 104, 105}));
  // Asked four times inside the thought and five times behind it, not for the forced tokens.
  EXPECT_EQ(std::count(notes_->in_thought.begin(), notes_->in_thought.end(), true), 4);
  EXPECT_EQ(std::count(notes_->in_thought.begin(), notes_->in_thought.end(), false), 5);
}

TEST_F(MemoryTest, BelongsToOneRequestOfABatchAndToItsForks) {
  const std::vector<int32_t> plain = ids(run(request(nullptr)));
  Engine engine(*model_, {});
  auto with = engine.submit(request(counter())), without = engine.submit(request(nullptr));
  ASSERT_TRUE(with && without);
  auto forked = engine.fork(with->id, request(nullptr).sampling);
  const auto collect = [](Channel<Event>& events) {
    std::vector<int32_t> out;
    for (Event e = events.wait(); !e.is_terminal(); e = events.wait()) out.push_back(e.token.id);
    return out;
  };
  EXPECT_EQ(collect(*without->events), plain);
  EXPECT_EQ(collect(*with->events).back(), 20);
  ASSERT_TRUE(forked);
  const std::vector<int32_t> rest = collect(*forked->events);
  EXPECT_TRUE(rest.empty() || rest.back() == 20);  // empty when the first had ended already
}

}  // namespace
}  // namespace chimere::engine
