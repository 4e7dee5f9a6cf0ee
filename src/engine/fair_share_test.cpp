// fair_share_test.cpp  Owners of requests have equal shares of the engine: places in the queue, and steps. What is
// counted here is steps, never time.
#include "engine/fair_share.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <mutex>

#include "engine/engine.h"
#include "engine/engine_for_test.h"
#include "models/fixture_for_test.h"

namespace chimere::engine {
namespace {

constexpr OwnerId kAnn = 1, kBob = 2, kCy = 3;

Request asked_by(OwnerId owner, int seed, int n_prompt, int max_tokens) {
  Request r;
  r.owner = r.cache_scope = owner;
  for (int i = 0; i < n_prompt; ++i) r.prompt.push_back((seed * 7919 + i * 104729) % 1000);
  r.sampling.temperature = 0;
  r.max_tokens = max_tokens;
  return r;
}

class Shares : public testing::Test {
 protected:
  void SetUp() override {
    model_ =
        fixture::load(fixture::kept("qwen3_5-A"), models::BackendKind::cpu, false, {DType::F16, DType::F16, false}, 1);
    ASSERT_TRUE(model_);
  }
  static EngineConfig config(int max_running) {
    EngineConfig c;
    c.max_running = max_running;
    c.prefill_tokens = 64;
    return c;
  }
  // The engine's statistics at the first and at the last event of a request: it goes on before a test looks.
  struct Noted {
    std::atomic<uint64_t> first{0}, last{0};
    std::function<void()> hook(const Engine& engine, uint64_t EngineStats::*count = &EngineStats::steps) {
      return [this, &engine, count] {
        last = engine.stats().*count;
        if (first == 0) first = last + 1;
      };
    }
  };
  std::unique_ptr<models::Model> model_;
};

TEST(FairShareTest, TheOneForWhomLeastWasDoneIsFirst) {
  FairShare shares;
  shares.set_active({kAnn});
  shares.charge(kAnn, 1000);
  shares.set_active({kAnn, kBob});
  EXPECT_EQ(shares.time(kBob) + kHeadStartRows, shares.time(kAnn)) << "who was away has saved up a short question";
  shares.charge(kAnn, 50);
  shares.charge(kBob, kHeadStartRows + 200);
  shares.set_active({kAnn});
  shares.set_active({kAnn, kBob, kCy});
  EXPECT_EQ(shares.time(kBob), shares.time(kAnn) + 150) << "who was ahead is so after a moment's absence";
  EXPECT_EQ(shares.time(kCy) + kHeadStartRows, shares.time(kAnn));
  shares.charge(kCy, 100);
  shares.set_active({kAnn, kBob});
  shares.set_active({kAnn, kBob, kCy});
  EXPECT_EQ(shares.time(kCy) + kHeadStartRows - 100, shares.time(kAnn)) << "nor is the head start given twice";
  EXPECT_EQ(shares.n_active(), 3);
  shares.set_active({});
  shares.set_active({kBob, kCy});
  EXPECT_EQ(shares.time(kBob), shares.time(kCy)) << "when nobody wanted anything, all begin anew";
  EXPECT_EQ(shares.n_lately(), 3);
  for (uint64_t i = 0; i < kLatelySteps; ++i) shares.set_active({kBob});
  EXPECT_EQ(shares.n_lately(), 2) << "Ann's last step was one before Cy's";
  shares.set_active({kBob});
  EXPECT_EQ(shares.n_lately(), 1);
}

// A crowd that never pauses: whoever of it is answered asks again. What is counted is rows, of which a step's time
// consists, from the end of the step in which the other one asked.
TEST_F(Shares, ACrowdThatNeverPausesDoesNotMakeAnothersPromptLong) {
  constexpr int kPrompt = 40, kClients = 60;
  struct Crowd {
    std::mutex mutex;
    std::vector<Submitted> all;  // guarded by it
    int n_asked = 0, n_ended = 0;
    bool goes_on = true;
  } crowd;
  std::vector<uint64_t> rows;  // so far, at the end of each answer; every step has one
  uint64_t after = 0;
  std::promise<void> busy, go_on;  // the engine's thread stands still between them
  std::function<void()> ask;
  Engine engine(*model_, config(8));
  EXPECT_EQ(collect(*engine.submit(asked_by(kBob, 7, kPrompt, 1))->events).ids.size(), 1u);
  const auto ended = [&] {  // after both of its events
    if (++crowd.n_ended % 2 != 0) return;
    if (crowd.n_ended <= 8 * kClients) rows.push_back(engine.stats().rows);
    if (crowd.n_ended == 8 * kClients) {
      busy.set_value();
      go_on.get_future().wait();
    }
    ask();
  };
  ask = [&] {
    std::lock_guard lock(crowd.mutex);
    if (!crowd.goes_on) return;
    auto s = engine.submit(asked_by(kAnn, 1000 + crowd.n_asked++, kPrompt, 1), ended);
    ASSERT_TRUE(s) << s.error().message;
    crowd.all.push_back(*s);
  };
  for (int i = 0; i < kClients; ++i) ask();
  busy.get_future().wait();
  const uint64_t before = engine.stats().rows;
  auto s = engine.submit(asked_by(kBob, 99, kPrompt, 1), [&] { after = engine.stats().rows; });
  go_on.set_value();
  EXPECT_EQ(collect(*s->events).ids.size(), 1u);
  {
    std::lock_guard lock(crowd.mutex);
    crowd.goes_on = false;
  }
  for (Submitted& a : crowd.all) collect(*a.events);  // most of them end behind it
  EXPECT_LE(after - before, static_cast<uint64_t>(kPrompt) + 8) << "its own, and those who answer meanwhile";
  uint64_t longest = 0;
  for (size_t i = 1; i < rows.size(); ++i) longest = std::max(longest, rows[i] - rows[i - 1]);
  EXPECT_LE(longest, static_cast<uint64_t>(kCrowdedStepRows) + 8) << "nor is the step long in which it asks";
}

TEST(QueuePlacesTest, TheOneThatHasTheMostIsRefused) {
  auto places = std::make_shared<QueuePlaces>(8, "requests");
  std::vector<QueuePlacePtr> ann, bob, cy;
  auto take = [&](OwnerId owner, std::vector<QueuePlacePtr>& into, int n) {
    auto taken = places->take(owner, n);
    if (!taken) {
      EXPECT_EQ(taken.error().code, Code::exhausted);
      return false;
    }
    into.insert(into.end(), taken->begin(), taken->end());
    return true;
  };
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(take(kAnn, ann, 1)) << "alone, one has all of it";
  EXPECT_FALSE(take(kAnn, ann, 1));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(take(kBob, bob, 1));
  EXPECT_FALSE(take(kBob, bob, 1));
  EXPECT_TRUE(take(kCy, cy, 2));
  EXPECT_FALSE(take(kCy, cy, 1));
  ann.resize(2);
  EXPECT_FALSE(take(kBob, bob, 1)) << "8 are taken, and it has more than its share";
  EXPECT_FALSE(take(kAnn, ann, 7)) << "several count as several";
  ann.clear();
  EXPECT_TRUE(take(kAnn, ann, 16)) << "who has nothing there gets in, with all that belongs together";
  EXPECT_FALSE(take(kAnn, ann, 1));
  ann.clear();
  bob.clear();
  places.reset();
  cy.clear();  // the last place keeps the count
}

TEST_F(Shares, AnotherOwnersFirstTokenIsAFewStepsAway) {
  std::vector<int32_t> alone;
  {
    Engine engine(*model_, config(4));
    alone = collect(*engine.submit(asked_by(kBob, 99, 20, 8))->events).ids;
  }
  Engine engine(*model_, config(4));
  Gate gate;
  std::vector<Submitted> crowd;
  for (int i = 0; i < 60; ++i) {
    auto s = engine.submit(asked_by(kAnn, i, 20, 60), i == 0 ? gate.hook() : nullptr);
    ASSERT_TRUE(s) << s.error().message;
    crowd.push_back(*s);
  }
  crowd[0].events->wait();  // the engine's thread is held from here on
  Noted steps;
  const uint64_t before = engine.stats().steps;
  auto s = engine.submit(asked_by(kBob, 99, 20, 8), steps.hook(engine));
  ASSERT_TRUE(s) << s.error().message;
  gate.open();
  EXPECT_EQ(collect(*s->events).ids, alone);
  EXPECT_LE(steps.first - before, 4u) << "it waits for no answer of the other's 60";
  EXPECT_LE(steps.last - before, 16u) << "nor do its tokens";
  for (Submitted& a : crowd) engine.cancel(a.id);
  for (Submitted& a : crowd) collect(*a.events);
}

TEST_F(Shares, WhoTakesTurnsAnswersAsAlone) {
  std::vector<Request> requests;
  for (int i = 0; i < 9; ++i) requests.push_back(asked_by(i < 5 ? kAnn : i < 8 ? kBob : kCy, i, 30 + 7 * i, 30));
  std::vector<std::vector<int32_t>> alone;
  for (const Request& r : requests) {
    Engine engine(*model_, config(1));
    alone.push_back(collect(*engine.submit(r)->events).ids);
  }
  Engine engine(*model_, config(3));
  Gate gate;
  std::vector<Submitted> submitted;
  for (size_t i = 0; i < requests.size(); ++i) {
    submitted.push_back(*engine.submit(requests[i], i == 0 ? gate.hook() : nullptr));
    if (i == 4) submitted[0].events->wait();
  }
  gate.open();
  for (size_t i = 1; i < requests.size(); ++i) EXPECT_EQ(collect(*submitted[i].events).ids, alone[i]) << i;
  EXPECT_EQ(collect(*submitted[0].events).ids.size(), alone[0].size() - 1);
}

TEST_F(Shares, StepsAreSharedBetweenOwnersNotRequests) {
  Engine engine(*model_, config(4));
  Gate gate;
  std::vector<Submitted> crowd;
  for (int i = 0; i < 8; ++i) {
    crowd.push_back(*engine.submit(asked_by(kAnn, i, 20, 400), i == 0 ? gate.hook() : nullptr));
  }
  crowd[0].events->wait();
  std::vector<Submitted> few;
  Noted steps[2];
  for (int i = 0; i < 2; ++i) few.push_back(*engine.submit(asked_by(kBob, 50 + i, 20, 100), steps[i].hook(engine)));
  const uint64_t before = engine.stats().steps;
  gate.open();
  for (Submitted& s : few) EXPECT_EQ(collect(*s.events).ids.size(), 100u);
  for (const Noted& noted : steps) EXPECT_LE(noted.last - before, 115u) << "a token a step: two are its half of four";
  for (Submitted& a : crowd) engine.cancel(a.id);
  size_t n = 0;
  for (Submitted& a : crowd) n += collect(*a.events).ids.size();
  EXPECT_GE(n, 100u) << "the other half is the others'";
}

TEST_F(Shares, AShortPromptPassesLongOnes) {
  EngineConfig c = config(2);
  c.max_queued = 100;
  Engine engine(*model_, c);
  Gate gate;
  std::vector<Submitted> crowd;
  for (int i = 0; i < 20; ++i) {
    crowd.push_back(*engine.submit(asked_by(0, i, 900, 50), i == 0 ? gate.hook() : nullptr));
  }
  crowd[0].events->wait();
  Noted steps;
  const uint64_t before = engine.stats().steps;
  auto s = engine.submit(asked_by(0, 99, 20, 4), steps.hook(engine));
  gate.open();
  EXPECT_EQ(collect(*s->events).ids.size(), 4u);
  EXPECT_LE(steps.first - before, 4u);
  for (Submitted& a : crowd) engine.cancel(a.id);
  for (Submitted& a : crowd) collect(*a.events);
}

TEST_F(Shares, LongPromptsOfOthersDoNotLengthenTheStepOfAShortOne) {
  Engine engine(*model_, config(4));
  Gate gate;
  std::vector<Submitted> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.push_back(*engine.submit(asked_by(kAnn, i, 900, 50), i == 0 ? gate.hook() : nullptr));
  }
  crowd[0].events->wait();
  std::vector<uint64_t> rows;  // before the step of each of its tokens; written by the engine's thread
  auto s = engine.submit(asked_by(kBob, 99, 10, 2), [&] {
    if (rows.size() < 2) rows.push_back(engine.stats().rows);
  });
  gate.open();
  EXPECT_EQ(collect(*s->events).ids.size(), 2u);
  ASSERT_GE(rows.size(), 2u);
  EXPECT_LE(rows[1] - rows[0], 64u + 4u) << "prompts, its own among them, and those who answer";
  for (Submitted& a : crowd) engine.cancel(a.id);
  for (Submitted& a : crowd) collect(*a.events);
}

TEST_F(Shares, EmbeddingsAndAnswersHoldUpEachOtherByHalf) {
  Noted prompt_tokens;  // both outlive the engine's thread, which may still ring
  std::promise<uint64_t> rows;
  Engine engine(*model_, config(4));
  Gate gate;
  auto answer = engine.submit(asked_by(kAnn, 1, 20, 41),
                              [hold = gate.hook(), note = prompt_tokens.hook(engine, &EngineStats::prompt_tokens)] {
                                hold();
                                note();
                              });
  answer->events->wait();
  EmbedRequest many;
  many.owner = kBob;
  for (int i = 0; i < 400; ++i) many.texts.push_back(asked_by(kBob, i, 60, 1).prompt);
  auto embedded = engine.embed(many);
  ASSERT_TRUE(embedded);
  EmbedRequest one;
  one.owner = kCy;
  one.texts.push_back(asked_by(kCy, 500, 10, 1).prompt);
  const uint64_t before = engine.stats().rows;
  auto small = engine.embed(one, [&] { rows.set_value(engine.stats().rows); });
  ASSERT_TRUE(small);
  gate.open();
  EXPECT_EQ(collect(*answer->events).ids.size(), 40u);
  EXPECT_LE(prompt_tokens.last, 20u + 2000u) << "40 steps of one row are no more than a few batches of texts";
  EXPECT_TRUE(small->result->wait());
  EXPECT_LE(rows.get_future().get() - before, 700u) << "one text waits for no 400 of another's";
  engine.cancel(embedded->id);
}

}  // namespace
}  // namespace chimere::engine
