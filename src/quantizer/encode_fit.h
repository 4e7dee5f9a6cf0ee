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
#include "quantizer/encode_eight.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

// Levels: the values of the codes, in units of the scale.

template <int kFirst, int kLast>
struct IntegerLevels {
  static constexpr float kLow = kFirst, kHigh = kLast;
  static Eight nearest(Eight v) { return rounded(larger(smaller(v, all_eight(kHigh)), all_eight(kLow))); }
  static constexpr int kFirstCode = kFirst;
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

  static Eight nearest(Eight v) {
    const Eight doubled = larger(smaller(v * 2.0f, all_eight(2.0f * kHigh)), all_eight(2.0f * kLow)) - 2.0f * kLow;
    float step[kEight], value[kEight];
    store_eight(step, doubled);
    for (int l = 0; l < kEight; ++l) value[l] = kTable.value[static_cast<int>(step[l])];
    return load_eight(value);
  }
  static int code(float level) { return kTable.code[static_cast<int>(2.0f * (level - kLow))]; }
};

// One scale: y = scale * level.

struct ScaleSums {
  float error;      // sum w (x - scale * level)^2
  float slope;      // sum w (x - scale * level) level
  float curvature;  // sum w level^2

  float step() const { return curvature > 0.0f ? slope / curvature : 0.0f; }  // to the best scale for these levels
};

// Under the levels nearest to x / scale.
template <class Levels, int kCount>
ScaleSums measure(const float* x, const float* w, float scale) {
  const Eight inverse = all_eight(inverse_of(scale)), step = all_eight(scale);
  Eight error{}, slope{}, curvature{};
  for (int i = 0; i < kCount; i += kEight) {
    const Eight value = load_eight(x + i), weight = load_eight(w + i);
    const Eight level = Levels::nearest(value * inverse);
    const Eight rest = value - step * level;
    const Eight weighted_level = weight * level;
    error += weight * rest * rest;
    slope += weighted_level * rest;
    curvature += weighted_level * level;
  }
  return {sum_of(error), sum_of(slope), sum_of(curvature)};
}

// Codes under a scale that is stored, given its inverse.
template <class Levels, int kCount>
void write_codes(const float* x, float inverse, uint8_t* codes) {
  for (int i = 0; i < kCount; i += kEight) {
    const Eight level = Levels::nearest(load_eight(x + i) * inverse);
    if constexpr (requires { Levels::kFirstCode; }) {
      store_codes(level - static_cast<float>(Levels::kFirstCode), codes + i);
    } else {
      float levels[kEight];
      store_eight(levels, level);
      for (int l = 0; l < kEight; ++l) codes[i + l] = static_cast<uint8_t>(Levels::code(levels[l]));
    }
  }
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
  const Eight inverse = all_eight(inverse_of(scale)), step = all_eight(scale), low = all_eight(base);
  Eight error{}, slope_scale{}, slope_base{}, square{}, cross{}, one{};
  for (int i = 0; i < kCount; i += kEight) {
    const Eight value = load_eight(x + i) - low, weight = load_eight(w + i);
    const Eight code = IntegerLevels<0, kHigh>::nearest(value * inverse);
    const Eight rest = value - step * code;
    const Eight weighted_rest = weight * rest, weighted_code = weight * code;
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
  const Eight inverse = all_eight(inverse_of(scale)), step = all_eight(scale), low = all_eight(base);
  Eight error{};
  for (int i = 0; i < kCount; i += kEight) {
    const Eight value = load_eight(x + i) - low;
    const Eight rest = value - step * IntegerLevels<0, kHigh>::nearest(value * inverse);
    error += load_eight(w + i) * rest * rest;
  }
  return sum_of(error);
}

// Eight pairs at once. The sum of the weights is the same for all.
struct EightPairSums {
  Eight error, slope_scale, slope_base, square, cross;
};

template <int kHigh, int kCount>
EightPairSums measure_eight_pairs(const float* x, const float* w, const Eight& scales, const Eight& bases) {
  const Eight inverse = inverse_of_eight(scales);
  EightPairSums sums{};
  for (int i = 0; i < kCount; ++i) {
    const Eight value = all_eight(x[i]) - bases, weight = all_eight(w[i]);
    const Eight code = IntegerLevels<0, kHigh>::nearest(value * inverse);
    const Eight rest = value - scales * code;
    const Eight weighted_rest = weight * rest, weighted_code = weight * code;
    sums.error += weighted_rest * rest;
    sums.slope_scale += weighted_rest * code;
    sums.slope_base += weighted_rest;
    sums.square += weighted_code * code;
    sums.cross += weighted_code;
  }
  return sums;
}

template <int kHigh, int kCount>
Eight pair_errors(const float* x, const float* w, const Eight& scales, const Eight& bases) {
  const Eight inverse = inverse_of_eight(scales);
  Eight error{};
  for (int i = 0; i < kCount; ++i) {
    const Eight value = all_eight(x[i]) - bases;
    const Eight rest = value - scales * IntegerLevels<0, kHigh>::nearest(value * inverse);
    error += all_eight(w[i]) * rest * rest;
  }
  return error;
}

template <int kHigh, int kCount>
void write_pair_codes(const float* x, float scale, float base, uint8_t* codes) {
  const Eight inverse = all_eight(inverse_of(scale)), low = all_eight(base);
  for (int i = 0; i < kCount; i += kEight) {
    store_codes(IntegerLevels<0, kHigh>::nearest((load_eight(x + i) - low) * inverse), codes + i);
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

// What is left of eight errors at the best scale and base for their codes: solve_pair in lanes.
template <bool kNoPositiveBase>
Eight errors_there(const EightPairSums& s, const Eight& bases, float one) {
  const Eight zero = all_eight(0.0f), c = all_eight(one), limit = s.square * c * 1e-5f;
  const Eight determinant = s.square * c - s.cross * s.cross;
  const Eight margin = limit - determinant;  // negative where the two can be told apart
  const Eight inverse = inverse_of_eight(determinant);
  const Eight scale_both = (s.slope_scale * c - s.slope_base * s.cross) * inverse;
  const Eight base_both = (s.slope_base * s.square - s.slope_scale * s.cross) * inverse;
  const Eight base_alone = s.slope_base * inverse_of_eight(c);
  Eight scale = where_below_zero(margin, scale_both, zero), base = where_below_zero(margin, base_both, base_alone);
  if (kNoPositiveBase) {
    const Eight over = zero - (bases + base);  // negative where the base would be positive
    const Eight scale_bound = (s.slope_scale + bases * s.cross) * inverse_of_eight(s.square);
    scale = where_below_zero(over, scale_bound, scale);
    base = where_below_zero(over, zero - bases, base);
  }
  const Eight gained = (scale * s.slope_scale + base * s.slope_base) * 2.0f -
                       (scale * scale * s.square + scale * base * s.cross * 2.0f + base * base * c);
  return s.error - gained;
}

// kNoPositiveBase: for types that store the base as a multiple of something negative.
template <int kHigh, int kCount, bool kNoPositiveBase, class Cuts>
PairFit fit_pair(const float* x, const float* w, const Cuts& cuts, int rounds) {
  Eight lows = load_eight(x), highs = lows;
  for (int i = kEight; i < kCount; i += kEight) {
    lows = smaller(lows, load_eight(x + i));
    highs = larger(highs, load_eight(x + i));
  }
  float low = smallest_of(lows);
  const float high = largest_of(highs);
  if (kNoPositiveBase) low = std::min(low, 0.0f);
  PairFit best{0.0f, low, 0.0f, 0.0f, 1.0f};
  if (!(high > low)) return best;
  float least = INFINITY;
  const auto try_sums = [&](float scale, float base, const PairSums& s) {
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
  float one = 0.0f;
  for (int i = 0; i < kCount; ++i) one += w[i];
  for (size_t at = 0; at < cuts.size(); at += kEight) {
    float scales[kEight], bases[kEight];
    for (size_t l = 0; l < kEight; ++l) {
      const PairCut cut = cuts[std::min(at + l, cuts.size() - 1)];
      scales[l] = (high - low) / (static_cast<float>(kHigh) + cut.low + cut.high);
      bases[l] = low + cut.low * scales[l];
      if (kNoPositiveBase) bases[l] = std::min(0.0f, bases[l]);
    }
    const EightPairSums sums = measure_eight_pairs<kHigh, kCount>(x, w, load_eight(scales), load_eight(bases));
    const int l = least_lane(errors_there<kNoPositiveBase>(sums, load_eight(bases), one));
    float error[kEight], slope_scale[kEight], slope_base[kEight], square[kEight], cross[kEight];
    store_eight(error, sums.error);
    store_eight(slope_scale, sums.slope_scale);
    store_eight(slope_base, sums.slope_base);
    store_eight(square, sums.square);
    store_eight(cross, sums.cross);
    try_sums(scales[l], bases[l], {error[l], slope_scale[l], slope_base[l], square[l], cross[l], one});
  }
  for (int round = 0; round < rounds; ++round) {
    if (!try_sums(best.scale, best.base, measure_pair<kHigh, kCount>(x, w, best.scale, best.base))) break;
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

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
