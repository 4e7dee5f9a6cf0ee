// encode_signed_body.h  Codebooks of magnitudes with signs apart: IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS and IQ3_S.
//
// Some of them store seven of eight signs, with an even number of negative ones. Where the values have an odd number,
// one of them gets the wrong sign: the one, together with the entry, that costs least.
#pragma once

#include <cmath>

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_books.h"
#include "quantizer/encode_steps.h"
#include "tensor/iq_grids.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

// Set: book(), kLevels, kEvenSigns and what encode_steps.h asks for.
template <class Set>
struct SignedCode : Set {
  using SetBook = typename Set::SetBook;
  using Sums = typename SetBook::Sums;
  static constexpr int kDims = SetBook::kDims, kParts = 8 / kDims, kSub = Set::kSub, kTriedScales = 8;
  static constexpr float kTop = Set::kLevels.back();

  struct Prepared {
    float x[8];  // magnitudes, and minus that of the one whose sign is wrong
    float w[8];
    uint8_t signs;
    int wrong;  // or -1
    Sums sums[kParts];
  };

  static void prepare(const float* x, const float* w, Prepared& out) {
    out.signs = 0;
    int least = 0;
    for (int e = 0; e < 8; ++e) {
      out.x[e] = std::fabs(x[e]);
      out.w[e] = w[e];
      out.signs = static_cast<uint8_t>(out.signs | (x[e] < 0.0f ? 1 << e : 0));
      if (w[e] * out.x[e] < w[least] * out.x[least]) least = e;
    }
    // As long as scales are looked for, signs are made even by the value that has least to lose.
    out.wrong = Set::kEvenSigns && std::popcount(out.signs) % 2 ? least : -1;
    if (out.wrong >= 0) {
      out.x[least] = -out.x[least];
      out.signs = static_cast<uint8_t>(out.signs ^ 1 << least);
    }
    for (int part = 0; part < kParts; ++part) sum_part(out.x, out.w, part, out.sums[part]);
  }

  static void try_scales(const Prepared* octet, const float* scales, CodeSums* out, Octet* codes) {
    for (int i = 0; i < kSub; i += 8, ++octet, ++codes) {
      for (int part = 0; part < kParts; ++part) {
        BookChoice& choice = codes->choice[part];
        for (int k = 0; k < kTriedScales; ++k) {
          choice = Set::book().nearest(octet->sums[part], 2.0f / scales[k], choice);
          out[k].a += SetBook::a_of(octet->sums[part], choice);
          out[k].b += SetBook::b_of(octet->sums[part], choice);
        }
      }
    }
  }

  template <bool kExact>
  static CodeSums choose(const Prepared* octet, float scale, Octet* out) {
    const float u = scale > 0.0f ? 2.0f / scale : 0.0f;
    CodeSums total;
    for (int i = 0; i < kSub; i += 8, ++octet, ++out) {
      const Sums* sums[kParts];
      for (int part = 0; part < kParts; ++part) {
        sums[part] = &octet->sums[part];
        out->choice[part] = Set::book().nearest(*sums[part], u, out->choice[part]);
      }
      out->signs = octet->signs;
      Sums right, wrong;
      if (kExact && octet->wrong >= 0) {
        const int part = choose_wrong_sign(*octet, u, right, wrong, *out);
        if (part >= 0) {
          sums[octet->wrong / kDims] = &right;
          sums[part] = &wrong;
        }
      }
      for (int part = 0; part < kParts; ++part) {
        total.a += SetBook::a_of(*sums[part], out->choice[part]);
        total.b += SetBook::b_of(*sums[part], out->choice[part]);
      }
    }
    return total;
  }

 private:
  static void sum_part(const float* x, const float* w, int part, Sums& out) {
    SetBook::sum_patterns(x + kDims * part, w + kDims * part, Set::kLevels, out);
  }

  // Tries all others as the value with the wrong sign. `codes` has the best entries for the one that was prepared, and
  // gets those of the best. Returns the part of that one, with its sums in `wrong`, or -1 where it is the same.
  // `right`: the sums of the part that was prepared with a wrong sign, with right ones.
  static int choose_wrong_sign(const Prepared& octet, float u, Sums& right, Sums& wrong, Octet& codes) {
    float x[8];
    for (int e = 0; e < 8; ++e) x[e] = std::fabs(octet.x[e]);
    const int first_part = octet.wrong / kDims;
    sum_part(x, octet.w, first_part, right);
    BookChoice unbound[kParts];  // with right signs: what wrong ones lose from
    for (int part = 0; part < kParts; ++part) unbound[part] = codes.choice[part];
    unbound[first_part] = Set::book().nearest(right, u, codes.choice[first_part]);
    float least = unbound[first_part].score - codes.choice[first_part].score;
    int best = octet.wrong;
    BookChoice best_choice;
    for (int e = 0; e < 8; ++e) {
      // The wrong sign costs at least that of the smallest level.
      if (e == octet.wrong || 2.0f * u * octet.w[e] * x[e] * Set::kLevels[0] >= least) continue;
      const int part = e / kDims;
      Sums sums;
      x[e] = -x[e];
      sum_part(x, octet.w, part, sums);
      x[e] = -x[e];
      const BookChoice choice = Set::book().nearest(sums, u, unbound[part]);
      if (unbound[part].score - choice.score < least) {
        least = unbound[part].score - choice.score;
        best = e;
        best_choice = choice;
        wrong = sums;
      }
    }
    if (best == octet.wrong) return -1;
    codes.signs = static_cast<uint8_t>(octet.signs ^ 1 << octet.wrong ^ 1 << best);
    codes.choice[first_part] = unbound[first_part];
    codes.choice[best / kDims] = best_choice;
    return best / kDims;
  }
};

// y = d * (2 step + 1) / 8 * entry.
template <int kEntries, int kSubSize, bool kEven>
struct Iq2Set {
  using SetBook = Book<8, 3, kEntries>;
  static constexpr std::array<float, 3> kLevels = {8, 25, 43};
  static constexpr std::array<int, 3> kValues = {8, 25, 43};
  static constexpr bool kEvenSigns = kEven;
  static constexpr int kSub = kSubSize, kSteps = 16;
  static constexpr float kUnit = 0.125f;
  // Scales to try put the largest level between these multiples of the root of the mean square, or up to the peak.
  static constexpr float kLow = 1.5f, kHigh = 2.6f, kPeak = 1.1f;
};
struct Iq2Xxs : Iq2Set<256, 32, true> {
  static const SetBook& book() {
    static const SetBook kBook(kIqGrids.iq2_xxs, kValues);
    return kBook;
  }
};
struct Iq2Xs : Iq2Set<512, 16, true> {
  static const SetBook& book() {
    static const SetBook kBook(kIqGrids.iq2_xs, kValues);
    return kBook;
  }
};
struct Iq2S : Iq2Set<1024, 16, false> {
  static const SetBook& book() {
    static const SetBook kBook(kIqGrids.iq2_s, kValues);
    return kBook;
  }
};

// y = d * (2 step + 1) / 4 * entry.
struct Iq3Xxs {
  using SetBook = Book<4, 8, 256>;
  static constexpr std::array<float, 8> kLevels = {4, 12, 20, 28, 36, 44, 52, 62};
  static constexpr bool kEvenSigns = true;
  static constexpr int kSub = 32, kSteps = 16;
  static constexpr float kUnit = 0.25f;
  static constexpr float kLow = 1.9f, kHigh = 2.8f, kPeak = 1.1f;
  static const SetBook& book() {
    static const SetBook kBook(kIqGrids.iq3_xxs, {4, 12, 20, 28, 36, 44, 52, 62});
    return kBook;
  }
};

// y = d * (2 step + 1) * entry.
struct Iq3S {
  using SetBook = Book<4, 8, 512>;
  static constexpr std::array<float, 8> kLevels = {1, 3, 5, 7, 9, 11, 13, 15};
  static constexpr bool kEvenSigns = false;
  static constexpr int kSub = 32, kSteps = 16;
  static constexpr float kUnit = 1.0f;
  static constexpr float kLow = 1.9f, kHigh = 2.8f, kPeak = 1.1f;
  static const SetBook& book() {
    static const SetBook kBook(kIqGrids.iq3_s, {1, 3, 5, 7, 9, 11, 13, 15});
    return kBook;
  }
};

// Four 7-bit sign codes and a step.
uint32_t packed_signs(const Octet* octets, int step) {
  uint32_t a = static_cast<uint32_t>(step) << 28;
  for (int l = 0; l < 4; ++l) a |= static_cast<uint32_t>(octets[l].signs & 127) << (7 * l);
  return a;
}

template <class Fit>
void pack_step_nibbles(const Fit& fit, uint8_t* scales) {
  for (int j = 0; j < Fit::kSubs; j += 2) scales[j / 2] = static_cast<uint8_t>(fit.step[j] | fit.step[j + 1] << 4);
}

}  // namespace

void encode_block(const BlockInput& in, BlockIQ2_XXS& out) {
  StepFit<SignedCode<Iq2Xxs>> fit;
  fit.fit(in);
  out.d = fit.d.bits;
  for (int j = 0; j < 8; ++j) {
    for (int l = 0; l < 4; ++l) out.sub[j].index[l] = static_cast<uint8_t>(fit.octets[4 * j + l].choice[0].entry);
    out.sub[j].a = packed_signs(fit.octets + 4 * j, fit.step[j]);
  }
}

void encode_block(const BlockInput& in, BlockIQ2_XS& out) {
  StepFit<SignedCode<Iq2Xs>> fit;
  fit.fit(in);
  out.d = fit.d.bits;
  for (int g = 0; g < 32; ++g) {
    out.q[g] = static_cast<uint16_t>(fit.octets[g].choice[0].entry | (fit.octets[g].signs & 127) << 9);
  }
  pack_step_nibbles(fit, out.scales);
}

void encode_block(const BlockInput& in, BlockIQ2_S& out) {
  StepFit<SignedCode<Iq2S>> fit;
  fit.fit(in);
  out.d = fit.d.bits;
  for (int g = 0; g < 32; ++g) {
    const int entry = fit.octets[g].choice[0].entry;
    out.q[g] = static_cast<uint8_t>(entry);
    out.qh[g / 4] = static_cast<uint8_t>(out.qh[g / 4] | (entry >> 8) << (2 * (g % 4)));
    out.signs[g] = fit.octets[g].signs;
  }
  pack_step_nibbles(fit, out.scales);
}

void encode_block(const BlockInput& in, BlockIQ3_XXS& out) {
  StepFit<SignedCode<Iq3Xxs>> fit;
  fit.fit(in);
  out.d = fit.d.bits;
  for (int i = 0; i < 64; ++i) out.q[i] = static_cast<uint8_t>(fit.octets[i / 2].choice[i % 2].entry);
  for (int j = 0; j < 8; ++j) out.a[j] = packed_signs(fit.octets + 4 * j, fit.step[j]);
}

void encode_block(const BlockInput& in, BlockIQ3_S& out) {
  StepFit<SignedCode<Iq3S>> fit;
  fit.fit(in);
  out.d = fit.d.bits;
  for (int i = 0; i < 64; ++i) {
    const int entry = fit.octets[i / 2].choice[i % 2].entry;
    out.q[i] = static_cast<uint8_t>(entry);
    out.qh[i / 8] = static_cast<uint8_t>(out.qh[i / 8] | (entry >> 8) << (i % 8));
  }
  for (int g = 0; g < 32; ++g) out.signs[g] = fit.octets[g].signs;
  pack_step_nibbles(fit, out.scales);
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
