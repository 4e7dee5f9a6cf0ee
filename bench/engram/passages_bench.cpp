// passages_bench.cpp  What it costs to find the nearest of many passages, from 10^3 to 10^6.
//
//   passages_bench [LARGEST [DIMENSIONS]]        vectors of random directions; medians over 51 queries,
//                                               of processor time, which a busy machine changes least
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "base/hash.h"
#include "retrieval/vector_search.h"

namespace {

std::vector<float> direction(uint64_t i, int d) {
  std::vector<float> v(static_cast<size_t>(d));
  double squares = 0;
  for (int j = 0; j < d; ++j) {
    const uint64_t noise = chimere::hash_mix(i * 4096 + static_cast<uint64_t>(j) + 1);
    v[static_cast<size_t>(j)] = static_cast<float>(static_cast<double>(noise >> 40) / (1 << 23) - 1);
    squares += static_cast<double>(v[static_cast<size_t>(j)]) * v[static_cast<size_t>(j)];
  }
  for (float& x : v) x = static_cast<float>(x / std::sqrt(squares));
  return v;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t largest = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
  const int d = argc > 2 ? std::atoi(argv[2]) : 384;
  std::printf("%s, %d dimensions\n%10s %12s %10s\n", chimere::retrieval::VectorSearch::implementation(), d, "passages",
              "us a query", "MB");
  chimere::retrieval::VectorSearch search(d);
  for (size_t n = 1000; n <= largest; n *= 10) {
    while (search.size() < n) search.add(direction(search.size(), d));
    std::vector<double> times;
    size_t found = 0;
    for (uint64_t q = 0; q < 51; ++q) {
      const std::vector<float> query = direction(~q, d);
      const std::clock_t start = std::clock();
      found += search.nearest(query, 5).size();
      times.push_back(static_cast<double>(std::clock() - start) * 1e6 / CLOCKS_PER_SEC);
    }
    std::nth_element(times.begin(), times.begin() + 25, times.end());
    std::printf("%10zu %12.1f %10.1f\n", n, times[25], static_cast<double>(n) * d * 4 / 1e6);
    if (found != 51 * 5) return 1;
  }
  return 0;
}
