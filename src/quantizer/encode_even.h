// encode_even.h  Scales, or scales and bases, of eight blocks of 32 values where all columns count the same.
//
// The values of a block become integers of 16 bits, 32000 for the largest: fine enough to tell candidates of up to
// eight bits apart, and twice as many to a register as floats. A candidate turns them into levels with a few bits of
// fraction; what rounding takes off are the errors, in steps of the candidate. The best is fitted by least squares, in
// integers, too. Only the codes that are stored are rounded from the floats themselves, under the scale that is stored.
//
// Eight blocks go through each stage together: none waits for the sums of another, and scales are divided and rounded
// in one register.
#pragma once

#include <array>

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_fit.h"
#include "quantizer/encode_sixteen.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

inline constexpr int kAbreast = kEight;  // blocks
inline constexpr int kEven = 32;         // values of a block
inline constexpr float kMostCounts = 32000.0f;
inline constexpr float kVanishingRange = 0x1p-29f;  // no half is a step of so little
inline constexpr float kLargestHalf = 65504.0f;

// 32 integers of each block.
struct Counted {
  Sixteen of[kAbreast][2];
};

// The factor that makes them levels with kFraction bits behind the point.
constexpr int16_t rounded_factor(float levels, int fraction) {
  const float factor = levels * static_cast<float>(1 << fraction) * (32768.0f / kMostCounts);
  return static_cast<int16_t>(factor < 0.0f ? factor - 0.5f : factor + 0.5f);
}

template <int kLow, int kHigh, int kFraction>
struct FineLevels {
  // `exact`: levels with their fractions. The nearest that exist, with none.
  static Sixteen nearest(const Sixteen& exact) {
    const Sixteen whole =
        (exact + all_sixteen(1 << (kFraction - 1))) & all_sixteen(static_cast<int16_t>(-(1 << kFraction)));
    return larger(smaller(whole, all_sixteen(kHigh * (1 << kFraction))), all_sixteen(kLow * (1 << kFraction)));
  }
};

template <class Each>
CHIMERE_EIGHT EightInts sum_each_block(Each each) {
  EightInts sums[kAbreast];
  for (int b = 0; b < kAbreast; ++b) sums[b] = each(b, 0) + each(b, 1);
  return sums_of_each(sums);
}

CHIMERE_EIGHT void store_factors(const Eight& factors, int16_t* out) {
  float x[kEight];
  store_eight(x, factors);
  for (int l = 0; l < kEight; ++l) out[l] = static_cast<int16_t>(x[l]);
}

CHIMERE_EIGHT Eight cut_to_half(const Eight& v) {
  return larger(smaller(v, all_eight(kLargestHalf)), all_eight(-kLargestHalf));
}

struct StoredScales {
  uint16_t bits[kAbreast];
  float inverse[kAbreast];
};

// `scales` are those of the file.
CHIMERE_EIGHT StoredScales stored_scales(const Eight& scales) {
  StoredScales out;
  store_halves(cut_to_half(scales), out.bits);
  store_eight(out.inverse, inverse_of_eight(load_halves(out.bits)));
  return out;
}

// The least and the largest of each of eight blocks.
struct Ranges {
  Eight low, high;
};
CHIMERE_EIGHT Ranges ranges_of(const float* const* x) {
  Eight low[kAbreast], high[kAbreast];  // negated, the lows
  for (int b = 0; b < kAbreast; ++b) {
    low[b] = high[b] = load_eight(x[b]);
    for (int i = kEight; i < kEven; i += kEight) {
      low[b] = smaller(low[b], load_eight(x[b] + i));
      high[b] = larger(high[b], load_eight(x[b] + i));
    }
    low[b] = all_eight(0.0f) - low[b];
  }
  return {all_eight(0.0f) - largest_of_each(low), largest_of_each(high)};
}

// One scale: the largest magnitude comes to one of the divisors.
template <int kLow, int kHigh, int kFraction, class Divisors>
CHIMERE_EIGHT StoredScales fit_even_scales(const float* const* x, const Divisors& divisors) {
  using Levels = FineLevels<kLow, kHigh, kFraction>;
  const Ranges range = ranges_of(x);
  const Eight zero = all_eight(0.0f);
  const Eight peak = where_below_zero(range.low + range.high, range.low, range.high);
  const Eight size = larger(peak, zero - peak);
  const Eight counts = where_below_zero(size - kVanishingRange, zero, inverse_of_eight(peak) * kMostCounts);
  float per_value[kAbreast];
  store_eight(per_value, counts);
  Counted counted;
  for (int b = 0; b < kAbreast; ++b) {
    const Eight factor = all_eight(per_value[b]);
    for (int h = 0; h < 2; ++h) {
      const float* half = x[b] + kSixteen * h;
      counted.of[b][h] = sixteen_of(load_eight(half) * factor, load_eight(half + kEight) * factor);
    }
  }
  Eight least = all_eight(INFINITY), best = zero;
  for (const float divisor : divisors) {
    const int16_t candidate = rounded_factor(divisor, kFraction);
    const Sixteen factor = all_sixteen(candidate);
    const EightInts sums = sum_each_block([&](int b, int h) {
      const Sixteen exact = scaled_product(counted.of[b][h], factor);
      const Sixteen rest = exact - Levels::nearest(exact);
      return paired_products(rest, rest);
    });
    const Eight error = floats_of(sums) * (1.0f / (divisor * divisor));
    best = where_below_zero(error - least, all_eight(candidate), best);
    least = smaller(error, least);
  }
  int16_t chosen[kAbreast];
  store_factors(best, chosen);
  EightInts product[kAbreast], square[kAbreast];
  for (int b = 0; b < kAbreast; ++b) {
    const Sixteen factor = all_sixteen(chosen[b]);
    const Sixteen low = shifted_right<kFraction>(Levels::nearest(scaled_product(counted.of[b][0], factor)));
    const Sixteen high = shifted_right<kFraction>(Levels::nearest(scaled_product(counted.of[b][1], factor)));
    product[b] = paired_products(counted.of[b][0], low) + paired_products(counted.of[b][1], high);
    square[b] = paired_products(low, low) + paired_products(high, high);
  }
  const Eight per_level = floats_of(sums_of_each(product)) * inverse_of_eight(floats_of(sums_of_each(square)));
  return stored_scales(per_level * (peak * (1.0f / kMostCounts)));
}

// A scale and a base. Counts are those above the least value, candidates the cuts of fit_pair.
struct StoredPairs {
  StoredScales scale;
  uint16_t base_bits[kAbreast];
  float base[kAbreast];
};

template <int kHigh, int kFraction>
struct PairLevels {
  static constexpr float kFine = 1 << kFraction;
  int16_t factor, offset;

  Sixteen exact(const Sixteen& counts) const {
    return scaled_product(counts, all_sixteen(factor)) - all_sixteen(offset);
  }
  Sixteen levels(const Sixteen& counts) const {
    return shifted_right<kFraction>(FineLevels<0, kHigh, kFraction>::nearest(exact(counts)));
  }
};

template <int kHigh, int kFraction, class Cuts>
CHIMERE_EIGHT StoredPairs fit_even_pairs(const float* const* x, const Cuts& cuts) {
  using Levels = PairLevels<kHigh, kFraction>;
  // Halved, so that the range of the largest floats is one.
  const Ranges range = ranges_of(x);
  const Eight zero = all_eight(0.0f), low = range.low * 0.5f, width = range.high * 0.5f - low;
  const Eight counts = where_below_zero(width - kVanishingRange, zero, inverse_of_eight(width) * kMostCounts);
  float per_value[kAbreast], lows[kAbreast];
  store_eight(per_value, counts);
  store_eight(lows, low);
  Counted counted;
  for (int b = 0; b < kAbreast; ++b) {
    const Eight factor = all_eight(per_value[b]), least = all_eight(lows[b]);
    for (int h = 0; h < 2; ++h) {
      const float* half = x[b] + kSixteen * h;
      counted.of[b][h] =
          sixteen_of((load_eight(half) * 0.5f - least) * factor, (load_eight(half + kEight) * 0.5f - least) * factor);
    }
  }
  const Sixteen one = all_sixteen(1);
  Eight least = all_eight(INFINITY), best_factor = zero, best_offset = zero;
  for (const PairCut& cut : cuts) {
    const float steps = kHigh + cut.low + cut.high;
    const Levels candidate{rounded_factor(steps, kFraction), static_cast<int16_t>(cut.low * Levels::kFine)};
    EightInts square[kAbreast];
    for (int b = 0; b < kAbreast; ++b) {
      const Sixteen first = candidate.exact(counted.of[b][0]), second = candidate.exact(counted.of[b][1]);
      const Sixteen rest = first - FineLevels<0, kHigh, kFraction>::nearest(first);
      const Sixteen other = second - FineLevels<0, kHigh, kFraction>::nearest(second);
      square[b] = paired_products(rest, rest) + paired_products(other, other);
    }
    const Eight error = floats_of(sums_of_each(square)) * (1.0f / (steps * steps));
    const Eight gain = error - least;
    best_factor = where_below_zero(gain, all_eight(candidate.factor), best_factor);
    best_offset = where_below_zero(gain, all_eight(candidate.offset), best_offset);
    least = smaller(error, least);
  }
  int16_t factor[kAbreast], offset[kAbreast];
  store_factors(best_factor, factor);
  store_factors(best_offset, offset);
  EightInts product[kAbreast], square[kAbreast], sum[kAbreast], total[kAbreast];
  for (int b = 0; b < kAbreast; ++b) {
    const Levels chosen{factor[b], offset[b]};
    const Sixteen first = chosen.levels(counted.of[b][0]), second = chosen.levels(counted.of[b][1]);
    product[b] = paired_products(counted.of[b][0], first) + paired_products(counted.of[b][1], second);
    square[b] = paired_products(first, first) + paired_products(second, second);
    sum[b] = paired_products(first + second, one);
    total[b] = paired_products(counted.of[b][0], one) + paired_products(counted.of[b][1], one);
  }
  // All of these stay below 2^31.
  const EightInts levels = sums_of_each(sum), all_counts = sums_of_each(total), n = all_ints(kEven);
  const EightInts above = n * sums_of_each(product) - all_counts * levels;
  const EightInts below = n * sums_of_each(square) - levels * levels;
  const Eight count = width * (2.0f / kMostCounts);
  StoredPairs stored;
  stored.scale = stored_scales(floats_of(above) * inverse_of_eight(floats_of(below)) * count);
  const Eight scale = load_halves(stored.scale.bits);
  // The base follows what rounding made of the scale: for the tiniest of values, nothing.
  const Eight base = (floats_of(all_counts) * count - scale * floats_of(levels)) * (1.0f / kEven);
  store_halves(cut_to_half(low * 2.0f + base), stored.base_bits);
  store_eight(stored.base, load_halves(stored.base_bits));
  return stored;
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
