// encode_fit.h  The best scale, or scale and base, of a few values whose codes are small integers.
//
// For given codes the best scale follows from least squares, for a given scale the best codes from rounding. What
// remains is a jagged line of many minima: candidates around the largest magnitude find a good one, alternating the two
// steps goes down to its bottom. Errors are sums of squared residuals, never differences of large sums, so that floats
// order even the candidates of 8-bit types.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_lanes.h"

namespace chimere::quantizer {

// Levels: the values of the codes, in units of the scale.

template <int kFirst, int kLast>
struct IntegerLevels {
  static constexpr float kLow = kFirst, kHigh = kLast;
  static Lanes nearest(Lanes v) { return rounded(larger(smaller(v, all_lanes(kHigh)), all_lanes(kLow))); }
  static int code(float level) { return static_cast<int>(level) - kFirst; }
};

// All midpoints between the sixteen values are multiples of one half, so a table of half steps decides exactly.
struct BookLevels {
  static constexpr float kLow = kIq4Values[0], kHigh = kIq4Values[15];
  static constexpr int kSteps = 2 * (kIq4Values[15] - kIq4Values[0]) + 1;
  struct Table {
    float value[kSteps];
    uint8_t code[kSteps];
  };
  static constexpr Table kTable = [] {
    Table table{};
    for (int i = 0, code = 0; i < kSteps; ++i) {
      const int doubled = i + 2 * kIq4Values[0];  // the half step from doubled / 2 upwards
      while (code < 15 && doubled >= kIq4Values[code] + kIq4Values[code + 1]) ++code;
      table.value[i] = kIq4Values[code];
      table.code[i] = static_cast<uint8_t>(code);
    }
    return table;
  }();

  static Lanes nearest(Lanes v) {
    const Lanes doubled = larger(smaller(v * 2.0f, all_lanes(2.0f * kHigh)), all_lanes(2.0f * kLow)) - 2.0f * kLow;
    using Indices [[gnu::vector_size(16)]] = int;
    const Indices i = __builtin_convertvector(doubled, Indices);
    return Lanes{kTable.value[i[0]], kTable.value[i[1]], kTable.value[i[2]], kTable.value[i[3]]};
  }
  static int code(float level) { return kTable.code[static_cast<int>(2.0f * (level - kLow))]; }
};

// One scale: y = scale * level.

struct ScaleSums {
  float error;      // sum w (x - scale * level)^2
  float slope;      // sum w (x - scale * level) level
  float curvature;  // sum w level^2

  float step() const { return curvature > 0.0f ? slope / curvature : 0.0f; }  // to the best scale for these levels
  float error_there() const { return error - slope * step(); }
};

// Under the levels nearest to x / scale.
template <class Levels, int kCount>
ScaleSums measure(const float* x, const float* w, float scale) {
  const Lanes inverse = all_lanes(inverse_of(scale)), step = all_lanes(scale);
  Lanes error{}, slope{}, curvature{};
  for (int i = 0; i < kCount; i += kLanes) {
    const Lanes value = load_lanes(x + i), weight = load_lanes(w + i);
    const Lanes level = Levels::nearest(value * inverse);
    const Lanes rest = value - step * level;
    const Lanes weighted_level = weight * level;
    error += weight * rest * rest;
    slope += weighted_level * rest;
    curvature += weighted_level * level;
  }
  return {sum_of(error), sum_of(slope), sum_of(curvature)};
}

// The error alone: for a scale that is stored.
template <class Levels, int kCount>
float scale_error(const float* x, const float* w, float scale) {
  const Lanes inverse = all_lanes(inverse_of(scale)), step = all_lanes(scale);
  Lanes error{};
  for (int i = 0; i < kCount; i += kLanes) {
    const Lanes value = load_lanes(x + i);
    const Lanes rest = value - step * Levels::nearest(value * inverse);
    error += load_lanes(w + i) * rest * rest;
  }
  return sum_of(error);
}

// Codes under a scale that is stored.
template <class Levels, int kCount>
void write_codes(const float* x, float scale, uint8_t* codes) {
  const Lanes inverse = all_lanes(inverse_of(scale));
  for (int i = 0; i < kCount; i += kLanes) {
    float level[kLanes];
    store_lanes(level, Levels::nearest(load_lanes(x + i) * inverse));
    for (int l = 0; l < kLanes; ++l) codes[i + l] = static_cast<uint8_t>(Levels::code(level[l]));
  }
}

// The element of largest magnitude, with its sign.
template <int kCount>
float peak_of(const float* x) {
  Lanes low{}, high{};
  for (int i = 0; i < kCount; i += kLanes) {
    low = smaller(low, load_lanes(x + i));
    high = larger(high, load_lanes(x + i));
  }
  const float least = smallest_of(low), most = largest_of(high);
  return -least > most ? least : most;
}

struct ScaleFit {
  float scale;
  float curvature;
};

// Tries peak / divisor for each of the divisors and goes on from the best.
template <class Levels, int kCount, class Divisors>
ScaleFit fit_scale(const float* x, const float* w, const Divisors& divisors, int rounds) {
  const float peak = peak_of<kCount>(x);
  if (peak == 0.0f) return {0.0f, 0.0f};
  ScaleFit best{};
  float least = INFINITY;
  const auto try_scale = [&](float scale) {
    const ScaleSums sums = measure<Levels, kCount>(x, w, scale);
    const float error = sums.error_there();
    if (!(error < least)) return false;
    least = error;
    best = {scale + sums.step(), sums.curvature};
    return true;
  };
  for (const float divisor : divisors) try_scale(peak / divisor);
  for (int round = 0; round < rounds; ++round) {
    if (!try_scale(best.scale)) break;
  }
  return best;
}

// A scale and a base: y = scale * code + base, codes 0..kHigh.

struct PairSums {
  float error;               // sum w r^2, r = x - scale * code - base
  float slope_scale;         // sum w r code
  float slope_base;          // sum w r
  float square, cross, one;  // sums of w code^2, w code, w
};

template <int kHigh, int kCount>
PairSums measure_pair(const float* x, const float* w, float scale, float base) {
  const Lanes inverse = all_lanes(inverse_of(scale)), step = all_lanes(scale), low = all_lanes(base);
  Lanes error{}, slope_scale{}, slope_base{}, square{}, cross{}, one{};
  for (int i = 0; i < kCount; i += kLanes) {
    const Lanes value = load_lanes(x + i) - low, weight = load_lanes(w + i);
    const Lanes code = IntegerLevels<0, kHigh>::nearest(value * inverse);
    const Lanes rest = value - step * code;
    const Lanes weighted_rest = weight * rest, weighted_code = weight * code;
    error += weighted_rest * rest;
    slope_scale += weighted_rest * code;
    slope_base += weighted_rest;
    square += weighted_code * code;
    cross += weighted_code;
    one += weight;
  }
  return {sum_of(error), sum_of(slope_scale), sum_of(slope_base), sum_of(square), sum_of(cross), sum_of(one)};
}

// The error alone: for scale and base that are stored.
template <int kHigh, int kCount>
float pair_error(const float* x, const float* w, float scale, float base) {
  const Lanes inverse = all_lanes(inverse_of(scale)), step = all_lanes(scale), low = all_lanes(base);
  Lanes error{};
  for (int i = 0; i < kCount; i += kLanes) {
    const Lanes value = load_lanes(x + i) - low;
    const Lanes rest = value - step * IntegerLevels<0, kHigh>::nearest(value * inverse);
    error += load_lanes(w + i) * rest * rest;
  }
  return sum_of(error);
}

template <int kHigh, int kCount>
void write_pair_codes(const float* x, float scale, float base, uint8_t* codes) {
  const Lanes inverse = all_lanes(inverse_of(scale)), low = all_lanes(base);
  for (int i = 0; i < kCount; i += kLanes) {
    float code[kLanes];
    store_lanes(code, IntegerLevels<0, kHigh>::nearest((load_lanes(x + i) - low) * inverse));
    for (int l = 0; l < kLanes; ++l) codes[i + l] = static_cast<uint8_t>(code[l]);
  }
}

struct PairFit {
  float scale, base;
  float square, cross, one;  // of the codes it was fitted to
};

// What two unknowns change to when a quadratic is minimised: see solve_pair.
struct PairStep {
  float first, second;
};

// Minimises  a u^2 + 2 b u v + c v^2 - 2 (p u + q v)  over u and v. Where nothing tells them apart, over v alone.
inline PairStep solve_pair(float a, float b, float c, float p, float q) {
  const float determinant = a * c - b * b;
  if (determinant > 1e-5f * a * c) return {(p * c - q * b) / determinant, (q * a - p * b) / determinant};
  return {0.0f, c > 0.0f ? q / c : 0.0f};
}

// Each candidate cuts or leaves room at both ends: the lowest value comes to -cut.low, the highest to kHigh + cut.high.
struct PairCut {
  float low, high;
};

// kNoPositiveBase: for types that store the base as a multiple of something negative.
template <int kHigh, int kCount, bool kNoPositiveBase, class Cuts>
PairFit fit_pair(const float* x, const float* w, const Cuts& cuts, int rounds) {
  Lanes low_lanes = load_lanes(x), high_lanes = low_lanes;
  for (int i = kLanes; i < kCount; i += kLanes) {
    low_lanes = smaller(low_lanes, load_lanes(x + i));
    high_lanes = larger(high_lanes, load_lanes(x + i));
  }
  float low = smallest_of(low_lanes);
  const float high = largest_of(high_lanes);
  if (kNoPositiveBase) low = std::min(low, 0.0f);
  PairFit best{0.0f, low, 0.0f, 0.0f, 1.0f};
  if (!(high > low)) return best;
  float least = INFINITY;
  const auto try_pair = [&](float scale, float base) {
    const PairSums s = measure_pair<kHigh, kCount>(x, w, scale, base);
    PairStep step = solve_pair(s.square, s.cross, s.one, s.slope_scale, s.slope_base);
    if (kNoPositiveBase && base + step.second > 0.0f) {
      step.second = -base;
      step.first = s.square > 0.0f ? (s.slope_scale - step.second * s.cross) / s.square : 0.0f;
    }
    const float gained = 2.0f * (step.first * s.slope_scale + step.second * s.slope_base) -
                         (step.first * step.first * s.square + 2.0f * step.first * step.second * s.cross +
                          step.second * step.second * s.one);
    if (!(s.error - gained < least)) return false;
    least = s.error - gained;
    best = {scale + step.first, base + step.second, s.square, s.cross, s.one};
    return true;
  };
  for (const PairCut cut : cuts) {
    const float scale = (high - low) / (static_cast<float>(kHigh) + cut.low + cut.high);
    try_pair(scale, kNoPositiveBase ? std::min(0.0f, low + cut.low * scale) : low + cut.low * scale);
  }
  for (int round = 0; round < rounds; ++round) {
    if (!try_pair(best.scale, best.base)) break;
  }
  return best;
}

// Candidates, evenly spaced over a range.
template <int kCount>
constexpr std::array<float, kCount> spaced(float from, float to) {
  std::array<float, kCount> out{};
  for (int i = 0; i < kCount; ++i) {
    out[static_cast<size_t>(i)] = from + (to - from) * static_cast<float>(i) / static_cast<float>(kCount - 1);
  }
  return out;
}

template <size_t kFirst, size_t kSecond>
constexpr std::array<float, kFirst + kSecond> joined(const std::array<float, kFirst>& a,
                                                     const std::array<float, kSecond>& b) {
  std::array<float, kFirst + kSecond> out{};
  for (size_t i = 0; i < kFirst; ++i) out[i] = a[i];
  for (size_t i = 0; i < kSecond; ++i) out[kFirst + i] = b[i];
  return out;
}

template <size_t kLows, size_t kHighs>
constexpr std::array<PairCut, kLows * kHighs> all_cuts(const std::array<float, kLows>& low,
                                                       const std::array<float, kHighs>& high) {
  std::array<PairCut, kLows * kHighs> out{};
  for (size_t i = 0; i < kLows; ++i) {
    for (size_t j = 0; j < kHighs; ++j) out[i * kHighs + j] = {low[i], high[j]};
  }
  return out;
}

}  // namespace chimere::quantizer
