// encode_abreast.h  The best scales of eight blocks, or parts of a block, side by side: a lane each.
//
// All candidates are tried on eight of them at a time. Sums grow value by value and none goes across lanes, so that a
// lane's bits do not depend on its neighbours.
#pragma once

#include <cmath>

#include "quantizer/encode_eight.h"
#include "quantizer/encode_fit.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

template <int kCount>
struct Abreast {
  Eight x[kCount], w[kCount];
};

// Eight rows of values, column by column.
template <int kCount>
void set_columns(const float* const* rows, Eight* columns) {
#ifdef __AVX2__
  for (int i = 0; i < kCount; i += kEight) {
    __m256 pair[kEight], four[kEight];
    for (int r = 0; r < kEight; r += 2) {
      const __m256 a = _mm256_loadu_ps(rows[r] + i), b = _mm256_loadu_ps(rows[r + 1] + i);
      pair[r] = _mm256_unpacklo_ps(a, b);
      pair[r + 1] = _mm256_unpackhi_ps(a, b);
    }
    for (int r = 0; r < kEight; r += 4) {
      for (int k = 0; k < 2; ++k) {
        four[r + 2 * k] = _mm256_shuffle_ps(pair[r + k], pair[r + 2 + k], 0x44);
        four[r + 2 * k + 1] = _mm256_shuffle_ps(pair[r + k], pair[r + 2 + k], 0xEE);
      }
    }
    for (int k = 0; k < 4; ++k) {
      columns[i + k].p[0] = _mm256_permute2f128_ps(four[k], four[4 + k], 0x20);
      columns[i + 4 + k].p[0] = _mm256_permute2f128_ps(four[k], four[4 + k], 0x31);
    }
  }
#else
  for (int i = 0; i < kCount; ++i) {
    float column[kEight];
    for (int r = 0; r < kEight; ++r) column[r] = rows[r][i];
    columns[i] = load_eight(column);
  }
#endif
}

// ScaleSums of eight scales.
struct EightScaleSums {
  Eight error, slope, curvature;
};

// Under the levels nearest to x / scale.
template <class Levels, int kCount>
EightScaleSums measure_abreast(const Abreast<kCount>& in, const Eight& scales) {
  const Eight inverse = inverse_of_eight(scales);
  EightScaleSums sums{};
  for (int i = 0; i < kCount; ++i) {
    const Eight level = Levels::nearest(in.x[i] * inverse);
    const Eight rest = in.x[i] - scales * level;
    const Eight weighted_level = in.w[i] * level;
    sums.error += in.w[i] * rest * rest;
    sums.slope += weighted_level * rest;
    sums.curvature += weighted_level * level;
  }
  return sums;
}

// The errors alone.
template <class Levels, int kCount>
Eight errors_abreast(const Abreast<kCount>& in, const Eight& scales) {
  const Eight inverse = inverse_of_eight(scales);
  Eight error{};
  for (int i = 0; i < kCount; ++i) {
    const Eight rest = in.x[i] - scales * Levels::nearest(in.x[i] * inverse);
    error += in.w[i] * rest * rest;
  }
  return error;
}

// The elements of largest magnitude, with their signs.
template <int kCount>
Eight peaks_of(const Abreast<kCount>& in) {
  Eight low{}, high{};
  for (const Eight& x : in.x) {
    low = smaller(low, x);
    high = larger(high, x);
  }
  return where_below_zero(low + high, low, high);
}

struct ScaleFits {
  Eight scale;
  Eight curvature;
};

// Tries peak / divisor for each of the divisors and goes on from the best.
template <class Levels, int kCount, class Divisors>
ScaleFits fit_scales(const Abreast<kCount>& in, const Divisors& divisors, int rounds) {
  const Eight peak = peaks_of(in);
  ScaleFits best{};
  Eight least = all_eight(INFINITY);
  const auto try_scales = [&](const Eight& scale) {
    const EightScaleSums sums = measure_abreast<Levels>(in, scale);
    const Eight step = sums.slope * inverse_of_eight(sums.curvature);
    const Eight error = sums.error - sums.slope * step, gain = error - least;
    best.scale = where_below_zero(gain, scale + step, best.scale);
    best.curvature = where_below_zero(gain, sums.curvature, best.curvature);
    least = smaller(error, least);
  };
  for (const float divisor : divisors) try_scales(peak * (1.0f / divisor));
  for (int round = 0; round < rounds; ++round) try_scales(best.scale);
  return best;
}

// The same where levels are so many that candidates differ by the luck of their roundings alone: the least error is
// looked for first, and only that scale fitted.
template <class Levels, int kCount, class Divisors>
Eight fit_fine_scales(const Abreast<kCount>& in, const Divisors& divisors) {
  const Eight peak = peaks_of(in);
  Eight least = all_eight(INFINITY), best{};
  for (const float divisor : divisors) {
    const Eight scale = peak * (1.0f / divisor), error = errors_abreast<Levels>(in, scale);
    best = where_below_zero(error - least, scale, best);
    least = smaller(error, least);
  }
  const EightScaleSums sums = measure_abreast<Levels>(in, best);
  return best + sums.slope * inverse_of_eight(sums.curvature);
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
