// compare_for_test.h  How far two runs are apart: rows of logits or hidden states.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace chimere {

// Infinite where either is not finite.
inline float max_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  float worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const float d = std::abs(a[i] - b[i]);
    worst = std::isfinite(d) ? std::max(worst, d) : INFINITY;
  }
  return worst;
}

// Equal bits; says which of the rows of `width` is the first that differs, and where.
inline testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b, size_t width) {
  if (a.size() != b.size()) return testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return testing::AssertionFailure() << "row " << i / width << " is not finite";
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return testing::AssertionFailure() << "row " << i / width << " value " << i % width << ": " << a[i] << " and "
                                         << b[i];
    }
  }
  return testing::AssertionSuccess();
}

// Mean Kullback-Leibler divergence of q from p over all rows of v logits, in nats.
inline double mean_divergence(std::span<const float> p, std::span<const float> q, size_t v) {
  EXPECT_EQ(p.size(), q.size());
  const auto log_total = [v](const float* row) {
    const double top = *std::max_element(row, row + v);
    double sum = 0;
    for (size_t i = 0; i < v; ++i) sum += std::exp(row[i] - top);
    return top + std::log(sum);
  };
  double total = 0;
  for (size_t r = 0; r < p.size(); r += v) {
    const double lp = log_total(&p[r]), lq = log_total(&q[r]);
    for (size_t i = 0; i < v; ++i) {
      const double log_p = p[r + i] - lp;
      total += std::exp(log_p) * (log_p - (q[r + i] - lq));
    }
  }
  return total / static_cast<double>(p.size() / v);
}

// Of the angle between two vectors; 1 for two of zeros.
inline double cosine(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return aa == 0 && bb == 0 ? 1 : ab / std::sqrt(aa * bb);
}

}  // namespace chimere
