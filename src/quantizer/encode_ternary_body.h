// encode_ternary_body.h  Codebooks of -1, 0 and 1, all of them moved by an eighth up or down: IQ1_S and IQ1_M.
#pragma once

#include "quantizer/encode_blocks.h"
#include "quantizer/encode_books.h"
#include "quantizer/encode_steps.h"
#include "tensor/iq_grids.h"

namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL {
namespace {

using TernaryBook = Book<8, 3, 2048>;

const TernaryBook& ternary_book() {
  static const TernaryBook kBook(kIqGrids.iq1, {-1, 0, 1});
  return kBook;
}

constexpr std::array<float, 3> kMoved[2] = {{-0.875f, 0.125f, 1.125f}, {-1.125f, -0.125f, 0.875f}};  // up, down

// y = d * (2 step + 1) * (entry + or - 1/8). kMovedOctets: values that are moved the same way, in eights.
template <int kSubSize, int kMovedOctets>
struct TernaryCode {
  static constexpr int kSub = kSubSize, kSteps = 8, kTriedScales = 4;
  static constexpr float kUnit = 1.0f, kTop = 1.125f;
  static constexpr float kLow = 0.9f, kHigh = 2.0f, kPeak = 0.9f;

  struct Prepared {
    TernaryBook::Sums moved[2];
  };

  static void prepare(const float* x, const float* w, Prepared& out) {
    for (int move = 0; move < 2; ++move) TernaryBook::sum_patterns(x, w, kMoved[move], out.moved[move]);
  }

  static void try_scales(const Prepared* octets, const float* scales, CodeSums* out, Octet* codes) {
    // Of many values that move together the way hardly depends on the scale: it is that of one in the middle.
    constexpr int kMiddle = 1;
    out[kMiddle] = choose<true>(octets, scales[kMiddle], codes);
    for (int k = 0; k < kTriedScales; ++k) {
      if (k != kMiddle) out[k] = choose<(kMovedOctets < 4)>(octets, scales[k], codes);
    }
  }

  // Both ways to move are tried, or, unless it must be exact, that of the codes that are there.
  template <bool kExact>
  static CodeSums choose(const Prepared* octets, float scale, Octet* out) {
    const float u = scale > 0.0f ? 2.0f / scale : 0.0f;
    CodeSums total;
    for (int i = 0; i < kSub / 8; i += kMovedOctets) {
      CodeSums best;
      float most = -INFINITY;
      const int first = kExact ? 0 : out[i].signs, last = kExact ? 1 : out[i].signs;
      for (int move = first; move <= last; ++move) {
        CodeSums sums;
        BookChoice choices[kMovedOctets];
        for (int o = 0; o < kMovedOctets; ++o) {
          const TernaryBook::Sums& patterns = octets[i + o].moved[move];
          choices[o] = ternary_book().nearest(patterns, u, out[i + o].choice[0]);
          sums.a += TernaryBook::a_of(patterns, choices[o]);
          sums.b += TernaryBook::b_of(patterns, choices[o]);
        }
        const float gain = 2.0f * scale * sums.a - scale * scale * sums.b;
        if (!(gain > most)) continue;
        most = gain;
        best = sums;
        for (int o = 0; o < kMovedOctets; ++o) out[i + o] = {{choices[o], {}}, static_cast<uint8_t>(move)};
      }
      total.a += best.a;
      total.b += best.b;
    }
    return total;
  }
};

}  // namespace

void encode_block(const BlockInput& in, BlockIQ1_S& out) {
  StepFit<TernaryCode<32, 4>> fit;
  fit.fit(in);
  out.d = fit.d.bits;
  for (int j = 0; j < 8; ++j) {
    const Octet* octets = fit.octets + 4 * j;
    int h = fit.step[j] << 12 | octets[0].signs << 15;
    for (int l = 0; l < 4; ++l) {
      out.q[4 * j + l] = static_cast<uint8_t>(octets[l].choice[0].entry);
      h |= (octets[l].choice[0].entry >> 8) << (3 * l);
    }
    out.h[j] = static_cast<uint16_t>(h);
  }
}

void encode_block(const BlockInput& in, BlockIQ1_M& out) {
  StepFit<TernaryCode<16, 1>> fit;
  fit.fit(in);
  for (int g = 0; g < 32; ++g) {
    const Octet& octet = fit.octets[g];
    out.q[g] = static_cast<uint8_t>(octet.choice[0].entry);
    const int nibble = octet.choice[0].entry >> 8 | octet.signs << 3;
    out.qh[g / 2] = static_cast<uint8_t>(out.qh[g / 2] | nibble << (4 * (g % 2)));
  }
  for (int k = 0; k < 4; ++k) {  // four steps and a nibble of d
    int word = (fit.d.bits >> (4 * k) & 15) << 12;
    for (int l = 0; l < 4; ++l) word |= fit.step[4 * k + l] << (3 * l);
    out.scales[k] = static_cast<uint16_t>(word);
  }
}

}  // namespace chimere::quantizer::CHIMERE_ENCODE_LEVEL
