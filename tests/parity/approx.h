// approx.h  Numbers with bounds on their errors: how far norms and products may be from the oracle's.
//
// kUlp = 2^-24 is the relative rounding error of one float32 operation.
//   float products   Each of K fused steps rounds the sum so far. At worst that is K kUlp sum|w x|. But weights are
//                    random, so sums so far stay below 4 |w x| (the norm of the products), and errors have random
//                    signs: 8 standard deviations of sqrt(K / 3) kUlp times that are 19 sqrt(K) kUlp |w x|.
//   8-bit products   A block of 32 activations has the step d = max|x| / 127, each is off by at most d / 2. Hoeffding:
//                    the sum is off by more than 4 |w d| with probability 3e-14, and never by more than sum|w| d / 2.
// Where two are given, the smaller one is allowed.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/packed_matrix.h"
#include "program.h"

namespace chimere::parity {

inline constexpr double kUlp = 0x1p-24;

// Numbers and how far off each may be.
struct Approx {
  std::vector<double> value, error;
  size_t size() const { return value.size(); }
};

inline Approx exactly(const std::vector<float>& v) {
  return {{v.begin(), v.end()}, std::vector<double>(v.size(), 0.0)};
}

// The mean square is off by at most n kUlp, with random signs by 8 sqrt(n) kUlp; its root by half of that. A root, a
// division and two products follow.
inline Approx normed(const Approx& x, const std::vector<float>& weight, double eps) {
  double sum = 0;
  for (double v : x.value) sum += v * v;
  const double n = static_cast<double>(x.size()), scale = 1.0 / std::sqrt(sum / n + eps);
  Approx y = x;
  for (size_t i = 0; i < x.size(); ++i) {
    y.value[i] = x.value[i] * scale * weight[i];
    y.error[i] = (std::min(n / 2, 4 * std::sqrt(n)) + 4) * kUlp * std::abs(y.value[i]);
  }
  return y;
}

// The mean is off by at most n kUlp of the mean size, with random signs by 8 sqrt(n) kUlp; what that does to the variance
// is of second order. The rest is as with `normed`.
inline Approx layer_normed(const Approx& x, const std::vector<float>& weight, const std::vector<float>& bias,
                           double eps) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, size = 0, variance = 0;
  for (double v : x.value) mean += v / n, size += std::abs(v) / n;
  for (double v : x.value) variance += (v - mean) * (v - mean) / n;
  const double of_mean = std::min(n, 8 * std::sqrt(n)) * kUlp * size, scale = 1.0 / std::sqrt(variance + eps);
  Approx y = x;
  for (size_t i = 0; i < x.size(); ++i) {
    const double product = (x.value[i] - mean) * scale * weight[i];
    y.value[i] = product + bias[i];
    y.error[i] = (of_mean + kUlp * std::abs(x.value[i])) * scale * std::abs(weight[i]) +
                 ((std::min(n / 2, 4 * std::sqrt(n)) + 4) * std::abs(product) + std::abs(y.value[i])) * kUlp;
  }
  return y;
}

// W x for rows [first, first + n) of a matrix.
inline Approx product(const ProgramForTest& p, MatrixId id, int64_t first, int64_t n, const Approx& x, bool int8) {
  const DType type = p.program.matrices[id].type;
  const bool floats = type == DType::F32 || type == DType::F16 || type == DType::BF16;
  const bool eight_bit = int8 && !floats && cpu::PackedMatrix::supports(type);
  const size_t k = x.size();
  std::vector<double> step(k, 0.0);
  if (eight_bit) {
    for (size_t b = 0; b < k; b += 32) {
      double top = 0;
      for (size_t i = b; i < std::min(k, b + 32); ++i) top = std::max(top, std::abs(x.value[i]) + x.error[i]);
      std::fill(step.begin() + b, step.begin() + std::min(k, b + 32), top / 127);
    }
  }
  Approx y;
  for (int64_t r = first; r < first + n; ++r) {
    const std::vector<float> w = p.row(id, r);
    double sum = 0, size = 0, size2 = 0, steps = 0, steps2 = 0, carried = 0, carried2 = 0;
    for (size_t i = 0; i < k; ++i) {
      const double a = std::abs(w[i]), wx = a * (std::abs(x.value[i]) + step[i]);
      sum += w[i] * x.value[i];
      size += wx;
      size2 += wx * wx;
      steps += a * step[i];
      steps2 += a * step[i] * a * step[i];
      carried += a * x.error[i];
      carried2 += a * x.error[i] * a * x.error[i];
    }
    const auto n_terms = static_cast<double>(k + 4);
    const double rounding = kUlp * std::min(n_terms * size, 19 * std::sqrt(n_terms * size2));
    // Errors of the input are bounds. Each adds as it likes, or all of them follow one factor, that of a norm; random
    // weights make of either a random walk. Bounds on 8-bit errors are 14 standard deviations wide already.
    const double from_input = std::min(carried, (eight_bit ? 1 : 4) * std::sqrt(carried2));
    y.value.push_back(sum);
    y.error.push_back(rounding + from_input + std::min(4 * std::sqrt(steps2), steps / 2));
  }
  return y;
}

// An activation of gate and up. 16 kUlp: what a vector exponential of a few units in the last place, a division and two
// products may add.
inline Approx activated(op::Activation activation, const Approx& g, const Approx& u) {
  Approx h;
  for (size_t i = 0; i < u.size(); ++i) {
    const double up = u.value[i], up_error = u.error[i];
    if (activation == op::Activation::relu2) {
      h.value.push_back(up > 0 ? up * up : 0);
      h.error.push_back(2 * std::abs(up) * up_error + up_error * up_error + 2 * kUlp * h.value.back());
      continue;
    }
    // The slope of silu is at most 1.1, that of x sigmoid(1.702 x) too.
    const bool clamped = activation == op::Activation::clamped_swiglu;
    const double gate = clamped ? std::min(g.value[i], 7.0) : g.value[i];
    const double silu = gate / (1 + std::exp(-gate * (clamped ? 1.702 : 1.0)));
    const double factor = clamped ? std::clamp(up, -7.0, 7.0) + 1 : up;
    h.value.push_back(silu * factor);
    h.error.push_back(1.1 * g.error[i] * (std::abs(factor) + up_error) + std::abs(silu) * up_error +
                      16 * kUlp * (std::abs(silu * factor) + std::abs(silu)));
  }
  return h;
}

struct ExpertForTest {
  MatrixId gate, up, down;
  VectorId gate_bias = kNone, up_bias = kNone, down_bias = kNone;
};

// down(activation(gate x, up x)) of one expert.
inline Approx expert_output(const ProgramForTest& p, const ExpertForTest& e, op::Activation activation, int expert,
                            const Approx& x, bool int8) {
  const auto part = [&](MatrixId id, VectorId bias, const Approx& in) {
    const auto rows = static_cast<int64_t>(p.program.matrices[id].ne[1]);
    Approx y = product(p, id, expert * rows, rows, in, int8);
    for (int64_t i = 0; bias != kNone && i < rows; ++i) {
      const double b = p.program.vectors[bias][expert * rows + i];
      y.value[i] += b;
      y.error[i] += 2 * kUlp * (std::abs(b) + std::abs(y.value[i]));
    }
    return y;
  };
  const Approx u = part(e.up, e.up_bias, x);
  const Approx g = e.gate == kNone ? u : part(e.gate, e.gate_bias, x);
  return part(e.down, e.down_bias, activated(activation, g, u));
}

}  // namespace chimere::parity
