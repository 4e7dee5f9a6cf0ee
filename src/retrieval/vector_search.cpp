#include "retrieval/vector_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "retrieval/isa/code_sums.h"

namespace chimere::retrieval {
namespace {

constexpr int kMaxCode = 127;

struct QueryCodes {
  std::vector<int16_t> codes;
  double scale = 0;
  double slack = 0;  // vector_search.h
};

// REQUIRES: all values are finite.
QueryCodes encode_query(std::span<const float> query) {
  double largest = 0;
  for (const float x : query) largest = std::max(largest, std::abs(static_cast<double>(x)));
  // Sums of products must fit 32 bits. Where that leaves a code few bits, for many dimensions, the slack grows.
  const size_t max_code = std::min<size_t>(std::numeric_limits<int16_t>::max(),
                                           std::numeric_limits<int32_t>::max() / (kMaxCode * query.size()));
  QueryCodes coded;
  coded.scale = largest / static_cast<double>(max_code);
  for (const float x : query) {
    const double code = largest > 0 ? std::nearbyint(x / coded.scale) : 0;
    coded.codes.push_back(static_cast<int16_t>(code));
    // A little over one half: codes of vectors are rounded from quotients of floats, which are rounded themselves.
    coded.slack += 0.5001 * std::abs(static_cast<double>(x)) + kMaxCode * std::abs(x - coded.scale * code);
  }
  return coded;
}

// Wider registers than those of AVX2 would wait for memory.
CodeSums& code_sums() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return code_sums_avx2;
#endif
  return code_sums_plain;
}

double product(const float* a, const float* b, size_t n) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t l = 0; l < 4; ++l) sums[l] += static_cast<double>(a[i + l]) * b[i + l];
  }
  for (; i < n; ++i) sums[i % 4] += static_cast<double>(a[i]) * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

struct Found {
  double score;
  size_t index;
};

bool better(const Found& a, const Found& b) { return a.score != b.score ? a.score > b.score : a.index < b.index; }

// Adds to a heap of the k best, the worst of them in front.
void keep_best(std::vector<Found>& heap, size_t k, Found found) {
  if (heap.size() == k) {
    if (!better(found, heap.front())) return;
    std::pop_heap(heap.begin(), heap.end(), better);
    heap.pop_back();
  }
  heap.push_back(found);
  std::push_heap(heap.begin(), heap.end(), better);
}

}  // namespace

void VectorSearch::add(std::span<const float> vectors) {
  CHECK(vectors.size() % dimensions_ == 0);
  const size_t had = vectors_.size();
  vectors_.insert(vectors_.end(), vectors.begin(), vectors.end());
  codes_.resize(vectors_.size());
  for (size_t at = had; at < vectors_.size(); at += dimensions_) {
    float largest = 0;
    for (size_t j = at; j < at + dimensions_; ++j) largest = std::max(largest, std::abs(vectors_[j]));
    // Not below the normal numbers, where quotients would leave the range of codes.
    const float scale = std::max(largest / kMaxCode, std::numeric_limits<float>::min());
    for (size_t j = at; j < at + dimensions_; ++j) {
      codes_[j] = static_cast<int8_t>(vectors_[j] / scale + std::copysign(0.5f, vectors_[j]));
    }
    scales_.push_back(scale);
  }
}

std::vector<Neighbour> VectorSearch::nearest(std::span<const float> query, size_t k) const {
  CHECK(query.size() == dimensions_);
  k = std::min(k, size());
  if (k == 0 || !std::all_of(query.begin(), query.end(), [](float x) { return std::isfinite(x); })) return {};
  const QueryCodes coded = encode_query(query);
  const auto exact = [&](size_t i) { return product(&vectors_[i * dimensions_], query.data(), dimensions_); };
  std::vector<int32_t> sums(size());
  code_sums()(codes_.data(), size(), dimensions_, coded.codes.data(), sums.data());
  std::vector<double> bounds(size());
  std::vector<Found> likely;
  for (size_t i = 0; i < size(); ++i) {
    bounds[i] = scales_[i] * (coded.scale * sums[i] + coded.slack);
    keep_best(likely, k, {bounds[i], i});
  }
  // Those of the highest bounds first: their k-th product is so close to the final one that few others are above it.
  std::vector<Found> best;
  for (const Found& found : likely) {
    keep_best(best, k, {exact(found.index), found.index});
    bounds[found.index] = -std::numeric_limits<double>::infinity();
  }
  for (size_t i = 0; i < size(); ++i) {
    if (bounds[i] >= best.front().score) keep_best(best, k, {exact(i), i});
  }
  std::sort_heap(best.begin(), best.end(), better);
  std::vector<Neighbour> neighbours;
  for (const Found& found : best) neighbours.push_back({found.index, static_cast<float>(found.score)});
  return neighbours;
}

}  // namespace chimere::retrieval
