// truncation_test.cpp  The surviving set itself, exactly, against a full sort; large, flat and tied rows included.
#include "sampling/truncation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sampling/weight.h"

namespace chimere {
namespace {

std::vector<int> survivors(const ScoreRow& row, const SamplingParams& params, float scale) {
  std::vector<Candidate> out;
  truncate(row, params, scale, out);
  std::vector<int> ids;
  for (const Candidate& c : out) ids.push_back(c.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

// The definition in truncation.h, word by word. Sums of weights are exact, so equality needs no tolerance.
std::vector<int> by_sorting(const ScoreRow& row, const SamplingParams& params, float scale) {
  std::vector<Candidate> all;
  for (std::int32_t id = 0; id < row.n_vocab(); ++id) {
    if (row[id] != kNoScore) all.push_back({id, row[id]});
  }
  std::sort(all.begin(), all.end(), better);
  if (params.top_k > 0 && all.size() > static_cast<std::size_t>(params.top_k)) all.resize(params.top_k);
  const auto t = [&](const Candidate& c) { return (c.score - row.max()) * scale; };
  double total = 0, sum = 0;
  for (const Candidate& c : all) total += weight(t(c));
  std::vector<int> ids;
  for (const Candidate& c : all) {
    if (params.top_p < 1.0f && sum >= static_cast<double>(params.top_p) * total && c.id != all[0].id) break;
    sum += weight(t(c));
    if (exp_nonpositive(t(c)) >= params.min_p) ids.push_back(c.id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Truncation, KeepsExactlyTheDefinedSet) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<float> unit(0.0f, 1.0f);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::size_t largest = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const int n = 2 + static_cast<int>(rng() % 6000);
    const float spread = unit(rng) * 5.0f;
    std::vector<float> logits(n);
    // Every third row has few distinct values: ties across the cut, which go to the lower id.
    for (float& l : logits) l = trial % 3 == 0 ? std::round(normal(rng) * spread) : normal(rng) * spread;
    logits[rng() % n] = kNoScore;
    ScoreRow row(n);
    row.load(logits);
    SamplingParams params;
    if (trial % 2 == 0) params.top_k = 1 + static_cast<int>(rng() % (trial % 4 == 0 ? 30 : 3000));
    if (trial % 5 != 0) params.top_p = unit(rng);
    if (trial % 7 == 0 || params.top_p == 1.0f) params.min_p = unit(rng) * 0.2f + 1e-4f;
    const float scale = 1.0f / (0.3f + 2.0f * unit(rng));
    ASSERT_TRUE(truncates(params, row));
    const std::vector<int> expected = by_sorting(row, params, scale);
    ASSERT_EQ(survivors(row, params, scale), expected) << "trial " << trial << ", " << n << " tokens";
    largest = std::max(largest, expected.size());
  }
  EXPECT_GT(largest, 1000u);
}

TEST(Truncation, EqualWeightsAreCutAtTheExactCount) {
  ScoreRow row(1000);
  row.load(std::vector<float>(1000, 2.5f));
  for (const int keep : {1, 2, 250, 500, 750}) {
    SamplingParams params;
    params.top_p = static_cast<float>(keep) / 1000.0f - 1e-5f;
    const std::vector<int> ids = survivors(row, params, 1.0f);
    ASSERT_EQ(ids.size(), static_cast<std::size_t>(keep));
    EXPECT_EQ(ids.back(), keep - 1);
  }
  // Exactly half: the sum that equals the target ends the nucleus.
  SamplingParams params;
  params.top_p = 0.5f;
  EXPECT_EQ(survivors(row, params, 1.0f).size(), 500u);
}

TEST(Truncation, IsOffByDefaultAndWhenTopKHoldsEverything) {
  ScoreRow row(10);
  SamplingParams params;
  EXPECT_FALSE(truncates(params, row));
  params.top_k = 10;
  EXPECT_FALSE(truncates(params, row));
  params.top_k = 9;
  EXPECT_TRUE(truncates(params, row));
}

}  // namespace
}  // namespace chimere
