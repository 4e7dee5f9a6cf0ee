// vector_search.h  The nearest of many vectors, by inner product: exact, and a quarter of the bytes of a plain scan.
//
// Reading every float costs more than multiplying it, so a query scans a compact copy, one signed byte a coordinate and
// one scale a vector, and computes the true product only where the compact one leaves the outcome open. Let v be a
// vector, s = max|v[j]| / 127 its scale, c[j] = round(v[j] / s) its codes, and likewise t and u[j] (16 bits) for the
// query q. Then
//
//   sum q[j] v[j]  <=  s * (t * sum u[j] c[j] + slack)      slack = sum |q[j]| / 2 + 127 sum |q[j] - t u[j]|
//
// because |v[j] - s c[j]| <= s/2 and |c[j]| <= 127. The slack depends on the query alone. The true products of
// the k vectors of highest bounds come first; every other vector whose bound is below the k-th of them cannot be among the
// k best and is passed over. The answer is that of a loop over the floats, whatever the vectors are; only the time depends
// on them.
//
// Products are sums of doubles in a fixed order, every fourth coordinate together. A product of two floats is exact in a
// double, so fused and separate multiplication agree, and every machine gives the same bits. Equal ones are ordered by
// index.
// Time, memory and what was rejected: docs/decisions/0005-exact-vector-scan.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace chimere::retrieval {

struct Neighbour {
  size_t index = 0;
  float score = 0;
};

class VectorSearch {
 public:
  // REQUIRES: 0 < dimensions <= 2^20.
  explicit VectorSearch(int dimensions) : dimensions_(static_cast<size_t>(dimensions)) {}

  // REQUIRES: vectors.size() is a multiple of the dimensions, and all values are finite.
  void add(std::span<const float> vectors);
  size_t size() const { return scales_.size(); }
  // [size() * dimensions], in the order they were added.
  std::span<const float> vectors() const { return vectors_; }
  // The k best, best first; fewer when there are fewer, and none for a query with a value that is not finite.
  // REQUIRES: query.size() == dimensions.
  std::vector<Neighbour> nearest(std::span<const float> query, size_t k) const;

 private:
  size_t dimensions_;
  std::vector<float> vectors_;  // [size, dimensions]
  std::vector<int8_t> codes_;   // [size, dimensions]
  std::vector<float> scales_;   // [size]
};

}  // namespace chimere::retrieval
