// encode_steps.h  The scales of codebook types: s = d * unit * (2 step + 1), one step for each sub-block.
//
// For any scale s a sub-block has its best codes, with sums A = sum w x g and B = sum w g^2 and the error
// sum w x^2 - (2 s A - s^2 B). A and B are found for a few scales; between these, their codes serve nearly as well as
// any. So the error of every sub-block under every d is a look into a small table, and d and all steps are chosen
// together. Then codes are found under the scales that are stored, d is fitted to them, and the best codes are found
// under that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_books.h"
#include "quantizer/encode_lanes.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {

// Eight values: one entry, or two of four values each.
struct Octet {
  BookChoice choice[2];
  uint8_t signs = 0;  // or a bit of another meaning
};

struct CodeSums {
  float a = 0.0f, b = 0.0f;
};

// Code: kSub, kTriedScales, kSteps, kUnit, kTop (its largest level), kLow, kHigh and kPeak (see
// tabulate), Prepared, and
//   static void prepare(x, w, Prepared& out)                           what is the same for all scales, of eight values
//   static void try_scales(Prepared*, scales, CodeSums* out, Octet*)   sums of a sub-block's best codes for each scale
//   static CodeSums choose<kExact>(Prepared*, scale, Octet* out)       its best codes for one; or, sooner, good ones
// The last two leave codes in the octets, and begin with those that are there: a search that knows a good entry is
// short.
template <class Code>
struct StepFit {
  static constexpr int kSub = Code::kSub, kSubs = 256 / kSub, kOctets = kSub / 8, kTriedScales = Code::kTriedScales;
  StoredHalf d;
  int step[kSubs];
  Octet octets[32];

  void fit(const BlockInput& in) {
    for (int j = 0; j < kSubs; ++j) tabulate(in, j);
    choose_unit(in);
    const float error = choose_codes<false>();
    const StoredHalf first = d;
    d = store_half(in, refitted());
    choose_steps();
    if (choose_codes<true>() > error) {
      d = first;
      choose_steps();
      choose_codes<true>();
    }
  }

 private:
  typename Code::Prepared prepared_[32];
  static constexpr int kPadded = (kTriedScales + kLanes - 1) / kLanes * kLanes;
  alignas(32) float a_[kSubs][kPadded], b_[kSubs][kPadded];  // the last repeated
  float best_scale_[kSubs];
  CodeSums chosen_[kSubs];

  static float scale_of(float d, int step) { return d * (Code::kUnit * static_cast<float>(2 * step + 1)); }

  void tabulate(const BlockInput& in, int j) {
    const float *x = in.x + kSub * j, *w = in.w + kSub * j;
    float weight = 0.0f, energy = 0.0f, peak = 0.0f;
    for (int i = 0; i < kSub; ++i) {
      weight += w[i];
      energy += w[i] * x[i] * x[i];
    }
    // A value that hardly counts must not stretch the scale.
    const float mean = weight / static_cast<float>(kSub);
    for (int i = 0; i < kSub; ++i) peak = std::max(peak, std::fabs(x[i]) * std::sqrt(std::min(1.0f, w[i] / mean)));
    const float root = std::sqrt(energy / weight);
    const float low = std::max(1e-6f, Code::kLow * root / Code::kTop);
    const float high = std::max(low, std::max(Code::kHigh * root, Code::kPeak * peak) / Code::kTop);
    float scales[kTriedScales];
    for (int k = 0; k < kTriedScales; ++k) scales[k] = low + (high - low) * static_cast<float>(k) / (kTriedScales - 1);
    CodeSums sums[kTriedScales];
    for (int o = 0; o < kOctets; ++o) Code::prepare(x + 8 * o, w + 8 * o, prepared_[kOctets * j + o]);
    Code::try_scales(prepared_ + kOctets * j, scales, sums, octets + kOctets * j);
    for (int k = 0; k < kPadded; ++k) {
      a_[j][k] = sums[std::min(k, kTriedScales - 1)].a;
      b_[j][k] = sums[std::min(k, kTriedScales - 1)].b;
    }
    float most = 0.0f;
    best_scale_[j] = 0.0f;
    for (int k = 0; k < kTriedScales; ++k) {
      if (sums[k].a > 0.0f && sums[k].a * sums[k].a > most * sums[k].b) {
        most = sums[k].a * sums[k].a / sums[k].b;
        best_scale_[j] = sums[k].a / sums[k].b;
      }
    }
  }

  // How much of its error sub-block j loses under a scale, by the table.
  float gain(int j, float scale) const {
    Lanes most = all_lanes(-INFINITY);
    for (int k = 0; k < kPadded; k += kLanes) {
      most = larger(most, (2.0f * scale) * load_lanes(a_[j] + k) - (scale * scale) * load_lanes(b_[j] + k));
    }
    return largest_of(most);
  }

  struct BestStep {
    int step;
    float gain;
  };
  BestStep best_step(int j, float value) const {
    const float unit = scale_of(value, 0);
    const float target = unit == 0.0f ? 0.0f : 0.5f * (best_scale_[j] / unit - 1.0f);
    const int near = static_cast<int>(std::nearbyint(std::clamp(target, 0.0f, static_cast<float>(Code::kSteps - 1))));
    BestStep best{near, -INFINITY};
    for (int s = std::max(0, near - 1); s <= std::min(Code::kSteps - 1, near + 1); ++s) {
      const float g = gain(j, scale_of(value, s));
      if (g > best.gain) best = {s, g};
    }
    return best;
  }

  void choose_unit(const BlockInput& in) {
    float peak = 0.0f;
    for (int j = 0; j < kSubs; ++j) peak = std::max(peak, best_scale_[j]);
    constexpr int kTries = 20;
    constexpr float kMost = 2 * Code::kSteps - 1;
    float most = -INFINITY;
    for (int i = 0; i < kTries; ++i) {
      const float divisor = kMost * (0.65f + 0.45f * static_cast<float>(i) / (kTries - 1));
      const StoredHalf unit = store_half(in, peak / (Code::kUnit * divisor));
      float sum = 0.0f;
      for (int j = 0; j < kSubs; ++j) sum += best_step(j, unit.value).gain;
      if (sum > most) {
        most = sum;
        d = unit;
      }
    }
    choose_steps();
  }

  void choose_steps() {
    for (int j = 0; j < kSubs; ++j) step[j] = best_step(j, d.value).step;
  }

  // Returns the error, less the energy of the block.
  template <bool kExact>
  float choose_codes() {
    float error = 0.0f;
    for (int j = 0; j < kSubs; ++j) {
      const float s = scale_of(d.value, step[j]);
      chosen_[j] = Code::template choose<kExact>(prepared_ + kOctets * j, s, octets + kOctets * j);
      error += s * s * chosen_[j].b - 2.0f * s * chosen_[j].a;
    }
    return error;
  }

  // The best d for the codes and steps.
  float refitted() const {
    float a = 0.0f, b = 0.0f;
    for (int j = 0; j < kSubs; ++j) {
      const float s = scale_of(1.0f, step[j]);
      a += s * chosen_[j].a;
      b += s * s * chosen_[j].b;
    }
    return b > 0.0f ? std::max(0.0f, a / b) : 0.0f;
  }
};

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
