// encode_k_body.h  Blocks of 256 values whose sub-blocks have scales of a few bits: Q2_K to Q6_K and IQ4_XS.
//
// Each sub-block is fitted alone. The block's half is chosen so that integers times it come near to the scales found,
// where an error of a scale counts by how much it costs its sub-block. Then both are improved in turn: every sub-block
// tries the neighbours of its integers, with its values rounded anew, and the half is fitted to all of them.
#pragma once

#include <algorithm>
#include <cmath>

#include "quantizer/encode_abreast.h"
#include "quantizer/encode_blocks.h"
#include "quantizer/encode_fit.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

constexpr int kSuper = 256;

// The half whose multiples, integers from low to high, miss the targets least.
template <class Divisors>
StoredHalf fit_unit(const BlockInput& in, const float* targets, const float* curvatures, int n,
                    const Divisors& divisors, float low, float high) {
  float peak = 0.0f;
  for (int j = 0; j < n; ++j) {
    if (std::fabs(targets[j]) > std::fabs(peak)) peak = targets[j];
  }
  StoredHalf best{};
  float least = INFINITY;
  for (size_t at = 0; at < divisors.size(); at += kEight) {
    StoredHalf units[kEight];
    float values[kEight], costs[kEight];
    for (size_t l = 0; l < kEight; ++l) {
      units[l] = store_half(in, peak / divisors[std::min(at + l, divisors.size() - 1)]);
      values[l] = units[l].value;
    }
    const Eight unit = load_eight(values), inverse = inverse_of_eight(unit);
    Eight cost{};
    for (int j = 0; j < n; ++j) {
      const Eight target = all_eight(targets[j]);
      const Eight multiple = rounded(larger(smaller(target * inverse, all_eight(high)), all_eight(low)));
      const Eight miss = target - multiple * unit;
      cost += all_eight(curvatures[j]) * miss * miss;
    }
    store_eight(costs, cost);
    for (int l = 0; l < kEight; ++l) {
      if (costs[l] < least || least == INFINITY) {
        least = costs[l];
        best = units[l];
      }
    }
  }
  return best;
}

float nearest_multiple(float target, float unit, float low, float high) {
  return std::clamp(std::nearbyint(std::clamp(target * inverse_of(unit), low, high)), low, high);
}

// How far around the multiple that was fitted others are tried, as a share of it. Errors jump from one to the next by
// the luck of roundings, so where multiples are fine, many near the best have a chance.
struct Reach {
  float down, up;
};

// y = d * multiple * level. Eight sub-blocks at a time, a lane each.
template <class Levels, int kSub, int kLowest, int kHighest>
struct Multiples {
  static constexpr int kSubs = kSuper / kSub, kGroups = kSubs / kEight;
  StoredHalf d;
  float multiple[kSubs];

  template <class Divisors, class UnitDivisors>
  void fit(const BlockInput& in, const Divisors& divisors, const UnitDivisors& unit_divisors, Reach reach,
           int rounds = 2) {
    float scale[kSubs], curvature[kSubs];
    for (int g = 0; g < kGroups; ++g) {
      const float *x[kEight], *w[kEight];
      for (int l = 0; l < kEight; ++l) {
        x[l] = in.x + kSub * (kEight * g + l);
        w[l] = in.w + kSub * (kEight * g + l);
      }
      set_columns<kSub>(x, subs_[g].x);
      set_columns<kSub>(w, subs_[g].w);
      const ScaleFits fit = fit_scales<Levels>(subs_[g], divisors, rounds);
      store_eight(scale + kEight * g, fit.scale);
      store_eight(curvature + kEight * g, fit.curvature);
    }
    d = fit_unit(in, scale, curvature, kSubs, unit_divisors, kLowest, kHighest);
    for (int j = 0; j < kSubs; ++j) multiple[j] = nearest_multiple(scale[j], d.value, kLowest, kHighest);
    for (int round = 0; round < 2; ++round) {
      for (int g = 0; g < kGroups; ++g) move_multiples(g, round == 0 ? reach : Reach{});
      if (!refit_unit(in)) break;
    }
  }

  void write(const BlockInput& in, uint8_t* codes) const {
    for (int j = 0; j < kSubs; ++j) {
      write_codes<Levels, kSub>(in.x + kSub * j, inverse_of(d.value * multiple[j]), codes + kSub * j);
    }
  }

 private:
  Abreast<kSub> subs_[kGroups];

  // By one at least.
  void move_multiples(int g, Reach reach) {
    float* of_group = multiple + kEight * g;
    float first[kEight], last[kEight], most_down = 0.0f, most_up = 0.0f;
    for (int l = 0; l < kEight; ++l) {
      const float from = of_group[l], size = std::fabs(from);
      const float down = std::max(1.0f, std::floor(size * (from < 0.0f ? reach.up : reach.down)));
      const float up = std::max(1.0f, std::floor(size * (from < 0.0f ? reach.down : reach.up)));
      first[l] = std::max(from - down, static_cast<float>(kLowest));
      last[l] = std::min(from + up, static_cast<float>(kHighest));
      most_down = std::max(most_down, from - first[l]);
      most_up = std::max(most_up, last[l] - from);
    }
    const Eight from = load_eight(of_group), lowest = load_eight(first), highest = load_eight(last);
    Eight least = all_eight(INFINITY), best = from;
    for (float move = -most_down; move <= most_up; move += 1.0f) {
      const Eight trial = larger(smaller(from + all_eight(move), highest), lowest);
      const Eight error = errors_abreast<Levels>(subs_[g], trial * d.value);
      best = where_below_zero(error - least, trial, best);
      least = smaller(error, least);
    }
    store_eight(of_group, best);
  }

  // Least squares for d with all codes fixed; false where it changes nothing or makes it worse.
  bool refit_unit(const BlockInput& in) {
    Eight error{}, slope{}, curvature{}, trial_error{};
    for (int g = 0; g < kGroups; ++g) {
      const Eight times = load_eight(multiple + kEight * g);
      const EightScaleSums sums = measure_abreast<Levels>(subs_[g], times * d.value);
      error += sums.error;
      slope += sums.slope * times;
      curvature += sums.curvature * times * times;
    }
    const float bend = sum_of(curvature);
    const StoredHalf trial = store_half(in, d.value + (bend > 0.0f ? sum_of(slope) / bend : 0.0f));
    if (trial.bits == d.bits) return false;
    for (int g = 0; g < kGroups; ++g) {
      trial_error += errors_abreast<Levels>(subs_[g], load_eight(multiple + kEight * g) * trial.value);
    }
    if (!(sum_of(trial_error) < sum_of(error))) return false;
    d = trial;
    return true;
  }
};

// y = d * scale * code - dmin * min. Scales are tried up to kReach away. The minimum follows the scale so that the mean
// stays where it is, and is tried up to kWidth away from there.
template <int kHigh, int kSub, int kHighest, int kReach, int kWidth>
struct Pairs {
  static constexpr int kSubs = kSuper / kSub;
  StoredHalf d, dmin;
  float scale[kSubs], min[kSubs];
  float mean_code[kSubs];

  template <class Cuts, class UnitDivisors>
  void fit(const BlockInput& in, const Cuts& cuts, const UnitDivisors& unit_divisors) {
    alignas(16) float scales[kSubs], mins[kSubs], scale_curvature[kSubs], min_curvature[kSubs];
    for (int j = 0; j < kSubs; ++j) {
      const PairFit fit = fit_pair<kHigh, kSub, true>(in.x + kSub * j, in.w + kSub * j, cuts, 2);
      scales[j] = fit.scale;
      mins[j] = -fit.base;
      mean_code[j] = fit.cross / fit.one;
      scale_curvature[j] = fit.square - fit.cross * mean_code[j];
      min_curvature[j] = fit.one;
    }
    d = fit_unit(in, scales, scale_curvature, kSubs, unit_divisors, 0.0f, kHighest);
    dmin = fit_unit(in, mins, min_curvature, kSubs, unit_divisors, 0.0f, kHighest);
    for (int j = 0; j < kSubs; ++j) {
      scale[j] = nearest_multiple(scales[j], d.value, 0.0f, kHighest);
      const float moved = mins[j] + (scale[j] * d.value - scales[j]) * mean_code[j];
      min[j] = nearest_multiple(moved, dmin.value, 0.0f, kHighest);
    }
    for (int round = 0; round < 2; ++round) {
      move_pairs(in, round == 0 ? kReach : 1);
      if (!refit_units(in)) break;
    }
  }

  float error_of(const BlockInput& in, int j, float unit, float min_unit, float a, float b) const {
    return pair_error<kHigh, kSub>(in.x + kSub * j, in.w + kSub * j, unit * a, -(min_unit * b));
  }

  void move_pairs(const BlockInput& in, int reach) {
    const float steps_per_scale = d.value * inverse_of(dmin.value);
    for (int j = 0; j < kSubs; ++j) {
      const float from_scale = scale[j], from_min = min[j];
      constexpr int kMost = (2 * kReach + 1) * (2 * kWidth + 1);
      float scales[kMost + kEight], mins[kMost + kEight], error[kEight];
      int n = 0;
      for (int a = -reach; a <= reach; ++a) {
        const float trial_scale = from_scale + static_cast<float>(a);
        if (trial_scale < 0.0f || trial_scale > kHighest) continue;
        const float middle = std::nearbyint(from_min + static_cast<float>(a) * mean_code[j] * steps_per_scale);
        const float first = std::clamp(middle - kWidth, 0.0f, static_cast<float>(kHighest));
        const float last = std::clamp(middle + kWidth, 0.0f, static_cast<float>(kHighest));
        for (float trial_min = first; trial_min <= last; trial_min += 1.0f, ++n) {
          scales[n] = trial_scale;
          mins[n] = trial_min;
        }
      }
      for (int l = n; l < n + kEight; ++l) {  // whole vectors
        scales[l] = from_scale;
        mins[l] = from_min;
      }
      float least = INFINITY;
      for (int at = 0; at < n; at += kEight) {
        const Eight base = load_eight(mins + at) * -dmin.value;
        store_eight(
            error, pair_errors<kHigh, kSub>(in.x + kSub * j, in.w + kSub * j, load_eight(scales + at) * d.value, base));
        for (int l = 0; l < kEight; ++l) {
          if (error[l] < least) {
            least = error[l];
            scale[j] = scales[at + l];
            min[j] = mins[at + l];
          }
        }
      }
    }
  }

  bool refit_units(const BlockInput& in) {
    float error = 0.0f, ss = 0.0f, sm = 0.0f, mm = 0.0f, slope_s = 0.0f, slope_m = 0.0f;
    for (int j = 0; j < kSubs; ++j) {
      const PairSums s =
          measure_pair<kHigh, kSub>(in.x + kSub * j, in.w + kSub * j, d.value * scale[j], -(dmin.value * min[j]));
      error += s.error;
      ss += s.square * scale[j] * scale[j];
      sm -= s.cross * scale[j] * min[j];
      mm += s.one * min[j] * min[j];
      slope_s += s.slope_scale * scale[j];
      slope_m -= s.slope_base * min[j];
    }
    const PairStep step = solve_pair(ss, sm, mm, slope_s, slope_m);
    const StoredHalf unit = store_half(in, d.value + step.first), min_unit = store_half(in, dmin.value + step.second);
    if (unit.bits == d.bits && min_unit.bits == dmin.bits) return false;
    float trial_error = 0.0f;
    for (int j = 0; j < kSubs; ++j) trial_error += error_of(in, j, unit.value, min_unit.value, scale[j], min[j]);
    if (!(trial_error < error)) return false;
    d = unit;
    dmin = min_unit;
    return true;
  }

  void write(const BlockInput& in, uint8_t* codes) const {
    for (int j = 0; j < kSubs; ++j) {
      write_pair_codes<kHigh, kSub>(in.x + kSub * j, d.value * scale[j], -(dmin.value * min[j]), codes + kSub * j);
    }
  }
};

// The inverse of k_scale_min.
void pack_scale_min(const float* scale, const float* min, uint8_t* s) {
  for (int j = 0; j < 4; ++j) {
    const int scale_high = static_cast<int>(scale[j + 4]), min_high = static_cast<int>(min[j + 4]);
    s[j] = static_cast<uint8_t>(static_cast<int>(scale[j]) | (scale_high >> 4) << 6);
    s[j + 4] = static_cast<uint8_t>(static_cast<int>(min[j]) | (min_high >> 4) << 6);
    s[j + 8] = static_cast<uint8_t>((scale_high & 15) | (min_high & 15) << 4);
  }
}

// Sub-blocks 2k and 2k + 1 share the bytes q[32k..].
void pack_paired_nibbles(const uint8_t* codes, uint8_t* q) {
  for (int k = 0; k < 4; ++k) {
    for (int l = 0; l < 32; ++l) {
      q[32 * k + l] = static_cast<uint8_t>((codes[64 * k + l] & 15) | (codes[64 * k + 32 + l] & 15) << 4);
    }
  }
}

}  // namespace

void encode_block(const BlockInput& in, BlockQ2_K& out) {
  static constexpr auto kCuts = all_cuts(spaced<4>(-0.25f, 0.55f), spaced<4>(-0.25f, 0.55f));
  static constexpr auto kUnits = spaced<24>(11.0f, 18.0f);
  Pairs<3, 16, 15, 2, 2> fit;
  fit.fit(in, kCuts, kUnits);
  uint8_t codes[kSuper];
  fit.write(in, codes);
  pack_crumbs(codes, out.q);
  for (int j = 0; j < 16; ++j) {
    out.scales[j] = static_cast<uint8_t>(static_cast<int>(fit.scale[j]) | static_cast<int>(fit.min[j]) << 4);
  }
  out.d = fit.d.bits;
  out.dmin = fit.dmin.bits;
}

void encode_block(const BlockInput& in, BlockQ3_K& out) {
  static constexpr auto kDivisors = joined(spaced<8>(-5.6f, -3.3f), spaced<4>(2.8f, 4.4f));
  static constexpr auto kUnits = joined(spaced<10>(-34.0f, -28.5f), spaced<6>(28.0f, 32.0f));
  Multiples<IntegerLevels<-4, 3>, 16, -32, 31> fit;
  fit.fit(in, kDivisors, kUnits, {0.0f, 0.0f}, 1);
  uint8_t codes[kSuper];
  fit.write(in, codes);
  pack_crumbs(codes, out.q);
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int k = 0; k < 8; ++k) bits |= (codes[32 * k + l] >> 2) << k;
    out.hmask[l] = static_cast<uint8_t>(bits);
  }
  std::fill(std::begin(out.scales), std::end(out.scales), uint8_t{0});
  for (int j = 0; j < 16; ++j) {
    const int s = static_cast<int>(fit.multiple[j]) + 32;
    out.scales[j % 8] = static_cast<uint8_t>(out.scales[j % 8] | (s & 15) << (4 * (j / 8)));
    out.scales[8 + j % 4] = static_cast<uint8_t>(out.scales[8 + j % 4] | (s >> 4) << (2 * (j / 4)));
  }
  out.d = fit.d.bits;
}

void encode_block(const BlockInput& in, BlockQ4_K& out) {
  static constexpr auto kCuts = all_cuts(spaced<4>(-0.3f, 1.2f), spaced<8>(-0.5f, 1.4f));
  static constexpr auto kUnits = spaced<16>(58.0f, 65.0f);
  Pairs<15, 32, 63, 1, 1> fit;
  fit.fit(in, kCuts, kUnits);
  uint8_t codes[kSuper];
  fit.write(in, codes);
  pack_paired_nibbles(codes, out.q);
  pack_scale_min(fit.scale, fit.min, out.scales);
  out.d = fit.d.bits;
  out.dmin = fit.dmin.bits;
}

void encode_block(const BlockInput& in, BlockQ5_K& out) {
  static constexpr auto kCuts = all_cuts(spaced<3>(-0.2f, 0.8f), spaced<3>(-0.2f, 0.8f));
  static constexpr auto kUnits = spaced<16>(50.0f, 64.0f);
  Pairs<31, 32, 63, 8, 2> fit;
  fit.fit(in, kCuts, kUnits);
  uint8_t codes[kSuper];
  fit.write(in, codes);
  pack_paired_nibbles(codes, out.q);
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int k = 0; k < 8; ++k) bits |= (codes[32 * k + l] >> 4) << k;
    out.h[l] = static_cast<uint8_t>(bits);
  }
  pack_scale_min(fit.scale, fit.min, out.scales);
  out.d = fit.d.bits;
  out.dmin = fit.dmin.bits;
}

void encode_block(const BlockInput& in, BlockQ6_K& out) {
  static constexpr auto kDivisors = spaced<5>(-36.0f, -30.0f);
  static constexpr auto kUnits = spaced<8>(-122.0f, -110.0f);
  Multiples<IntegerLevels<-32, 31>, 16, -128, 127> fit;
  fit.fit(in, kDivisors, kUnits, {0.2f, 0.3f});
  uint8_t codes[kSuper];
  fit.write(in, codes);
  for (int n = 0; n < 2; ++n) {
    const uint8_t* c = codes + 128 * n;
    for (int l = 0; l < 32; ++l) {
      out.ql[64 * n + l] = static_cast<uint8_t>((c[l] & 15) | (c[l + 64] & 15) << 4);
      out.ql[64 * n + 32 + l] = static_cast<uint8_t>((c[l + 32] & 15) | (c[l + 96] & 15) << 4);
      out.qh[32 * n + l] =
          static_cast<uint8_t>(c[l] >> 4 | (c[l + 32] >> 4) << 2 | (c[l + 64] >> 4) << 4 | (c[l + 96] >> 4) << 6);
    }
  }
  for (int j = 0; j < 16; ++j) out.scales[j] = static_cast<int8_t>(fit.multiple[j]);
  out.d = fit.d.bits;
}

void encode_block(const BlockInput& in, BlockIQ4_XS& out) {
  static constexpr auto kDivisors = joined(spaced<17>(-160.0f, -108.0f), spaced<9>(98.0f, 138.0f));
  static constexpr auto kUnits = joined(spaced<16>(-34.0f, -28.0f), spaced<8>(28.0f, 32.0f));
  Multiples<BookLevels, 32, -32, 31> fit;
  fit.fit(in, kDivisors, kUnits, {0.0f, 0.0f});
  uint8_t codes[kSuper];
  fit.write(in, codes);
  out.scales_high = 0;
  std::fill(std::begin(out.scales_low), std::end(out.scales_low), uint8_t{0});
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 16; ++l) {
      out.q[16 * j + l] = static_cast<uint8_t>(codes[32 * j + l] | codes[32 * j + 16 + l] << 4);
    }
    const int s = static_cast<int>(fit.multiple[j]) + 32;
    out.scales_high = static_cast<uint16_t>(out.scales_high | (s >> 4) << (2 * j));
    out.scales_low[j / 2] = static_cast<uint8_t>(out.scales_low[j / 2] | (s & 15) << (4 * (j % 2)));
  }
  out.d = fit.d.bits;
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
