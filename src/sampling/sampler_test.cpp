// sampler_test.cpp  What the header of the sampler promises, one promise a test.
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace chimere {
namespace {

constexpr int kVocab = 300;

std::vector<float> random_logits(std::uint32_t seed, int n = kVocab) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(n);
  for (float& l : logits) l = normal(rng);
  return logits;
}

std::vector<std::uint64_t> mask_of(std::initializer_list<int> ids, int n = kVocab) {
  std::vector<std::uint64_t> mask((static_cast<std::size_t>(n) + 63) / 64, 0);
  for (int id : ids) mask[id / 64] |= std::uint64_t{1} << (id % 64);
  return mask;
}

Sampled must(Result<Sampled> result) {
  EXPECT_TRUE(static_cast<bool>(result)) << (result ? "" : result.error().message);
  return result ? *result : Sampled{};
}

std::set<int> drawn(const std::vector<float>& logits, const SamplingParams& params, const RowInputs& inputs = {},
                    int draws = 2000) {
  Sampler sampler(static_cast<std::int32_t>(logits.size()));
  std::set<int> seen;
  for (int i = 0; i < draws; ++i) {
    seen.insert(must(sampler.sample(logits, params, {}, inputs, static_cast<std::uint64_t>(i))).id);
  }
  return seen;
}

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0.0f;
  return params;
}

TEST(Sampler, GreedyTakesTheLowestOfEqualBests) {
  std::vector<float> logits(kVocab, 1.0f);
  logits[130] = logits[200] = 3.0f;
  Sampler sampler(kVocab);
  EXPECT_EQ(must(sampler.sample(logits, greedy(), {}, {}, 0)).id, 130);
}

TEST(Sampler, RefusesAVocabularyItCannotSum) {
  EXPECT_FALSE(Sampler::create(0));
  EXPECT_FALSE(Sampler::create((1 << 19) + 1));
  Result<Sampler> sampler = Sampler::create(1 << 19);
  ASSERT_TRUE(static_cast<bool>(sampler));
  // The flattest row there is: the largest sum of weights, and still exact.
  SamplingParams params;
  params.stats = true;
  const Sampled sampled = must(sampler->sample(std::vector<float>(1 << 19, 1.0f), params, {}, {}, 0));
  EXPECT_EQ(sampled.max_prob, 0x1p-19f);
  EXPECT_NEAR(sampled.entropy, 19 * std::log(2.0), 1e-5);
}

TEST(Sampler, TopKAndTopPAndMinPKeepExactlyTheirSets) {
  // Probabilities 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> logits = {std::log(0.2f), std::log(0.4f), std::log(0.1f), std::log(0.3f)};
  SamplingParams params;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{0, 1, 2, 3}));
  params.top_k = 3;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{0, 1, 3}));
  params = {};
  params.top_p = 0.65f;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{1, 3}));
  params.top_p = 0.75f;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{0, 1, 3}));
  params = {};
  params.min_p = 0.45f;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{0, 1, 3}));
  // top-k comes before top-p: 0.4 / 0.7 of what top-k left is less than 0.65.
  params = {};
  params.top_k = 2;
  params.top_p = 0.65f;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{1, 3}));
  params.top_p = 0.55f;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{1}));
}

TEST(Sampler, TemperatureComesBeforeTopP) {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.4f), std::log(0.1f), std::log(0.3f)};
  SamplingParams params;
  params.top_p = 0.39f;
  EXPECT_EQ(drawn(logits, params), (std::set<int>{1}));
  params.temperature = 3.0f;  // flattens 0.4 to 0.30
  EXPECT_EQ(drawn(logits, params), (std::set<int>{1, 3}));
}

TEST(Sampler, SameInputsGiveTheSameTokenWhateverCameBefore) {
  SamplingParams params;
  params.seed = 7;
  Sampler fresh(kVocab), used(kVocab);
  for (std::uint64_t position = 0; position < 200; ++position) {
    SamplingParams other;
    other.top_k = 1 + static_cast<int>(position % 50);
    other.repetition_penalty = 1.5f;
    const std::vector<std::int32_t> history = {1, 2, 3, static_cast<std::int32_t>(position)};
    must(used.sample(random_logits(static_cast<std::uint32_t>(position) + 1000), other, SamplerState(history), {}, 3));
    const std::vector<float> logits = random_logits(static_cast<std::uint32_t>(position));
    EXPECT_EQ(must(fresh.sample(logits, params, {}, {}, position)).id,
              must(used.sample(logits, params, {}, {}, position)).id);
  }
}

TEST(Sampler, SeedAndChoiceChangeTheText) {
  const std::vector<float> logits = random_logits(1);
  SamplingParams a, b, c;
  b.seed = 1;
  c.choice = 1;
  Sampler sampler(kVocab);
  int seed_differs = 0, choice_differs = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const int id = must(sampler.sample(logits, a, {}, {}, i)).id;
    seed_differs += must(sampler.sample(logits, b, {}, {}, i)).id != id;
    choice_differs += must(sampler.sample(logits, c, {}, {}, i)).id != id;
  }
  EXPECT_GT(seed_differs, 50);
  EXPECT_GT(choice_differs, 50);
}

TEST(Sampler, ReportsTheModelsOwnLogprobs) {
  std::vector<float> logits = random_logits(5);
  logits[9] = -INFINITY;
  double denominator = 0, entropy = 0, largest = 0;
  for (float l : logits) denominator += std::exp(static_cast<double>(l));
  for (float l : logits) {
    const double p = std::exp(static_cast<double>(l)) / denominator;
    if (p > 0) entropy -= p * std::log(p);
    largest = std::max(largest, p);
  }
  // Everything that could bend the numbers is on.
  SamplingParams params;
  params.top_logprobs = 5;
  params.temperature = 0.5f;
  params.top_k = 3;
  params.repetition_penalty = 1.7f;
  params.logit_bias = {{17, 12.0f}};
  const std::vector<std::int32_t> history = {1, 2, 3, 4, 5};
  const std::vector<MemoryEntry> memory = {{20, 1.0f, 0.5f}};
  Sampler sampler(kVocab, std::vector<std::int32_t>{0});
  const Sampled sampled = must(sampler.sample(logits, params, SamplerState(history), {{}, {}, memory, {}}, 3));
  const auto truth = [&](int id) { return static_cast<double>(logits[id]) - std::log(denominator); };
  EXPECT_NEAR(sampled.logprob, truth(sampled.id), 2e-6);
  EXPECT_NEAR(sampled.entropy, entropy, 1e-5);
  EXPECT_NEAR(sampled.max_prob, largest, 1e-6);
  std::vector<int> order(kVocab);
  for (int i = 0; i < kVocab; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  ASSERT_EQ(sampled.top.size(), 5u);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(sampled.top[i].id, order[i]);
    EXPECT_NEAR(sampled.top[i].logprob, truth(order[i]), 2e-6);
  }
}

TEST(Sampler, LeavesStatsOutWhenNobodyAsked) {
  Sampler sampler(kVocab);
  const Sampled sampled = must(sampler.sample(random_logits(5), greedy(), {}, {}, 3));
  EXPECT_TRUE(std::isnan(sampled.logprob));
  EXPECT_TRUE(sampled.top.empty());
}

TEST(Sampler, NeverDrawsAMaskedToken) {
  const std::vector<std::uint64_t> mask = mask_of({3, 77, 130, 299});
  const RowInputs inputs{mask, {}, {}, {}};
  const std::set<int> permitted = {3, 77, 130, 299};
  std::vector<SamplingParams> settings(5);
  settings[0].temperature = 0.0f;
  settings[1].top_k = 2;
  settings[2].top_p = 0.5f;
  settings[3].min_p = 0.5f;
  Sampler sampler(kVocab);
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    for (const SamplingParams& params : settings) {
      EXPECT_TRUE(permitted.count(must(sampler.sample(random_logits(seed), params, {}, inputs, seed)).id));
    }
  }
}

TEST(Sampler, TruncatesTheAllowedTokensWhenTheMaskLeavesNothing) {
  std::vector<float> logits(kVocab, 0.0f);
  logits[10] = logits[11] = 20.0f;
  logits[50] = 5.0f;
  logits[60] = 4.9f;
  logits[70] = -3.0f;
  const std::vector<std::uint64_t> mask = mask_of({50, 60, 70});
  SamplingParams params;
  params.top_k = 2;
  EXPECT_EQ(drawn(logits, params, {mask, {}, {}, {}}), (std::set<int>{50, 60}));
}

TEST(Sampler, MaskComesAfterTruncation) {
  std::vector<float> logits(kVocab, 0.0f);
  logits[10] = 5.0f;
  logits[50] = 4.0f;
  logits[60] = 3.9f;
  const std::vector<std::uint64_t> mask = mask_of({50, 60});
  SamplingParams params;
  params.top_k = 2;  // keeps 10 and 50; of those the mask allows 50 alone
  EXPECT_EQ(drawn(logits, params, {mask, {}, {}, {}}), (std::set<int>{50}));
}

TEST(Sampler, AnEmptyMaskIsAnErrorNotAToken) {
  const std::vector<std::uint64_t> mask = mask_of({});
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    Sampler sampler(kVocab);
    const Result<Sampled> sampled = sampler.sample(random_logits(1), params, {}, {mask, {}, {}, {}}, 0);
    ASSERT_FALSE(sampled);
    EXPECT_EQ(sampled.error().code, Code::invalid_argument);
    EXPECT_NE(sampled.error().message.find("at least one allowed token"), std::string::npos);
  }
}

TEST(Sampler, TheMaskWinsOverBans) {
  std::vector<float> logits(kVocab, 0.0f);
  logits[50] = 1.0f;
  const std::vector<std::uint64_t> mask = mask_of({40, 50});
  const std::vector<TokenBias> bans = {{40, kNoScore}, {50, kNoScore}};
  Sampler sampler(kVocab);
  SamplingParams params;
  EXPECT_EQ(must(sampler.sample(logits, params, {}, {mask, bans, {}, {}}, 0)).id, 50);
  logits[40] = logits[50] = -INFINITY;
  EXPECT_EQ(must(sampler.sample(logits, params, {}, {mask, {}, {}, {}}, 0)).id, 40);
}

TEST(Sampler, BrokenLogitsAreAnErrorAndOddOnesAreNotDrawn) {
  Sampler sampler(4);
  const std::vector<float> broken = {NAN, -INFINITY, NAN, NAN};
  const Result<Sampled> failed = sampler.sample(broken, {}, {}, {}, 12);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::internal);
  EXPECT_NE(failed.error().message.find("position 12"), std::string::npos);
  SamplingParams hot;
  hot.temperature = 100.0f;
  EXPECT_EQ(drawn({NAN, 1.0f, -INFINITY, 2.0f}, hot), (std::set<int>{1, 3}));
  EXPECT_EQ(drawn({0.0f, INFINITY, 3.0f, INFINITY}, hot), (std::set<int>{1, 3}));
}

TEST(Sampler, SuppressedTokensAreNeverDrawn) {
  std::vector<float> logits(8, 0.0f);
  logits[2] = 50.0f;
  logits[5] = 1.0f;
  Sampler sampler(8, std::vector<std::int32_t>{2, -1, 99});
  EXPECT_EQ(must(sampler.sample(logits, greedy(), {}, {}, 0)).id, 5);
  const std::vector<std::uint64_t> only_suppressed = {std::uint64_t{1} << 2};
  EXPECT_FALSE(sampler.sample(logits, greedy(), {}, {only_suppressed, {}, {}, {}}, 0));
}

TEST(Sampler, AForcedTokenWinsAndKeepsItsTrueLogprob) {
  const std::vector<float> logits = {0.0f, std::log(3.0f)};
  const std::vector<std::uint64_t> mask = {2};
  SamplingParams params;
  params.stats = true;
  Sampler sampler(2);
  const Sampled sampled = must(sampler.sample(logits, params, {}, {mask, {}, {}, 0}, 0));
  EXPECT_EQ(sampled.id, 0);
  EXPECT_NEAR(sampled.logprob, std::log(0.25), 1e-6);
  EXPECT_FALSE(sampler.sample(logits, params, {}, {{}, {}, {}, 2}, 0));
  EXPECT_FALSE(sampler.sample(logits, params, {}, {{}, {}, {}, -1}, 0));
}

TEST(Sampler, MemoryMixesProbabilities) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  // p' = 0.6 p + 0.4 for token 2: 0.30, 0.18, 0.52.
  const std::vector<MemoryEntry> memory = {{2, 1.0f, 0.25f}, {2, 0.3f, 0.5f}, {7, 1.0f, 1.0f}, {1, NAN, 1.0f}};
  Sampler sampler(3);
  SamplingParams params;
  int seen[3] = {};
  const int draws = 40000;
  for (int i = 0; i < draws; ++i) {
    ++seen[must(sampler.sample(logits, params, {}, {{}, {}, memory, {}}, static_cast<std::uint64_t>(i))).id];
  }
  EXPECT_NEAR(seen[0] / double{draws}, 0.30, 0.01);
  EXPECT_NEAR(seen[1] / double{draws}, 0.18, 0.01);
  EXPECT_NEAR(seen[2] / double{draws}, 0.52, 0.01);
  EXPECT_EQ(must(sampler.sample(logits, greedy(), {}, {{}, {}, memory, {}}, 0)).id, 2);
  // A ban holds against the memory.
  const std::vector<TokenBias> ban = {{2, kNoScore}};
  EXPECT_EQ(must(sampler.sample(logits, greedy(), {}, {{}, ban, memory, {}}, 0)).id, 0);
  // A memory that claims everything is held to kMaxMemoryShare.
  const std::vector<MemoryEntry> greedy_memory = {{0, 1.0f, 1.0f}, {1, 1.0f, 1.0f}};
  EXPECT_EQ(drawn(logits, params, {{}, {}, greedy_memory, {}}, 20000), (std::set<int>{0, 1, 2}));
}

TEST(Sampler, RepetitionSeesThePromptPresenceAndFrequencyOnlyTheAnswer) {
  const std::vector<float> logits = {2.0f, 1.9f, 1.8f, -9.0f};
  const std::vector<std::int32_t> prompt = {0};
  SamplerState state(prompt);
  state.accept(1);
  state.accept(3);
  Sampler sampler(4);
  SamplingParams params = greedy();
  params.repetition_penalty = 1.5f;
  EXPECT_EQ(must(sampler.sample(logits, params, state, {}, 3)).id, 2);
  params = greedy();
  params.presence_penalty = 1.0f;
  EXPECT_EQ(must(sampler.sample(logits, params, state, {}, 3)).id, 0);
  params.penalty_last_n = 1;
  params.presence_penalty = -20.0f;
  EXPECT_EQ(must(sampler.sample(logits, params, state, {}, 3)).id, 3);
}

TEST(Sampler, DryPunishesTheTokenThatWouldGoOnRepeating) {
  // "1 2 3 4 ... 1 2 3": going on with 4 would make a repetition of three tokens longer.
  const std::vector<std::int32_t> prompt = {1, 2, 3, 4, 9, 1, 2, 3};
  std::vector<float> logits(10, 0.0f);
  logits[4] = 2.0f;
  logits[5] = 1.0f;
  Sampler sampler(10);
  SamplingParams params = greedy();
  EXPECT_EQ(must(sampler.sample(logits, params, SamplerState(prompt), {}, 8)).id, 4);
  params.dry_multiplier = 0.8f;  // 0.8 * 1.75 = 1.4
  EXPECT_EQ(must(sampler.sample(logits, params, SamplerState(prompt), {}, 8)).id, 5);
  params.dry_allowed_length = 4;
  EXPECT_EQ(must(sampler.sample(logits, params, SamplerState(prompt), {}, 8)).id, 4);
  params.dry_allowed_length = 2;
  params.dry_sequence_breakers = {2};  // only "3" still counts
  EXPECT_EQ(must(sampler.sample(logits, params, SamplerState(prompt), {}, 8)).id, 4);
}

TEST(Sampler, LongRepetitionsKeepDryFinite) {
  SamplerState state;
  for (int i = 0; i < 5000; ++i) state.accept(1);
  SamplingParams params = greedy();
  params.dry_multiplier = 100.0f;
  params.dry_base = 100.0f;
  Sampler sampler(3);
  EXPECT_EQ(must(sampler.sample(std::vector<float>{0.0f, 9.0f, 1.0f}, params, state, {}, 0)).id, 2);
  const std::vector<std::uint64_t> only = {2};
  EXPECT_EQ(must(sampler.sample(std::vector<float>{0.0f, 9.0f, 1.0f}, params, state, {only, {}, {}, {}}, 0)).id, 1);
}

TEST(Sampler, RollbackEqualsNeverHavingBeenThere) {
  SamplingParams params;
  params.repetition_penalty = 1.3f;
  params.frequency_penalty = 0.4f;
  params.dry_multiplier = 0.8f;
  params.dry_allowed_length = 1;
  const std::vector<std::int32_t> prompt = {1, 2, 3, 1, 2};
  SamplerState straight(prompt), wandering(prompt);
  Sampler sampler(6);
  for (std::uint64_t position = 5; position < 200; ++position) {
    const std::vector<float> logits = random_logits(static_cast<std::uint32_t>(position), 6);
    const SamplerState fork = wandering;
    for (std::uint64_t d = 0; d < position % 4; ++d) {
      wandering.accept(
          must(sampler.sample(random_logits(static_cast<std::uint32_t>(d), 6), params, wandering, {}, d)).id);
    }
    wandering.rollback(position % 4);
    EXPECT_EQ(wandering, fork);
    const int a = must(sampler.sample(logits, params, straight, {}, position)).id;
    const int b = must(sampler.sample(logits, params, wandering, {}, position)).id;
    ASSERT_EQ(a, b);
    straight.accept(a);
    wandering.accept(b);
  }
}

TEST(SamplerState, RollbackStopsAtThePrompt) {
  const std::vector<std::int32_t> prompt = {1, 2};
  SamplerState state(prompt);
  state.accept(3);
  EXPECT_DEATH(state.rollback(2), "n_generated");
}

TEST(SamplingParams, RefusesWhatLiesOutsideAndNamesIt) {
  const auto message = [](auto&& change) {
    SamplingParams params;
    change(params);
    const Status status = params.validate(100);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(message([](SamplingParams&) {}), "");
  EXPECT_EQ(message([](SamplingParams& p) { p.temperature = -0.5f; }),
            "temperature: expected a number from 0 to 100, found -0.5");
  EXPECT_NE(message([](SamplingParams& p) { p.temperature = NAN; }).find("found nan"), std::string::npos);
  EXPECT_EQ(message([](SamplingParams& p) { p.top_p = 1.5f; }), "top_p: expected a number from 0 to 1, found 1.5");
  EXPECT_EQ(message([](SamplingParams& p) { p.top_k = -2; }), "top_k: expected an integer of at least -1, found -2");
  EXPECT_EQ(message([](SamplingParams& p) {
              p.logit_bias = {{100, 1.0f}};
            }),
            "logit_bias: expected a token id from 0 to 99, found 100");
  EXPECT_NE(message([](SamplingParams& p) { p.logit_bias = {{1, INFINITY}}; }), "");
  EXPECT_EQ(message([](SamplingParams& p) { p.logit_bias = {{1, -INFINITY}}; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.min_p = -0.1f; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.repetition_penalty = 0.0f; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.presence_penalty = INFINITY; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.penalty_last_n = -2; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.dry_base = 0.5f; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.dry_allowed_length = 0; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.dry_sequence_breakers = {-1}; }), "");
  EXPECT_NE(message([](SamplingParams& p) { p.top_logprobs = 100000; }), "");
}

}  // namespace
}  // namespace chimere
