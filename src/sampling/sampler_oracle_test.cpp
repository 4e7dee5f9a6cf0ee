// sampler_oracle_test.cpp  The sampler against a twin that does every stage the obvious way: double arithmetic, full
// sorts, quadratic DRY, no blocks, no pruning. Random rows, random settings, the same token every time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/philox.h"
#include "sampling/sampler.h"

namespace chimere {
namespace {

struct Case {
  int n_vocab;
  std::vector<float> logits;
  std::vector<std::int32_t> prompt, answer, suppressed;
  SamplingParams params;
  std::vector<std::uint64_t> mask;
  std::vector<TokenBias> bias;
  std::vector<MemoryEntry> memory;
  std::uint64_t position;
};

using Scores = std::vector<double>;

void oracle_memory(const Case& c, Scores& z) {
  std::map<int, double> share;
  double total = 0;
  for (const MemoryEntry& m : c.memory)
    share[m.id] += double{m.probability} * m.weight, total += double{m.probability} * m.weight;
  if (total == 0) return;
  const double shrink = total > 0.999 ? 0.999 / total : 1.0;
  double denominator = 0;
  for (double s : z) denominator += std::exp(s);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double a = share.count(static_cast<int>(i)) ? share[static_cast<int>(i)] * shrink : 0.0;
    z[i] = std::log((1 - total * shrink) * std::exp(z[i]) / denominator + a);
  }
  // Back to the scale of the logits, on which the sign matters to the repetition penalty.
  for (double& s : z) s += std::log(denominator) - std::log(1 - total * shrink);
}

void oracle_counts(const Case& c, const std::vector<std::int32_t>& history, Scores& z) {
  std::map<int, int> all, generated;
  for (std::size_t i = 0; i < history.size(); ++i) {
    if (c.params.penalty_last_n >= 0 && history.size() - i > static_cast<std::size_t>(c.params.penalty_last_n))
      continue;
    ++all[history[i]];
    if (i >= c.prompt.size()) ++generated[history[i]];
  }
  for (const auto& [id, n] : all)
    z[id] = z[id] > 0 ? z[id] / c.params.repetition_penalty : z[id] * c.params.repetition_penalty;
  for (const auto& [id, n] : generated) z[id] -= c.params.presence_penalty + c.params.frequency_penalty * n;
}

void oracle_dry(const Case& c, const std::vector<std::int32_t>& history, Scores& z) {
  const SamplingParams& p = c.params;
  if (p.dry_multiplier == 0) return;
  std::vector<std::int32_t> h = history;
  if (p.dry_penalty_last_n >= 0 && h.size() > static_cast<std::size_t>(p.dry_penalty_last_n)) {
    h.erase(h.begin(), h.end() - p.dry_penalty_last_n);
  }
  const std::set<std::int32_t> breakers(p.dry_sequence_breakers.begin(), p.dry_sequence_breakers.end());
  const int n = static_cast<int>(h.size());
  std::map<int, int> longest;
  for (int i = 0; i + 1 < n; ++i) {
    int length = 0;
    while (length <= i && h[i - length] == h[n - 1 - length] && !breakers.count(h[i - length])) ++length;
    if (length >= p.dry_allowed_length && !breakers.count(h[i + 1]))
      longest[h[i + 1]] = std::max(longest[h[i + 1]], length);
  }
  for (const auto& [id, length] : longest)
    z[id] -= p.dry_multiplier * std::pow(p.dry_base, length - p.dry_allowed_length);
}

std::vector<int> oracle_truncate(const Case& c, const Scores& t, std::vector<int> ids) {
  std::sort(ids.begin(), ids.end(), [&](int a, int b) { return t[a] > t[b] || (t[a] == t[b] && a < b); });
  if (c.params.top_k > 0 && ids.size() > static_cast<std::size_t>(c.params.top_k)) ids.resize(c.params.top_k);
  double total = 0, sum = 0;
  for (int id : ids) total += std::exp(t[id] - t[ids[0]]);
  std::vector<int> kept;
  for (int id : ids) {
    if (c.params.top_p < 1 && !kept.empty() && sum >= c.params.top_p * total) break;
    kept.push_back(id);
    sum += std::exp(t[id] - t[ids[0]]);
  }
  const double best = t[kept[0]];
  kept.erase(std::remove_if(kept.begin(), kept.end(), [&](int id) { return std::exp(t[id] - best) < c.params.min_p; }),
             kept.end());
  return kept;
}

int oracle(const Case& c) {
  Scores z(c.logits.begin(), c.logits.end());
  for (double& s : z) s = std::isnan(s) ? -INFINITY : s;
  oracle_memory(c, z);
  for (std::int32_t id : c.suppressed) z[id] = -INFINITY;
  for (const TokenBias& b : c.params.logit_bias) z[b.id] += b.delta;
  for (const TokenBias& b : c.bias) z[b.id] += b.delta;
  std::vector<std::int32_t> history = c.prompt;
  history.insert(history.end(), c.answer.begin(), c.answer.end());
  oracle_counts(c, history, z);
  oracle_dry(c, history, z);

  const auto is_allowed = [&](int id) { return c.mask.empty() || ((c.mask[id / 64] >> (id % 64)) & 1); };
  std::vector<int> scored, permitted;
  for (int id = 0; id < c.n_vocab; ++id) {
    if (z[id] == -INFINITY) continue;
    scored.push_back(id);
    if (is_allowed(id)) permitted.push_back(id);
  }
  if (permitted.empty()) return -1;
  if (c.params.temperature == 0) {
    return *std::max_element(permitted.begin(), permitted.end(), [&](int a, int b) { return z[a] < z[b]; });
  }
  for (double& s : z) s /= c.params.temperature;
  std::vector<int> kept = oracle_truncate(c, z, scored);
  kept.erase(std::remove_if(kept.begin(), kept.end(), [&](int id) { return !is_allowed(id); }), kept.end());
  if (kept.empty()) kept = oracle_truncate(c, z, permitted);
  int best = -1;
  double best_sum = -INFINITY;
  for (int id : kept) {
    const PhiloxWords words =
        philox(c.params.seed, c.position, (std::uint64_t{c.params.choice} << 32) + static_cast<std::uint64_t>(id / 4));
    const double v = (words[id % 4] + 0.5) / 4294967296.0;
    const double sum = z[id] - std::log(-std::log1p(-v));
    if (sum > best_sum || (sum == best_sum && id < best)) best = id, best_sum = sum;
  }
  return best;
}

class Maker {
 public:
  explicit Maker(std::uint32_t seed) : rng_(seed) {}

  bool coin(double p) { return std::uniform_real_distribution<>(0, 1)(rng_) < p; }
  float real(float low, float high) { return std::uniform_real_distribution<float>(low, high)(rng_); }
  int integer(int low, int high) { return std::uniform_int_distribution<>(low, high)(rng_); }

  Case make() {
    Case c;
    c.n_vocab = integer(1, 700);
    const float spread = real(0.2f, 6.0f);
    for (int i = 0; i < c.n_vocab; ++i) c.logits.push_back(std::normal_distribution<float>(0.0f, spread)(rng_));
    if (coin(0.2)) c.logits[token(c)] = NAN;
    if (coin(0.2)) c.logits[token(c)] = -INFINITY;
    // Few distinct tokens, so that the history repeats itself.
    const int distinct = integer(1, std::min(c.n_vocab, 6));
    for (int i = integer(0, 40); i > 0; --i) c.prompt.push_back(integer(0, distinct - 1));
    for (int i = integer(0, 40); i > 0; --i) c.answer.push_back(integer(0, distinct - 1));
    SamplingParams& p = c.params;
    p.temperature = coin(0.15) ? 0.0f : real(0.3f, 2.0f);
    if (coin(0.5)) p.top_k = coin(0.2) ? integer(1, 800) : integer(1, 40);
    if (coin(0.5)) p.top_p = coin(0.1) ? 0.0f : real(0.05f, 0.999f);
    if (coin(0.3)) p.min_p = real(0.0f, 0.3f);
    if (coin(0.4)) p.repetition_penalty = real(0.7f, 2.0f);
    if (coin(0.4)) p.presence_penalty = real(-1.0f, 2.0f);
    if (coin(0.4)) p.frequency_penalty = real(-0.2f, 0.5f);
    if (coin(0.5)) p.penalty_last_n = integer(0, 50);
    if (coin(0.4)) p.dry_multiplier = real(0.1f, 1.5f);
    p.dry_allowed_length = integer(1, 4);
    if (coin(0.3)) p.dry_penalty_last_n = integer(0, 60);
    if (coin(0.4)) p.dry_sequence_breakers = {integer(0, distinct - 1)};
    p.seed = rng_();
    p.choice = static_cast<std::uint32_t>(integer(0, 3));
    c.position = static_cast<std::uint64_t>(integer(0, 1000000));
    if (coin(0.3)) p.logit_bias = {{token(c), real(-5, 5)}, {token(c), coin(0.2) ? kNoScore : real(-5, 5)}};
    if (coin(0.3)) c.bias = {{token(c), real(-5, 5)}};
    if (coin(0.3)) c.suppressed = {token(c), token(c)};
    for (int i = coin(0.3) ? integer(1, 4) : 0; i > 0; --i) c.memory.push_back({token(c), real(0, 1), real(0, 0.6f)});
    if (coin(0.4)) {
      c.mask.assign((static_cast<std::size_t>(c.n_vocab) + 63) / 64, 0);
      const double density = coin(0.5) ? 0.02 : 0.5;
      for (int id = 0; id < c.n_vocab; ++id) c.mask[id / 64] |= std::uint64_t{coin(density)} << (id % 64);
    }
    return c;
  }

 private:
  std::int32_t token(const Case& c) { return integer(0, c.n_vocab - 1); }
  std::mt19937 rng_;
};

TEST(SamplerOracle, EveryStageAgreesWithTheObviousTwin) {
  Maker maker(2024);
  int compared = 0, fallen_back = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Case c = maker.make();
    const Status valid = c.params.validate(c.n_vocab);
    ASSERT_TRUE(static_cast<bool>(valid)) << valid.error().message;
    const int expected = oracle(c);
    if (expected < 0) continue;  // the odd cases have their own tests in sampler_test
    Sampler sampler(c.n_vocab, c.suppressed);
    SamplerState state(c.prompt);
    for (std::int32_t id : c.answer) state.accept(id);
    const RowInputs inputs{c.mask, c.bias, c.memory, {}};
    const Result<Sampled> sampled = sampler.sample(c.logits, c.params, state, inputs, c.position);
    ASSERT_TRUE(static_cast<bool>(sampled)) << sampled.error().message;
    ASSERT_EQ(sampled->id, expected) << "trial " << trial;
    ++compared;
    Case unmasked = c;
    unmasked.mask.clear();
    fallen_back += oracle(unmasked) != expected;
  }
  // The trials must have had something to say.
  EXPECT_GT(compared, 15000);
  EXPECT_GT(fallen_back, 1000);
}

}  // namespace
}  // namespace chimere
