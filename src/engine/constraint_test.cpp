// constraint_test.cpp  Where a request's constraint acts: on the answer alone, in forks too, and up to its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

constexpr int32_t kEnd = 999;

// The answer is 10 or 20, then 11 or 21, and so on; it may end from the third token on and must after `length`.
class Ladder : public TokenConstraint {
 public:
  Ladder(int n_vocab, int length) : bits_((static_cast<size_t>(n_vocab) + 63) / 64), length_(length) {}

  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Ladder>(*this); }
  std::span<const uint64_t> mask() override {
    std::fill(bits_.begin(), bits_.end(), 0);
    if (step_ < length_) {
      set(10 + step_);
      set(20 + step_);
    }
    if (step_ >= 3 || step_ >= length_) set(kEnd);
    return bits_;
  }
  void accept(int32_t id) override { step_ = id == 10 + step_ || id == 20 + step_ ? step_ + 1 : length_; }
  bool is_finished() const override { return step_ >= length_; }

 private:
  void set(int id) { bits_[id / 64] |= uint64_t{1} << (id % 64); }
  std::vector<uint64_t> bits_;
  int length_;
  int step_ = 0;
};

bool climbs(std::span<const int32_t> ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto step = static_cast<int32_t>(i);
    if (ids[i] != 10 + step && ids[i] != 20 + step) return false;
  }
  return true;
}

class ConstraintTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false});
    ASSERT_TRUE(model_);
  }
  Request constrained(int length, uint64_t seed) const {
    Request r;
    r.prompt = {5, 6, 7, 8};
    r.sampling.temperature = 1.0f;
    r.sampling.seed = seed;
    r.max_tokens = 40;
    r.stop_ids = {kEnd};
    r.constraint = std::make_shared<Ladder>(model_->n_vocab(), length);
    return r;
  }

  std::unique_ptr<models::Model> model_;
};

TEST_F(ConstraintTest, OnlyAllowedTokensAreDrawnAndTheLastOneEndsTheAnswer) {
  Engine engine(*model_, {});
  for (uint64_t seed = 0; seed < 8; ++seed) {
    auto submitted = engine.submit(constrained(6, seed));
    ASSERT_TRUE(submitted);
    const Answer all = collect(*submitted->events);
    const std::vector<int32_t>& ids = all.ids;
    EXPECT_GE(ids.size(), 3u);
    EXPECT_LE(ids.size(), 6u);
    EXPECT_TRUE(climbs(ids));
    EXPECT_EQ(all.end.kind, Event::Kind::finished);
    EXPECT_EQ(all.end.reason, FinishReason::stop);
  }
}

TEST_F(ConstraintTest, AThoughtAndItsCloseAreFree) {
  Engine engine(*model_, {});
  Request r = constrained(4, 1);
  r.thought.open = true;
  r.thought.end_ids = {998};
  r.thought.close = {997, 998, 996};
  r.thought.budget = 5;
  auto submitted = engine.submit(r);
  ASSERT_TRUE(submitted);
  const Answer all = collect(*submitted->events);
  const std::vector<int32_t>& ids = all.ids;
  const auto close = std::find(ids.begin(), ids.end(), 998);
  ASSERT_NE(close, ids.end());
  const bool by_budget = close != ids.begin() && close[-1] == 997;
  std::span<const int32_t> answer(ids);
  answer = answer.subspan(static_cast<size_t>(close - ids.begin()) + (by_budget ? 2 : 1));
  EXPECT_GE(answer.size(), 3u);
  EXPECT_TRUE(climbs(answer));
  EXPECT_EQ(all.end.reason, FinishReason::stop);
}

TEST_F(ConstraintTest, ATokenOfTheAnswerThatEndsAThoughtCounts) {
  Engine engine(*model_, {});
  Request r = constrained(4, 1);
  r.thought.open = true;
  for (int32_t id = 0; id < 1000; ++id) r.sampling.logit_bias.push_back({id, id == 10 ? 100.0f : 0.0f});
  r.thought.end_ids = {998, 10};
  r.thought.close = {998};
  auto submitted = engine.submit(r);
  ASSERT_TRUE(submitted);
  const Answer all = collect(*submitted->events);
  const std::vector<int32_t>& ids = all.ids;
  ASSERT_FALSE(ids.empty());
  EXPECT_EQ(ids[0], 10);
  EXPECT_TRUE(climbs(ids));
  EXPECT_GE(ids.size(), 3u);
}

TEST_F(ConstraintTest, AForkGoesOnByItself) {
  Engine engine(*model_, {});
  Gate gate;
  auto submitted = engine.submit(constrained(12, 3), gate.hook());
  ASSERT_TRUE(submitted);
  SamplingParams other;
  other.temperature = 1.0f;
  other.seed = 77;
  auto fork = engine.fork(submitted->id, other);
  ASSERT_TRUE(fork);
  gate.open();
  const Answer all = collect(*submitted->events);
  const std::vector<int32_t>& ids = all.ids;
  const Answer fork_all = collect(*fork->events);
  std::vector<int32_t> forked = fork_all.ids;
  EXPECT_TRUE(climbs(ids));
  ASSERT_EQ(fork_all.end.kind, Event::Kind::finished);
  // The fork was made when some tokens of the first were there; its own go on from them.
  ASSERT_LE(forked.size(), 12u);
  const auto shared = static_cast<size_t>(fork_all.end.usage.completion_tokens) - forked.size();
  std::vector<int32_t> whole(ids.begin(), ids.begin() + static_cast<int64_t>(std::min(shared, ids.size())));
  whole.insert(whole.end(), forked.begin(), forked.end());
  EXPECT_TRUE(climbs(whole));
}

// A ladder whose masks are made only when there is time without end, and then only when the gate is open.
class SlowLadder final : public Ladder {
 public:
  struct Shared {
    std::mutex mutex;
    std::condition_variable opened;
    bool is_open = false;
    int n_made = 0;
  };
  SlowLadder(int n_vocab, int length, std::shared_ptr<Shared> shared)
      : Ladder(n_vocab, length), shared_(std::move(shared)) {}

  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<SlowLadder>(*this); }
  void accept(int32_t id) override {
    Ladder::accept(id);
    is_known_ = false;
  }
  bool prepare(int64_t steps) override {
    if (is_known_ || steps < kWholeMask) return is_known_;
    std::unique_lock lock(shared_->mutex);
    shared_->opened.wait(lock, [&] { return shared_->is_open; });
    ++shared_->n_made;
    is_known_ = true;
    return true;
  }

 private:
  std::shared_ptr<Shared> shared_;
  bool is_known_ = true;  // the first one, when the request was prepared
};

TEST_F(ConstraintTest, AMaskThatTakesLongHoldsUpItsOwnAnswerAlone) {
  Engine engine(*model_, {});
  auto shared = std::make_shared<SlowLadder::Shared>();
  Request slow = constrained(6, 2);
  slow.constraint = std::make_shared<SlowLadder>(model_->n_vocab(), 6, shared);
  auto waiting = engine.submit(slow);
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->events->wait().kind, Event::Kind::token);
  // The second mask is under way and stays so; others come, are answered and go.
  for (uint64_t seed = 0; seed < 3; ++seed) {
    auto other = engine.submit(constrained(6, seed));
    ASSERT_TRUE(other);
    const Answer answer = collect(*other->events);
    EXPECT_EQ(answer.end.reason, FinishReason::stop);
    EXPECT_TRUE(climbs(answer.ids));
  }
  EXPECT_FALSE(waiting->events->take());
  // One that is cancelled meanwhile is gone at once.
  slow.sampling.seed = 3;
  auto cancelled = engine.submit(slow);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->events->wait().kind, Event::Kind::token);
  engine.cancel(cancelled->id);
  EXPECT_EQ(collect(*cancelled->events).end.reason, FinishReason::cancelled);
  {
    std::lock_guard lock(shared->mutex);
    shared->is_open = true;
  }
  shared->opened.notify_all();
  const Answer late = collect(*waiting->events);
  EXPECT_EQ(late.end.reason, FinishReason::stop);
  EXPECT_GE(late.ids.size() + 1, 3u);
  std::lock_guard lock(shared->mutex);
  EXPECT_GE(shared->n_made, 2);
}

// Steps 0 to `length`, each a token of its own; the shortest way is to go on, and from any step on 900 leads to the
// end.
class Shortcut final : public TokenConstraint {
 public:
  explicit Shortcut(int n_vocab) : bits_((static_cast<size_t>(n_vocab) + 63) / 64) {}

  std::unique_ptr<TokenConstraint> clone() const override { return std::make_unique<Shortcut>(*this); }
  std::span<const uint64_t> mask() override {
    std::fill(bits_.begin(), bits_.end(), 0);
    for (const int id : {10, kEnd}) bits_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
    return bits_;
  }
  void accept(int32_t id) override { is_closed_ = id == 900 ? n_open_-- <= 1 : false; }
  bool is_finished() const override { return is_closed_; }
  std::vector<int32_t> completion(Part part) override {
    return std::vector<int32_t>(static_cast<size_t>(part == Part::inner ? 1 : n_open_), 900);
  }
  bool can_end_after(int32_t, int32_t n_tokens) override { return n_tokens >= n_open_; }

 private:
  std::vector<uint64_t> bits_;
  int n_open_ = 5;
  bool is_closed_ = false;
};

TEST_F(ConstraintTest, ALimitThatIsNearCompletesTheAnswer) {
  Engine engine(*model_, {});
  for (const bool completes : {true, false}) {
    Request r = constrained(4, 1);
    r.constraint = std::make_shared<Shortcut>(model_->n_vocab());
    r.sampling.logit_bias = {{kEnd, -std::numeric_limits<float>::infinity()}};
    r.max_tokens = 40;
    r.max_answer_tokens = 12;
    r.completes = completes;
    auto submitted = engine.submit(r);
    ASSERT_TRUE(submitted);
    const Answer answer = collect(*submitted->events);
    std::vector<int32_t> expected(completes ? 7 : 12, 10);
    if (completes) expected.insert(expected.end(), 5, 900);
    EXPECT_EQ(answer.ids, expected);
    EXPECT_EQ(answer.end.reason, FinishReason::length);
  }
}

TEST_F(ConstraintTest, AStopInsideAFormClosesWhatIsOpen) {
  Engine engine(*model_, {});
  Request r = constrained(4, 1);
  r.constraint = std::make_shared<Shortcut>(model_->n_vocab());
  r.sampling.logit_bias = {{kEnd, 1000.0f}};
  auto submitted = engine.submit(r);
  ASSERT_TRUE(submitted);
  const Answer answer = collect(*submitted->events);
  EXPECT_EQ(answer.ids, std::vector<int32_t>(5, 900));
  EXPECT_EQ(answer.end.reason, FinishReason::stop);
}

TEST_F(ConstraintTest, LoopsInsideAFormAreBrokenAndThenItIsCompleted) {
  Engine engine(*model_, {});
  Request r = constrained(4, 1);
  r.constraint = std::make_shared<Shortcut>(model_->n_vocab());
  r.sampling.logit_bias = {{kEnd, -std::numeric_limits<float>::infinity()}};
  r.max_tokens = 400;
  r.thinking.loop = {.is_on = true, .tokens = 8, .penalty = 0};
  auto submitted = engine.submit(r);
  ASSERT_TRUE(submitted);
  const Answer answer = collect(*submitted->events);
  std::vector<int32_t> expected;
  for (int i = 0; i < 4; ++i) {
    expected.insert(expected.end(), 16, 10);
    expected.insert(expected.end(), i < 3 ? 1 : 2, 900);
  }
  EXPECT_EQ(answer.ids, expected);
  EXPECT_EQ(answer.end.reason, FinishReason::loop);
}

}  // namespace
}  // namespace chimere::engine
