// passages_bench.cpp  What it costs to find the 10 nearest of many passages, from 10^3 to 10^6, beside a loop over the
// floats, and how many of its answers are found.
//
//   passages_bench [LARGEST [DIMENSIONS]]
//
// Three kinds of vectors, each of length 1: of random directions; in clusters of about 100, where neighbours are close
// together; and in a narrow cone with one large coordinate, as encoders give them. Medians and ranges over 51 queries,
// of processor time, which a busy machine changes least.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/hash.h"
#include "retrieval/vector_search.h"

namespace {

using chimere::retrieval::Neighbour;
using chimere::retrieval::VectorSearch;

constexpr size_t kNearest = 10;
constexpr uint64_t kQueries = 51;

enum class Kind { random, clustered, cone };

double us_since(std::clock_t start) { return static_cast<double>(std::clock() - start) * 1e6 / CLOCKS_PER_SEC; }

// Nearly normal: the sum of four uniform numbers.
double noise(uint64_t i, uint64_t j) {
  const uint64_t bits = chimere::hash_mix(i * 4096 + j + 1);
  double sum = 0;
  for (int k = 0; k < 64; k += 16) sum += static_cast<double>((bits >> k) & 0xffff) / 65536 - 0.5;
  return sum;
}

void append(Kind kind, uint64_t i, size_t n_clusters, int d, std::vector<float>& out) {
  const size_t at = out.size();
  double squares = 0;
  for (uint64_t j = 0; j < static_cast<uint64_t>(d); ++j) {
    double x = noise(i, j);
    if (kind == Kind::clustered) x = 0.7 * x + noise((uint64_t{1} << 40) + chimere::hash_mix(i) % n_clusters, j);
    if (kind == Kind::cone) x += j == 7 ? 8 : 1.2 * noise(uint64_t{1} << 41, j);
    squares += x * x;
    out.push_back(static_cast<float>(x));
  }
  for (size_t j = at; j < out.size(); ++j) out[j] = static_cast<float>(out[j] / std::sqrt(squares));
}

// The k best by a loop over the floats.
std::vector<Neighbour> plain_nearest(std::span<const float> vectors, std::span<const float> query) {
  std::vector<Neighbour> all(vectors.size() / query.size());
  for (size_t i = 0; i < all.size(); ++i) {
    float sums[16] = {};
    const float* v = vectors.data() + i * query.size();
    for (size_t j = 0; j + 16 <= query.size(); j += 16) {
      for (size_t l = 0; l < 16; ++l) sums[l] += v[j + l] * query[j + l];
    }
    for (size_t j = query.size() / 16 * 16; j < query.size(); ++j) sums[0] += v[j] * query[j];
    float sum = 0;
    for (const float s : sums) sum += s;
    all[i] = {i, sum};
  }
  std::partial_sort(all.begin(), all.begin() + kNearest, all.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.score > b.score; });
  all.resize(kNearest);
  return all;
}

void measure(Kind kind, const char* name, size_t n, int d) {
  std::vector<float> vectors;
  for (uint64_t i = 0; i < n; ++i) append(kind, i, n / 100, d, vectors);
  std::clock_t start = std::clock();
  VectorSearch search(d);
  search.add(vectors);
  const double build_ms = us_since(start) / 1e3;
  std::vector<double> times, plain_times;
  size_t hits = 0;
  for (uint64_t q = 0; q < kQueries; ++q) {
    std::vector<float> query;
    append(kind, (uint64_t{1} << 42) + q, n / 100, d, query);
    start = std::clock();
    const std::vector<Neighbour> found = search.nearest(query, kNearest);
    times.push_back(us_since(start));
    start = std::clock();
    const std::vector<Neighbour> expected = plain_nearest(vectors, query);
    plain_times.push_back(us_since(start));
    for (const Neighbour& e : expected) {
      hits += std::any_of(found.begin(), found.end(), [&](const Neighbour& f) { return f.index == e.index; });
    }
  }
  std::sort(times.begin(), times.end());
  std::sort(plain_times.begin(), plain_times.end());
  std::printf("%10s %8zu %10.1f %9.1f %9.1f %12.1f %8.4f %9.1f %8.1f\n", name, n, times[kQueries / 2], times.front(),
              times.back(), plain_times[kQueries / 2], static_cast<double>(hits) / (kNearest * kQueries), build_ms,
              static_cast<double>(n) * (5.0 * d + 4) / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t largest = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
  const int d = argc > 2 ? std::atoi(argv[2]) : 384;
  std::printf("%10s %8s %10s %9s %9s %12s %8s %9s %8s\n", "vectors", "n", "us median", "least", "most", "us, floats",
              "recall", "build ms", "MB");
  for (size_t n = 1000; n <= largest; n *= 10) {
    measure(Kind::random, "random", n, d);
    measure(Kind::clustered, "clustered", n, d);
    measure(Kind::cone, "cone", n, d);
  }
  return 0;
}
