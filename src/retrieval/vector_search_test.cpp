#include "retrieval/vector_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/hash.h"
#include "retrieval/isa/code_sums.h"

namespace chimere::retrieval {
namespace {

// Numbers between -1 and 1, from a fixed seed.
class Uniform {
 public:
  explicit Uniform(uint64_t seed) : state_(seed << 32) {}
  float operator()() { return static_cast<float>(static_cast<double>(hash_mix(++state_) >> 40) / (1 << 23) - 1); }

 private:
  uint64_t state_;
};

void normalise(std::span<float> v) {
  double squares = 0;
  for (const float x : v) squares += static_cast<double>(x) * x;
  for (float& x : v) x = static_cast<float>(x / std::sqrt(squares));
}

// [n, d], of length 1, each near one of n / 100 + 1 centres.
std::vector<float> clustered(size_t n, size_t d, Uniform& uniform) {
  const size_t n_centres = n / 100 + 1;
  std::vector<float> centres(n_centres * d), vectors(n * d);
  for (float& x : centres) x = uniform();
  for (size_t i = 0; i < n; ++i) {
    const size_t centre = hash_mix(i) % n_centres;
    for (size_t j = 0; j < d; ++j) vectors[i * d + j] = centres[centre * d + j] + 0.5f * uniform();
    normalise(std::span(vectors).subspan(i * d, d));
  }
  return vectors;
}

std::vector<Neighbour> naive_nearest(std::span<const float> vectors, std::span<const float> query, size_t k) {
  struct Scored {
    double score;
    size_t index;
  };
  std::vector<Scored> all(vectors.size() / query.size());
  for (size_t i = 0; i < all.size(); ++i) {
    double sums[4] = {};
    for (size_t j = 0; j < query.size(); ++j) {
      sums[j % 4] += static_cast<double>(vectors[i * query.size() + j]) * query[j];
    }
    all[i] = {(sums[0] + sums[1]) + (sums[2] + sums[3]), i};
  }
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  std::vector<Neighbour> best;
  for (size_t i = 0; i < std::min(k, all.size()); ++i) best.push_back({all[i].index, static_cast<float>(all[i].score)});
  return best;
}

void expect_as_naive(std::span<const float> vectors, std::span<const float> query, size_t k, const std::string& what) {
  VectorSearch search(static_cast<int>(query.size()));
  search.add(vectors);
  const auto found = search.nearest(query, k);
  const auto expected = naive_nearest(vectors, query, k);
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].index, expected[i].index) << what << ", rank " << i;
    EXPECT_EQ(found[i].score, expected[i].score) << what << ", rank " << i;
  }
}

#if defined(__x86_64__)
TEST(CodeSums, AreTheSameForEveryInstructionSet) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) GTEST_SKIP() << "no AVX2 here";
  for (const size_t d : {1, 5, 15, 16, 17, 31, 33, 64, 127, 384, 385, 1031}) {
    for (const size_t n : {0, 1, 7, 40}) {
      std::vector<int8_t> codes(n * d);
      for (size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<int8_t>(static_cast<int>(hash_mix(i) % 255) - 127);
      std::vector<int16_t> query(d);
      for (size_t i = 0; i < d; ++i) query[i] = static_cast<int16_t>(static_cast<int>(hash_mix(~i) % 30000) - 15000);
      std::vector<int32_t> plain(n), avx2(n);
      code_sums_plain(codes.data(), n, d, query.data(), plain.data());
      code_sums_avx2(codes.data(), n, d, query.data(), avx2.data());
      EXPECT_EQ(plain, avx2) << n << " of " << d;
    }
  }
}
#endif

TEST(VectorSearch, FindsWhatANaiveLoopFindsToTheBit) {
  Uniform uniform(1);
  for (const size_t d : {1, 2, 3, 7, 16, 33, 65, 127, 384, 385}) {
    for (const size_t n : {1, 2, 9, 101, 1009}) {
      const std::vector<float> vectors = clustered(n, d, uniform);
      std::vector<float> query(vectors.begin(), vectors.begin() + static_cast<std::ptrdiff_t>(d));
      for (float& x : query) x += 0.1f * uniform();
      for (const size_t k : {size_t{1}, size_t{10}, n + 3}) {
        expect_as_naive(vectors, query, k, std::to_string(n) + " of " + std::to_string(d) + ", k " + std::to_string(k));
      }
    }
  }
}

TEST(VectorSearch, OrdersEqualOnesByIndex) {
  Uniform uniform(2);
  constexpr size_t kDistinct = 5, kCopies = 40, kD = 19;
  const std::vector<float> distinct = clustered(kDistinct, kD, uniform);
  std::vector<float> vectors;
  for (size_t i = 0; i < kCopies; ++i) vectors.insert(vectors.end(), distinct.begin(), distinct.end());
  const std::vector<float> query(vectors.begin(), vectors.begin() + kD);
  for (const size_t k : {1, 39, 40, 41, 200}) expect_as_naive(vectors, query, k, "k " + std::to_string(k));
  const std::vector<float> zero(kD);
  expect_as_naive(vectors, zero, 7, "a query of zeros");
}

// The compact codes say nothing at all of these; the answer does not depend on that.
TEST(VectorSearch, FindsTheSameAmongVectorsOfEveryMagnitude) {
  Uniform uniform(3);
  constexpr size_t kN = 300, kD = 21;
  std::vector<float> vectors(kN * kD);
  for (size_t i = 0; i < kN; ++i) {
    const int exponent = static_cast<int>(hash_mix(i) % 276) - 149;  // from the smallest subnormal
    for (size_t j = 0; j < kD; ++j) {
      vectors[i * kD + j] = i % 7 == 0 ? 0 : std::ldexp(uniform(), j == 3 ? exponent : exponent - 20);
    }
  }
  vectors[5 * kD] = std::numeric_limits<float>::max();
  vectors[6 * kD] = -std::numeric_limits<float>::max();
  std::vector<float> query(kD);
  for (float& x : query) x = uniform();
  expect_as_naive(vectors, query, 20, "mixed magnitudes");
  expect_as_naive(vectors, query, kN, "all of them");
  for (float& x : query) x = -x;
  expect_as_naive(vectors, query, 20, "the other way");
  for (float& x : query) x = std::ldexp(x, -140);
  expect_as_naive(vectors, query, 20, "a subnormal query");
}

// So many that a query's code has 7 bits.
TEST(VectorSearch, TakesManyDimensions) {
  Uniform uniform(4);
  constexpr size_t kN = 17, kD = 131'075;
  const std::vector<float> vectors = clustered(kN, kD, uniform);
  const std::vector<float> query(vectors.begin() + kD, vectors.begin() + 2 * kD);
  expect_as_naive(vectors, query, 3, "many dimensions");
  // The largest sum of products that codes can have.
  const std::vector<float> ones(kD, 1.0f);
  expect_as_naive(ones, ones, 1, "ones");
}

TEST(VectorSearch, RecallsAllOfTheNearestAmongClusters) {
  Uniform uniform(5);
  constexpr size_t kN = 20'011, kD = 96, kQueries = 20;
  const std::vector<float> vectors = clustered(kN, kD, uniform);
  VectorSearch search(kD);
  search.add(vectors);
  for (size_t q = 0; q < kQueries; ++q) {
    std::vector<float> query(vectors.begin() + static_cast<std::ptrdiff_t>(q * 997 * kD),
                             vectors.begin() + static_cast<std::ptrdiff_t>((q * 997 + 1) * kD));
    for (float& x : query) x += 0.02f * uniform();
    normalise(query);
    const auto found = search.nearest(query, 10);
    const auto expected = naive_nearest(vectors, query, 10);
    ASSERT_EQ(found.size(), 10u);
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(found[i].index, expected[i].index) << "query " << q << ", rank " << i;
  }
}

TEST(VectorSearch, AnswersOfNothingAndOfOne) {
  VectorSearch search(3);
  const float query[] = {0, 1, 0};
  EXPECT_TRUE(search.nearest(query, 5).empty());
  search.add(std::span<const float>());
  EXPECT_EQ(search.size(), 0u);
  const float vector[] = {0.6f, 0.8f, 0};
  search.add(vector);
  EXPECT_TRUE(search.nearest(query, 0).empty());
  const auto found = search.nearest(query, 5);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].index, 0u);
  EXPECT_EQ(found[0].score, 0.8f);
  EXPECT_EQ(std::vector<float>(search.vectors().begin(), search.vectors().end()),
            std::vector<float>(vector, vector + 3));
  const float nowhere[] = {0, std::numeric_limits<float>::quiet_NaN(), 0};
  EXPECT_TRUE(search.nearest(nowhere, 5).empty());
}

// One at a time or all at once: the same index.
TEST(VectorSearch, GrowsByParts) {
  Uniform uniform(6);
  constexpr size_t kN = 203, kD = 13;
  const std::vector<float> vectors = clustered(kN, kD, uniform);
  VectorSearch whole(kD), parts(kD);
  whole.add(vectors);
  for (size_t i = 0; i < kN; ++i) parts.add(std::span(vectors).subspan(i * kD, kD));
  const std::span<const float> query = std::span(vectors).first(kD);
  const auto a = whole.nearest(query, kN), b = parts.nearest(query, kN);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].index, b[i].index);
    EXPECT_EQ(a[i].score, b[i].score);
  }
}

}  // namespace
}  // namespace chimere::retrieval
