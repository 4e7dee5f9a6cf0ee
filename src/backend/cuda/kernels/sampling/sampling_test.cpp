// sampling_test.cpp  The device sampler in the emulator against the host's: the same token and figures, row for row.
#include "backend/cuda/kernels/sampling/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "backend/cuda/simt/simt.h"
#include "sampling/weight.h"

namespace chimere::cuda {
namespace {

struct Case {
  std::vector<float> logits;
  std::vector<std::int32_t> prompt, answer;
  SamplingParams params;
  std::vector<std::uint64_t> mask;
  std::vector<TokenBias> bias;
  std::vector<MemoryEntry> memory;
  std::optional<std::int32_t> forced;
  std::uint64_t position = 0;

  RowInputs inputs() const { return {mask, bias, memory, forced}; }
};

struct Outcome {
  std::optional<Code> error;
  Sampled sampled;
};

// One step over rows of one vocabulary, with all that the device would hold.
class Device {
 public:
  Device(int n_vocab, std::vector<std::int32_t> suppressed, int scratch_rows)
      : n_vocab_(n_vocab),
        suppressed_(std::move(suppressed)),
        bits_((static_cast<std::size_t>(n_vocab) + 63) / 64),
        scratch_(sample_scratch_bytes(n_vocab, scratch_rows) / sizeof(std::uint64_t)),
        scratch_rows_(scratch_rows) {
    for (const std::int32_t id : suppressed_) bits_[id / 64] |= std::uint64_t{1} << (id % 64);
  }

  std::vector<Outcome> sample(const std::vector<Case>& cases) {
    const std::size_t n = cases.size();
    std::vector<float> logits;
    std::vector<PackedSampleRow> packed(n);
    std::vector<SampleRow> rows(n);
    std::vector<std::vector<std::int32_t>> histories(n);
    std::vector<std::int32_t> accepted(n, -7);
    SampleNeeds needs;
    for (std::size_t i = 0; i < n; ++i) {
      const Case& c = cases[i];
      logits.insert(logits.end(), c.logits.begin(), c.logits.end());
      histories[i] = c.prompt;
      histories[i].insert(histories[i].end(), c.answer.begin(), c.answer.end());
      packed[i] = pack_sample_row(c.params, c.inputs(), n_vocab_, static_cast<int>(histories[i].size()),
                                  static_cast<int>(c.prompt.size()), c.position);
      needs.add(packed[i].needs);
      rows[i] = packed[i].row;
      rows[i].bias = packed[i].bias.data();
      rows[i].memory = packed[i].memory.data();
      rows[i].dry_penalties = packed[i].dry_penalties.data();
      rows[i].dry_breakers = packed[i].dry_breakers.data();
      rows[i].mask = c.mask.empty() ? nullptr : c.mask.data();
      rows[i].history = histories[i].data();
      rows[i].accept_into = &accepted[i];
    }
    std::vector<SampledRow> sampled(n);
    std::vector<TokenLogprob> top(n * kMaxTopLogprobs);
    SampleArgs args{logits.data(),
                    rows.data(),
                    static_cast<int>(n),
                    n_vocab_,
                    suppressed_.data(),
                    bits_.data(),
                    static_cast<int>(suppressed_.size()),
                    needs,
                    {reinterpret_cast<std::byte*>(scratch_.data()), scratch_rows_},
                    sampled.data(),
                    top.data(),
                    kMaxTopLogprobs};
    const Status status = sample_rows(Stream(), args);
    EXPECT_TRUE(static_cast<bool>(status));
    std::vector<Outcome> results(n);
    for (std::size_t i = 0; i < n; ++i) {
      const Status row_status = sample_status(sampled[i], n_vocab_, cases[i].position);
      if (!row_status) {
        results[i].error = row_status.error().code;
        continue;
      }
      EXPECT_EQ(accepted[i], sampled[i].id);
      results[i].sampled = {sampled[i].id, sampled[i].logprob, sampled[i].entropy, sampled[i].max_prob, {}};
      const TokenLogprob* first = top.data() + i * kMaxTopLogprobs;
      results[i].sampled.top.assign(first, first + sampled[i].n_top);
    }
    return results;
  }

  Outcome host(const Case& c) const {
    Sampler sampler(n_vocab_, suppressed_);
    SamplerState state(c.prompt);
    for (const std::int32_t id : c.answer) state.accept(id);
    Result<Sampled> sampled = sampler.sample(c.logits, c.params, state, c.inputs(), c.position);
    if (!sampled) return {sampled.error().code, {}};
    return {{}, std::move(*sampled)};
  }

 private:
  int n_vocab_;
  std::vector<std::int32_t> suppressed_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint64_t> scratch_;
  int scratch_rows_;
};

void expect_equal(const Outcome& device_outcome, const Outcome& host_outcome, const std::string& where) {
  ASSERT_EQ(device_outcome.error, host_outcome.error) << where;
  const Sampled *device = &device_outcome.sampled, *host = &host_outcome.sampled;
  EXPECT_EQ(device->id, host->id) << where;
  EXPECT_EQ(std::isnan(device->logprob), std::isnan(host->logprob)) << where;
  if (!std::isnan(host->logprob) && !std::isinf(host->logprob)) {
    EXPECT_NEAR(device->logprob, host->logprob, 1e-5f) << where;
  }
  EXPECT_EQ(std::isnan(device->entropy), std::isnan(host->entropy)) << where;
  if (!std::isnan(host->entropy)) {
    EXPECT_NEAR(device->entropy, host->entropy, 1e-5f) << where;
    EXPECT_EQ(device->max_prob, host->max_prob) << where;
  }
  ASSERT_EQ(device->top.size(), host->top.size()) << where;
  for (std::size_t i = 0; i < host->top.size(); ++i) {
    EXPECT_EQ(device->top[i].id, host->top[i].id) << where;
    EXPECT_NEAR(device->top[i].logprob, host->top[i].logprob, 1e-5f) << where;
  }
}

class Maker {
 public:
  Maker(std::uint32_t seed, int n_vocab) : rng_(seed), n_vocab_(n_vocab) {}

  bool coin(double p) { return std::uniform_real_distribution<>(0, 1)(rng_) < p; }
  float real(float low, float high) { return std::uniform_real_distribution<float>(low, high)(rng_); }
  int integer(int low, int high) { return std::uniform_int_distribution<>(low, high)(rng_); }
  std::int32_t token() { return integer(0, n_vocab_ - 1); }

  Case make() {
    Case c;
    const float spread = coin(0.1) ? 0.0f : real(0.2f, 6.0f);
    const bool tied = coin(0.25);
    for (int i = 0; i < n_vocab_; ++i) {
      const float logit = std::normal_distribution<float>(0.0f, 1.0f)(rng_) * spread;
      c.logits.push_back(tied ? std::round(logit) : logit);
    }
    if (coin(0.2)) c.logits[token()] = NAN;
    if (coin(0.2)) c.logits[token()] = -INFINITY;
    if (coin(0.05)) c.logits[token()] = INFINITY;
    if (coin(0.02)) c.logits.assign(c.logits.size(), coin(0.5) ? NAN : -INFINITY);
    const int distinct = integer(1, std::min(n_vocab_, 6));
    for (int i = integer(0, 40); i > 0; --i) c.prompt.push_back(integer(0, distinct - 1));
    for (int i = integer(0, 40); i > 0; --i) c.answer.push_back(integer(0, distinct - 1));
    if (coin(0.1)) c.prompt.push_back(n_vocab_ + 3);  // an id outside the vocabulary, as of an image
    // The tokens of the history lead, so that what penalties do to them decides.
    for (int id = 0; id < distinct && coin(0.9); ++id) c.logits[id] += 4.0f * spread + real(0.0f, 1.0f);
    SamplingParams& p = c.params;
    p.temperature = coin(0.15) ? 0.0f : real(0.3f, 2.0f);
    if (coin(0.5)) p.top_k = coin(0.2) ? integer(1, n_vocab_ + 50) : integer(1, 40);
    if (coin(0.5)) p.top_p = coin(0.1) ? 0.0f : real(0.05f, 0.999f);
    if (coin(0.3)) p.min_p = real(0.0f, 0.3f);
    if (coin(0.4)) p.repetition_penalty = real(0.7f, 2.0f);
    if (coin(0.4)) p.presence_penalty = real(-1.0f, 2.0f);
    if (coin(0.4)) p.frequency_penalty = real(-0.2f, 0.5f);
    if (coin(0.5)) p.penalty_last_n = integer(0, 50);
    if (coin(0.4)) p.dry_multiplier = real(0.1f, 1.5f);
    if (coin(0.1)) p.dry_base = 1.0f;
    p.dry_allowed_length = integer(1, 4);
    if (coin(0.3)) p.dry_penalty_last_n = integer(0, 60);
    if (coin(0.4)) p.dry_sequence_breakers = {integer(0, distinct - 1)};
    p.seed = (static_cast<std::uint64_t>(rng_()) << 32) | rng_();
    p.choice = static_cast<std::uint32_t>(integer(0, 3));
    c.position = static_cast<std::uint64_t>(integer(0, 1000000));
    p.stats = coin(0.3);
    if (coin(0.2)) p.top_logprobs = integer(1, kMaxTopLogprobs);
    if (coin(0.3)) p.logit_bias = {{token(), real(-5, 5)}, {token(), coin(0.2) ? kNoScore : real(-5, 5)}};
    if (coin(0.3)) c.bias = {{token(), real(-5, 5)}, {-1, 1.0f}, {token(), NAN}};
    if (coin(0.1) && !p.logit_bias.empty()) c.bias.push_back({p.logit_bias[0].id, -1.5f});
    for (int i = coin(0.3) ? integer(1, 4) : 0; i > 0; --i) c.memory.push_back({token(), real(0, 1), real(0, 0.6f)});
    if (coin(0.4)) {
      c.mask.assign((static_cast<std::size_t>(n_vocab_) + 63) / 64, 0);
      const double density = coin(0.1) ? 0.0 : coin(0.5) ? 0.02 : 0.5;
      for (int id = 0; id < n_vocab_; ++id) c.mask[id / 64] |= std::uint64_t{coin(density)} << (id % 64);
    }
    if (coin(0.08)) c.forced = token();
    return c;
  }

  // One that is drawn in a single pass; when plain, from the logits as they are.
  Case make_short(bool plain) {
    Case c = make();
    if (c.params.temperature > 0) {
      c.params.top_k = coin(0.2) ? integer(1, kShortTop) : integer(1, 40);
      c.mask.clear();
    }
    if (!plain) return c;
    const SamplingParams from = c.params;
    c.params = {};
    c.params.temperature = from.temperature;
    c.params.top_k = from.top_k;
    c.params.top_p = from.top_p;
    c.params.min_p = from.min_p;
    c.params.seed = from.seed;
    c.params.choice = from.choice;
    c.bias.clear();
    c.memory.clear();
    return c;
  }

 private:
  std::mt19937 rng_;
  int n_vocab_;
};

enum class Kind { any, brief, plain };  // what Maker makes

void compare(int n_vocab, int n_rows, int trials, std::uint32_t seed, int& drawn, Kind kind = Kind::any) {
  Maker maker(seed, n_vocab);
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<std::int32_t> suppressed;
    if (maker.coin(0.5)) suppressed = {maker.token(), maker.token()};
    Device device(n_vocab, suppressed, std::max(1, n_rows - 2));
    std::vector<Case> cases;
    for (int i = 0; i < n_rows; ++i) {
      cases.push_back(kind == Kind::any ? maker.make() : maker.make_short(kind == Kind::plain));
    }
    for (int step = 0; step < 2; ++step) {  // the scratch of one step serves the next
      const std::vector<Outcome> results = device.sample(cases);
      for (int i = 0; i < n_rows; ++i) {
        const Outcome expected = device.host(cases[i]);
        expect_equal(results[i], expected,
                     "vocabulary " + std::to_string(n_vocab) + ", trial " + std::to_string(trial) + ", row " +
                         std::to_string(i));
        drawn += !expected.error;
      }
    }
  }
}

TEST(DeviceSampling, AgreesWithTheHostInEveryStage) {
  simt::for_both_schedules([] {
    int drawn = 0;
    compare(1, 3, 10, 1, drawn);
    compare(63, 6, 60, 2, drawn);
    compare(700, 6, 40, 3, drawn);
    compare(4096, 4, 10, 4, drawn);
    compare(9001, 4, 15, 5, drawn);
    EXPECT_GT(drawn, 700);
  });
}

TEST(DeviceSampling, AgreesWithTheHostInASinglePass) {
  simt::for_both_schedules([] {
    int drawn = 0;
    for (const Kind kind : {Kind::brief, Kind::plain}) {
      compare(1, 3, 10, 11, drawn, kind);
      compare(63, 6, 40, 12, drawn, kind);
      compare(700, 6, 20, 13, drawn, kind);
      compare(9001, 4, 10, 14, drawn, kind);
    }
    EXPECT_GT(drawn, 800);
  });
}

// Which rows the single pass takes.
TEST(DeviceSampling, NeedsTheWholeRowWithoutAShortTopK) {
  const std::vector<std::uint64_t> mask(4, 1);
  const auto whole = [&](float temperature, int top_k, bool masked) {
    SamplingParams params;
    params.temperature = temperature;
    params.top_k = top_k;
    params.top_p = 0.9f;
    RowInputs inputs;
    if (masked) inputs.mask = mask;
    return pack_sample_row(params, inputs, 200, 0, 0, 0).needs.rounded().whole;
  };
  EXPECT_FALSE(whole(0.7f, 20, false));
  EXPECT_FALSE(whole(0.7f, kShortTop, false));
  EXPECT_FALSE(whole(0.0f, 0, false));
  EXPECT_FALSE(whole(0.0f, 0, true));
  EXPECT_TRUE(whole(0.7f, 0, false));
  EXPECT_TRUE(whole(0.7f, kShortTop + 1, false));
  EXPECT_TRUE(whole(0.7f, 20, true));
}

// All good tokens stand where few threads look: the bound on what to keep is a bad one, the outcome is not.
TEST(DeviceSampling, SinglePassWithTheBestOfARowInOnePlace) {
  const int n_vocab = 12000;
  Maker maker(5, n_vocab);
  Device device(n_vocab, {7}, 3);
  std::vector<Case> cases(3);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case& c = cases[i];
    c.logits.resize(n_vocab);
    for (int id = 0; id < n_vocab; ++id) {
      c.logits[id] = id < 4096 && id % 256 < 128 ? 5.0f + maker.real(0, 1) : maker.real(-1, 1);
    }
    c.params.temperature = 1.0f;
    c.params.top_k = i == 0 ? 3 : kShortTop;
    if (i == 2) c.params.top_p = 0.5f;
    c.params.seed = 40 + i;
  }
  for (std::uint64_t position = 0; position < 8; ++position) {
    for (Case& c : cases) c.position = position;
    const std::vector<Outcome> results = device.sample(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      expect_equal(results[i], device.host(cases[i]), "row " + std::to_string(i));
    }
  }
}

// More blocks of equal tokens than are looked at again: the lowest ids are the best.
TEST(DeviceSampling, SinglePassOverARowOfEqualLogits) {
  const int n_vocab = 40000;
  Device device(n_vocab, {0, 70}, 2);
  std::vector<Case> cases(2);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].logits.assign(n_vocab, 1.5f);
    cases[i].params.temperature = i == 0 ? 0.0f : 0.8f;
    cases[i].params.top_k = 100;
    cases[i].params.seed = 3;
  }
  const std::vector<Outcome> results = device.sample(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) expect_equal(results[i], device.host(cases[i]), std::to_string(i));
  EXPECT_EQ(results[0].sampled.id, 1);
}

TEST(DeviceSampling, SinglePassOverTheLargestVocabulary) {
  Maker maker(21, kMaxVocab);
  Device device(kMaxVocab, {11}, 3);
  std::vector<Case> cases(3);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case& c = cases[i];
    c.logits.resize(kMaxVocab);
    for (float& logit : c.logits) logit = maker.real(-4, 4);
    c.logits[kMaxVocab - 1 - static_cast<int>(i)] = 4.5f;
    c.params.temperature = i == 0 ? 0.0f : 1.0f;
    c.params.top_k = i == 2 ? 2 : 40;
    c.params.min_p = 0.3f;
    c.params.seed = i;
  }
  cases[0].mask.assign(kMaxVocab / 64, std::uint64_t{0xfffe});
  const std::vector<Outcome> results = device.sample(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) expect_equal(results[i], device.host(cases[i]), std::to_string(i));
}

TEST(DeviceSampling, LargeVocabularyWithUsualSettings) {
  const int n_vocab = 248320;
  Maker maker(9, n_vocab);
  Device device(n_vocab, {n_vocab - 1, n_vocab - 2}, 2);
  std::vector<Case> cases;
  for (const float spread : {1.0f, 3.0f}) {
    for (int kind = 0; kind < 4; ++kind) {
      Case c;
      c.logits.resize(n_vocab);
      for (float& logit : c.logits) logit = maker.real(-4, 4) * spread;
      c.params.temperature = 0.7f;
      if (kind == 1 || kind == 3) c.params.top_k = kind == 1 ? 20 : 5000;
      if (kind >= 1) c.params.top_p = 0.95f;
      if (kind == 2) c.params.top_logprobs = 20;
      c.params.presence_penalty = 1.5f;
      c.answer = {1, 2, 3, 2};
      c.params.seed = static_cast<std::uint64_t>(kind) + 11;
      c.position = 1000;
      cases.push_back(c);
    }
  }
  const std::vector<Outcome> results = device.sample(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Outcome expected = device.host(cases[i]);
    expect_equal(results[i], expected, "row " + std::to_string(i));
    // By itself a row may take the single pass, after the edits or straight from the logits.
    if (cases[i].params.top_k == 0 || cases[i].params.top_k > kShortTop) continue;
    expect_equal(device.sample({cases[i]})[0], expected, "row " + std::to_string(i) + " alone");
    cases[i].params.presence_penalty = 0;
    expect_equal(device.sample({cases[i]})[0], device.host(cases[i]), "row " + std::to_string(i) + " plain");
  }
}

// A row's token does not depend on the others: the same rows, alone and in another order.
TEST(DeviceSampling, RowsAreIndependent) {
  Maker maker(77, 500);
  Device device(500, {}, 8);
  std::vector<Case> cases;
  for (int i = 0; i < 8; ++i) cases.push_back(maker.make());
  const std::vector<Outcome> together = device.sample(cases);
  for (int i = 0; i < 8; ++i) {
    const std::vector<Outcome> alone = device.sample({cases[i]});
    expect_equal(alone[0], together[i], "row " + std::to_string(i));
  }
}

}  // namespace
}  // namespace chimere::cuda
