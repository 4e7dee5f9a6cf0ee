#include "sampling/loop_guard.h"

#include <gtest/gtest.h>

#include "base/philox.h"

namespace chimere {
namespace {

using State = LoopGuard::State;

// The state after each token of a text, found by looking at all of it.
State naive(std::span<const int32_t> text, int32_t least) {
  const auto n = static_cast<int32_t>(text.size());
  for (int32_t p = 1; p <= LoopGuard::kMaxPeriod; ++p) {
    int32_t span = p;
    while (span < n && text[n - 1 - (span - p)] == text[n - 1 - span]) ++span;
    if (span > n || span < 3 * p || span < least) continue;
    return span >= std::max(2 * least, 4 * p) ? State::stuck : State::looping;
  }
  return State::free;
}

TEST(LoopGuard, AgreesWithALookAtTheWholeText) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    // Short loops of few tokens with a slip now and then: all three states come up.
    const auto random = [&](uint64_t i) { return philox(seed, i, 0)[0]; };
    const int period = 1 + static_cast<int>(random(0) % 7);
    LoopGuard guard({.is_on = true, .tokens = 8, .penalty = 1});
    std::vector<int32_t> text;
    for (uint64_t i = 1; i < 120; ++i) {
      const bool slips = random(i) % 31 == 0;
      const bool repeats = static_cast<int>(text.size()) >= period && !slips;
      text.push_back(repeats ? text[text.size() - static_cast<size_t>(period)] : static_cast<int32_t>(random(i) % 5));
      guard.accept(text);
      ASSERT_EQ(guard.state(), naive(text, 8)) << "seed " << seed << " token " << i;
    }
  }
}

// A string that repeats a word is closed long before any other text is, one that repeats a sentence a little later.
TEST(LoopGuard, IsLessPatientInAString) {
  const LoopGuardParams params{.is_on = true, .tokens = 1024, .penalty = 0, .string_tokens = 256};
  const auto stuck_at = [&](int period, int32_t n_before) {
    LoopGuard guard(params);
    std::vector<int32_t> text;
    for (int32_t n = 1; n <= 3000; ++n) {
      text.push_back(n % period);
      guard.accept(text, std::max(0, n - n_before));
      if (guard.state() == State::stuck) return n;
    }
    return 0;
  };
  for (const int period : {1, 2, 5, 8}) {
    EXPECT_EQ(stuck_at(period, 0), 256) << period;
    EXPECT_EQ(stuck_at(period, 100), 356) << "what stood before the string does not count";
    EXPECT_EQ(stuck_at(period, 3000), 2048) << "not in a string";
  }
  EXPECT_EQ(stuck_at(9, 0), 288);
  EXPECT_EQ(stuck_at(20, 0), 640);
  EXPECT_EQ(stuck_at(64, 0), 2048);
  EXPECT_EQ(stuck_at(96, 0), 2048);
}

TEST(LoopGuard, PenalisesWhatWouldGoOnAndMoreEachTime) {
  LoopGuard guard({.is_on = true, .tokens = 6, .penalty = 2});
  std::vector<int32_t> text = {9};
  std::vector<TokenBias> bias;
  float last = 0;
  for (int i = 0; i < 12; ++i) {
    text.push_back(10 + i % 3);
    guard.accept(text);
    bias.clear();
    guard.penalise(text, bias);
    // Three times three tokens, the first of them at i == 0.
    ASSERT_EQ(bias.size(), i >= 8 ? 1U : 0U) << i;
    if (bias.empty()) continue;
    EXPECT_EQ(bias[0].id, 10 + (i + 1) % 3);
    EXPECT_LE(bias[0].delta, last);
    last = bias[0].delta;
  }
  EXPECT_EQ(last, -4.0f);
  guard.restart();
  EXPECT_EQ(guard.state(), State::free);
  text.push_back(10);
  guard.accept(text);
  EXPECT_EQ(guard.state(), State::free);
}

TEST(LoopGuard, SaysNothingWhenItIsOff) {
  LoopGuard guard;
  const std::vector<int32_t> text(200, 7);
  for (size_t n = 1; n <= text.size(); ++n) guard.accept(std::span(text).first(n));
  EXPECT_EQ(guard.state(), State::free);
}

}  // namespace
}  // namespace chimere
