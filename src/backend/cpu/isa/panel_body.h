// panel_body.h  The matmul kernels, written once over a small vector type V; each level instantiates them.
//
// V has kLanes rows of a panel (16, or 8: then a panel is done as two halves). In every kernel the work of one token is
// the same sequence of operations whatever NT is, which is what makes results independent of the batch.
//
// 8-bit kernel, a block of 32 columns and one token:
//   acc  = -offset * sum(q) + sum_g dot4(code_g, q_g)          integers, exact
//   part = float(acc) * scale [+ min * sum(q)]                 (two halves of 16 columns each where the scales differ)
//   y   += part * d                                            fused
// Cost on a machine with VNNI: 8 dot and 2 (3 with a minimum) other operations of the multiply ports for 512 products,
// so at best 80 % (73 %) of the 64 products a cycle that one register-wide dot a cycle gives.
//
// Measured  Zen 4 at 3.6 GHz, one core, [2048, 512], GMAC/s for 1 / 8 / 64 tokens (bench/kernels/matmul_bench.cpp):
//           Q4_0 117 / 173 / 170, Q8_0 62 / 176 / 174, Q4_K 105 / 153 / 153, IQ3_S 25 / 95 / 155, Q6_K 67 / 141 / 148,
//           F16 29 / 57 / 57; the peak of 8-bit dots is 232. One token, weights from memory: 22 to 33 GB/s (processor
//           time on a busy machine).
// Not done  Unpacking a panel to bytes once for long batches, or copying the activations of a tile side by side: Q4_0
//           with 8 tokens or more runs at 93 % of the bound above, so both together could gain 7 %.
#pragma once

#include <cstdint>

#include "backend/cpu/isa/panel_kernels.h"

#if defined(CHIMERE_UNROLL)
// The level has its own idea.
#elif defined(__clang__)
#define CHIMERE_UNROLL _Pragma("unroll")
#else
#define CHIMERE_UNROLL _Pragma("GCC unroll 16")
#endif

namespace chimere::cpu {

constexpr int log2_of(int n) { return n <= 1 ? 0 : 1 + log2_of(n / 2); }

// Codes of one block to eight groups of bytes, for the rows from `lane` on.
template <class V, Codes kCodes>
inline __attribute__((always_inline)) void unpack_codes(const GridTable* grid, const uint8_t* block, int lane,
                                                        typename V::I (&w)[8]) {
  using I = typename V::I;
  [[maybe_unused]] const uint8_t* p = block + 4 * lane;
  if constexpr (kCodes == Codes::grid) {
    V::lookup_grid(*grid, block, lane, w);
  } else if constexpr (kCodes == Codes::bits8) {
    CHIMERE_UNROLL for (int g = 0; g < 8; ++g) w[g] = V::load(p + 64 * g);
  } else if constexpr (kCodes == Codes::bits4 || kCodes == Codes::bits5 || kCodes == Codes::bits6) {
    CHIMERE_UNROLL for (int j = 0; j < 4; ++j) {
      const I x = V::load(p + 64 * j);
      w[j] = V::template and_bytes<0x0F>(x);
      w[j + 4] = V::template and_bytes<0x0F>(V::template shr<4>(x));
    }
    if constexpr (kCodes == Codes::bits5) {
      const I x = V::load(p + 256);
      CHIMERE_UNROLL for (int g = 0; g < 4; ++g) w[g] = V::template or_masked<0x10>(w[g], V::shl_dyn(x, 4 - g));
      CHIMERE_UNROLL for (int g = 4; g < 8; ++g) w[g] = V::template or_masked<0x10>(w[g], V::shr_dyn(x, g - 4));
    } else if constexpr (kCodes == Codes::bits6) {
      CHIMERE_UNROLL for (int h = 0; h < 2; ++h) {
        const I x = V::load(p + 256 + 64 * h);
        w[4 * h] = V::template or_masked<0x30>(w[4 * h], V::template shl<4>(x));
        w[4 * h + 1] = V::template or_masked<0x30>(w[4 * h + 1], V::template shl<2>(x));
        w[4 * h + 2] = V::template or_masked<0x30>(w[4 * h + 2], x);
        w[4 * h + 3] = V::template or_masked<0x30>(w[4 * h + 3], V::template shr<2>(x));
      }
    }
  } else {
    CHIMERE_UNROLL for (int h = 0; h < 2; ++h) {
      const I x = V::load(p + 64 * h);
      w[4 * h] = V::template and_bytes<0x03>(x);
      w[4 * h + 1] = V::template and_bytes<0x03>(V::template shr<2>(x));
      w[4 * h + 2] = V::template and_bytes<0x03>(V::template shr<4>(x));
      w[4 * h + 3] = V::template and_bytes<0x03>(V::template shr<6>(x));
    }
    if constexpr (kCodes == Codes::bits3) {
      const I x = V::load(p + 128);
      CHIMERE_UNROLL for (int g = 0; g < 2; ++g) w[g] = V::template or_masked<0x04>(w[g], V::shl_dyn(x, 2 - g));
      CHIMERE_UNROLL for (int g = 2; g < 8; ++g) w[g] = V::template or_masked<0x04>(w[g], V::shr_dyn(x, g - 2));
    }
  }
}

// Bytes of a table by codes. Those of five bits find it by the low four; no byte carries into the next.
template <class V, Codes kCodes>
inline __attribute__((always_inline)) typename V::I look_up(const typename V::Lut& lut, typename V::I codes) {
  const typename V::I found = V::lookup(lut, codes);
  if constexpr (kCodes != Codes::bits5) return found;
  const typename V::I moved = V::template shr<log2_of(16 / kFifthBit)>(V::template and_bytes<0x10>(codes));
  return V::sub(found, V::sub(V::zero_i(), moved));
}

template <class V>
void expand_grid(const GridTable& grid, const uint8_t* src, int64_t n_blocks, uint8_t* dst) {
  constexpr int kBytes = code_bytes(Codes::grid);
  for (int64_t block = 0; block < n_blocks; ++block, src += kBytes, dst += code_bytes(Codes::bits8)) {
    for (int line = 0; line < kBytes; line += 64) __builtin_prefetch(src + kPrefetchBytes + line, 0, 2);
    for (int lane = 0; lane < kPanelRows; lane += V::kLanes) {
      typename V::I w[8];
      unpack_codes<V, Codes::grid>(&grid, src, lane, w);
      CHIMERE_UNROLL for (int g = 0; g < 8; ++g) V::store_codes(dst + 64 * g + 4 * lane, w[g]);
    }
  }
}

// The factors of one block: s for all 32 columns, or s and s2 for 16 each; m likewise, to be added.
template <class V>
struct BlockScales {
  typename V::F s, s2, m, m2;
};

// Reads the scales of one panel, superblock after superblock.
template <class V, Scales kScales>
struct ScaleReader {
  using F = typename V::F;
  using I = typename V::I;
  static constexpr int kBytes = scale_bytes(kScales);
  const uint8_t* p;  // of the current superblock
  int lane;
  F d, dmin, factor;
  I nibbles, nibbles2;

  __attribute__((always_inline)) void start(const uint8_t* scales, int first_lane, float d_factor) {
    p = scales;
    lane = first_lane;
    factor = V::set1(d_factor);
  }
  __attribute__((always_inline)) void begin_superblock() {
    if constexpr (kScales == Scales::e8m0) return;
    if constexpr (kScales == Scales::s8_row) {
      d = V::load_f32(p + 4 * lane);
      return;
    }
    d = V::load_f16(p + 2 * lane);
    if constexpr (kScales == Scales::k_min || kScales == Scales::n4_min) {
      dmin = V::mul(V::load_f16(p + 32 + 2 * lane), V::set1(-1.0f));
    }
    if constexpr (kScales == Scales::n4 || kScales == Scales::n4_half) {
      d = V::mul(d, factor);
      nibbles = V::load(p + 32 + 4 * lane);
      if constexpr (kScales == Scales::n4_half) nibbles2 = V::load(p + 96 + 4 * lane);
    }
  }
  // 2n + 1 for the lowest nibble, which is then dropped.
  __attribute__((always_inline)) F next_nibble(I& n) {
    const F v = V::to_float(V::odd_nibble(n));
    n = V::template shr<4>(n);
    return v;
  }
  __attribute__((always_inline)) BlockScales<V> block(int j) {
    BlockScales<V> out;
    if constexpr (kScales == Scales::f16) {
      out.s = d;
    } else if constexpr (kScales == Scales::f16_min) {
      out.s = d;
      out.m = V::load_f16(p + 32 + 2 * lane);
    } else if constexpr (kScales == Scales::e8m0) {
      out.s = V::load_e8m0(p + lane);
    } else if constexpr (kScales == Scales::f16_half) {
      out.s = d;
      out.s2 = V::load_f16(p + 32 + 2 * lane);
    } else if constexpr (kScales == Scales::k_min) {
      out.s = V::mul(d, V::load_u8(p + 64 + 32 * j + lane));
      out.m = V::mul(dmin, V::load_u8(p + 80 + 32 * j + lane));
    } else if constexpr (kScales == Scales::s8) {
      out.s = V::mul(d, V::load_s8(p + 32 + 16 * j + lane));
    } else if constexpr (kScales == Scales::s8_row) {
      out.s = V::mul(d, V::load_s8(p + 64 + 16 * j + lane));
    } else if constexpr (kScales == Scales::s8_half) {
      out.s = V::mul(d, V::load_s8(p + 32 + 32 * j + lane));
      out.s2 = V::mul(d, V::load_s8(p + 48 + 32 * j + lane));
    } else if constexpr (kScales == Scales::n4_min) {
      const I a = V::load_u8_lanes(p + 64 + 32 * j + lane), b = V::load_u8_lanes(p + 80 + 32 * j + lane);
      out.s = V::mul(d, V::to_float(V::template and_lanes<0x0F>(a)));
      out.s2 = V::mul(d, V::to_float(V::template and_lanes<0x0F>(b)));
      out.m = V::mul(dmin, V::to_float(V::template shr<4>(a)));
      out.m2 = V::mul(dmin, V::to_float(V::template shr<4>(b)));
    } else if constexpr (kScales == Scales::n4) {
      out.s = V::mul(d, next_nibble(nibbles));
    } else {
      out.s = V::mul(d, next_nibble(nibbles));
      out.s2 = V::mul(d, next_nibble(nibbles2));
    }
    return out;
  }
  __attribute__((always_inline)) void end_superblock() { p += kBytes; }
};

// Integer dot of one half or the whole block for one token: groups [g0, g1).
template <class V, bool kWide, int g0, int g1>
inline __attribute__((always_inline)) typename V::I dot_groups(typename V::I acc, const typename V::I (&w)[8],
                                                               const ActBlock* a) {
  CHIMERE_UNROLL for (int g = g0; g < g1; ++g) {
    if constexpr (kWide) {
      acc = V::dot_wide(acc, w[g], a->q + 4 * g);
    } else {
      acc = V::dot(acc, w[g], a->q + 4 * g);
    }
  }
  return acc;
}

template <class V, PanelKind kKind, int NT>
void int8_tile(const TileArgs& args) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr int kSub = superblock_blocks(kFormat.scales), kCodeBytes = code_bytes(kFormat.codes);
  constexpr bool kMin = has_min(kFormat.scales), kHalves = has_halves(kFormat.scales);
  // Codes above 127 overflow the 16-bit pair sums of a machine without VNNI: there they are made signed instead.
  constexpr bool kWide = kFormat.offset == 128;
  constexpr bool kStartAtOffset = kFormat.offset != 0 && !(kWide && V::kWideIsSigned);
  constexpr int kShift = 7 - log2_of(kFormat.offset);
  constexpr int kSubScaleBytes = scale_bytes(kFormat.scales) / kSub;
  const int64_t n_super = args.n_cols / (kBlockCols * kSub);
  const int64_t ahead_panels = (kPrefetchBytes + args.panel_bytes - 1) / args.panel_bytes;
  const ActBlock* act[NT];
  CHIMERE_UNROLL for (int t = 0; t < NT; ++t) act[t] = args.act[t];

  for (int panel = 0; panel < args.n_panels; ++panel) {
    for (int lane = 0; lane < kPanelRows; lane += V::kLanes) {
      const uint8_t* codes = args.panels + panel * args.panel_bytes;
      ScaleReader<V, kFormat.scales> reader;
      reader.start(args.panels + panel * args.panel_bytes + args.scales_offset, lane, args.tables->d_factor);
      typename V::Lut lut;
      if constexpr (kFormat.lut) lut = V::load_lut(args.tables->lut);
      F y[NT];
      CHIMERE_UNROLL for (int t = 0; t < NT; ++t) y[t] = V::zero();
      // Past the end this points at what is being read anyway: no bandwidth is spent on panels nobody asked for.
      const int64_t ahead = panel + ahead_panels < args.n_panels ? ahead_panels * args.panel_bytes : 0;
      int64_t block = 0;
      for (int64_t super = 0; super < n_super; ++super) {
        reader.begin_superblock();
        for (int j = 0; j < kSub; ++j, ++block) {
          I w[8];
          unpack_codes<V, kFormat.codes>(args.tables->grid, codes, lane, w);
          for (int line = 0; line < kCodeBytes; line += 64) __builtin_prefetch(codes + ahead + line, 0, 2);
          __builtin_prefetch(reader.p + ahead + j * kSubScaleBytes, 0, 2);
          codes += kCodeBytes;
          if constexpr (kFormat.lut) {
            CHIMERE_UNROLL for (int g = 0; g < 8; ++g) w[g] = look_up<V, kFormat.codes>(lut, w[g]);
          }
          if constexpr (kWide && V::kWideIsSigned) {
            CHIMERE_UNROLL for (int g = 0; g < 8; ++g) w[g] = V::flip_sign_bits(w[g]);
          }
          const BlockScales<V> scales = reader.block(j);
          CHIMERE_UNROLL for (int t = 0; t < NT; ++t) {
            const ActBlock* a = act[t] + block;
            F part;
            if constexpr (kHalves) {
              I lo = V::zero_i(), hi = V::zero_i();
              if constexpr (kStartAtOffset) {
                hi = V::template sar<kShift>(V::bcast(&a->neg128b));
                lo = V::template sar<kShift>(V::sub(V::bcast(&a->neg128), V::bcast(&a->neg128b)));
              }
              lo = dot_groups<V, kWide, 0, 4>(lo, w, a);
              hi = dot_groups<V, kWide, 4, 8>(hi, w, a);
              part = V::fma(V::to_float(hi), scales.s2, V::mul(V::to_float(lo), scales.s));
              if constexpr (kMin) {
                // Sums of the halves from their exact multiples by -128.
                const F sum_hi = V::to_float(V::bcast(&a->neg128b));
                const F sum_lo = V::to_float(V::sub(V::bcast(&a->neg128), V::bcast(&a->neg128b)));
                part = V::fma(V::mul(scales.m, V::set1(-0x1p-7f)), sum_lo, part);
                part = V::fma(V::mul(scales.m2, V::set1(-0x1p-7f)), sum_hi, part);
              }
            } else {
              I acc = V::zero_i();
              if constexpr (kStartAtOffset) acc = V::template sar<kShift>(V::bcast(&a->neg128));
              acc = dot_groups<V, kWide, 0, 8>(acc, w, a);
              part = V::mul(V::to_float(acc), scales.s);
              if constexpr (kMin) part = V::fma(scales.m, V::bcast(&a->sum), part);
            }
            y[t] = V::fma(part, V::bcast(&a->d), y[t]);
          }
        }
        reader.end_superblock();
      }
      const int rows = (panel + 1 < args.n_panels ? kPanelRows : args.last_rows) - lane;
      CHIMERE_UNROLL for (int t = 0; t < NT; ++t) {
        float* dst = args.y[t] + panel * kPanelRows + lane;
        if (rows >= V::kLanes) {
          V::store(dst, y[t]);
        } else if (rows > 0) {
          V::store_some(dst, y[t], rows);
        }
      }
    }
  }
}

// Float kernels: column k adds to chain k % 4, so that consecutive fused multiply-adds do not wait for each other.
// The chains join as (0 + 1) + (2 + 3).
template <class V, int NT>
struct FloatChains {
  using F = typename V::F;
  F y[NT][4];
  __attribute__((always_inline)) void clear() {
    CHIMERE_UNROLL for (int t = 0; t < NT; ++t) { CHIMERE_UNROLL for (int c = 0; c < 4; ++c) y[t][c] = V::zero(); }
  }
  template <int c>
  __attribute__((always_inline)) void add(F w, const float* const (&x)[NT], int64_t k) {
    CHIMERE_UNROLL for (int t = 0; t < NT; ++t) y[t][c] = V::fma(w, V::bcast(x[t] + k), y[t][c]);
  }
  __attribute__((always_inline)) void store(const TileArgs& args, int panel, int lane) {
    const int rows = (panel + 1 < args.n_panels ? kPanelRows : args.last_rows) - lane;
    CHIMERE_UNROLL for (int t = 0; t < NT; ++t) {
      const F sum = V::add(V::add(y[t][0], y[t][1]), V::add(y[t][2], y[t][3]));
      float* dst = args.y[t] + panel * kPanelRows + lane;
      if (rows >= V::kLanes) {
        V::store(dst, sum);
      } else if (rows > 0) {
        V::store_some(dst, sum, rows);
      }
    }
  }
};

// Quantised weights, float activations: the weight is decoded as its format defines, then multiplied.
template <class V, PanelKind kKind, int NT>
void exact_tile(const TileArgs& args) {
  using I = typename V::I;
  using F = typename V::F;
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr int kSub = superblock_blocks(kFormat.scales), kCodeBytes = code_bytes(kFormat.codes);
  constexpr bool kMin = has_min(kFormat.scales), kHalves = has_halves(kFormat.scales);
  const int64_t n_super = args.n_cols / (kBlockCols * kSub);
  const float* x[NT];
  CHIMERE_UNROLL for (int t = 0; t < NT; ++t) x[t] = args.x[t];
  const I offset = V::set1_i(kFormat.offset);

  for (int panel = 0; panel < args.n_panels; ++panel) {
    for (int lane = 0; lane < kPanelRows; lane += V::kLanes) {
      const uint8_t* codes = args.panels + panel * args.panel_bytes;
      ScaleReader<V, kFormat.scales> reader;
      reader.start(args.panels + panel * args.panel_bytes + args.scales_offset, lane, args.tables->d_factor);
      typename V::Lut lut;
      if constexpr (kFormat.lut) lut = V::load_lut(args.tables->lut);
      FloatChains<V, NT> chains;
      chains.clear();
      int64_t k = 0;
      for (int64_t super = 0; super < n_super; ++super) {
        reader.begin_superblock();
        for (int j = 0; j < kSub; ++j) {
          I w[8];
          unpack_codes<V, kFormat.codes>(args.tables->grid, codes, lane, w);
          codes += kCodeBytes;
          if constexpr (kFormat.lut) {
            CHIMERE_UNROLL for (int g = 0; g < 8; ++g) w[g] = look_up<V, kFormat.codes>(lut, w[g]);
          }
          const BlockScales<V> scales = reader.block(j);
          F s = scales.s, m = scales.m;
          for (int g = 0; g < 8; ++g, k += 4) {
            if constexpr (kHalves) {
              if (g == 4) {
                s = scales.s2;
                if constexpr (kMin) m = scales.m2;
              }
            }
            const auto value = [&](I code) __attribute__((always_inline)) {
              F v = V::mul(V::to_float(V::sub(code, offset)), s);
              if constexpr (kMin) v = V::add(v, m);
              return v;
            };
            chains.template add<0>(value(V::template and_lanes<0xFF>(w[g])), x, k);
            chains.template add<1>(value(V::template and_lanes<0xFF>(V::template shr<8>(w[g]))), x, k + 1);
            chains.template add<2>(value(V::template and_lanes<0xFF>(V::template shr<16>(w[g]))), x, k + 2);
            chains.template add<3>(value(V::template shr<24>(w[g])), x, k + 3);
          }
        }
        reader.end_superblock();
      }
      chains.store(args, panel, lane);
    }
  }
}

// F32, F16 and BF16 panels.
template <class V, PanelKind kKind, int NT>
void float_tile(const TileArgs& args) {
  constexpr int kBytes = kKind == PanelKind::f32 ? 4 : 2;
  const float* x[NT];
  CHIMERE_UNROLL for (int t = 0; t < NT; ++t) x[t] = args.x[t];
  const auto load = [](const uint8_t* p) __attribute__((always_inline)) {
    if constexpr (kKind == PanelKind::f32) {
      return V::load_f32(p);
    } else if constexpr (kKind == PanelKind::f16) {
      return V::load_f16(p);
    } else {
      return V::load_bf16(p);
    }
  };
  constexpr int kColumn = kPanelRows * kBytes;
  for (int panel = 0; panel < args.n_panels; ++panel) {
    for (int lane = 0; lane < kPanelRows; lane += V::kLanes) {
      const uint8_t* p = args.panels + panel * args.panel_bytes + lane * kBytes;
      FloatChains<V, NT> chains;
      chains.clear();
      int64_t k = 0;
      for (; k + 4 <= args.n_cols; k += 4, p += 4 * kColumn) {
        chains.template add<0>(load(p), x, k);
        chains.template add<1>(load(p + kColumn), x, k + 1);
        chains.template add<2>(load(p + 2 * kColumn), x, k + 2);
        chains.template add<3>(load(p + 3 * kColumn), x, k + 3);
      }
      if (k < args.n_cols) chains.template add<0>(load(p), x, k);
      if (k + 1 < args.n_cols) chains.template add<1>(load(p + kColumn), x, k + 1);
      if (k + 2 < args.n_cols) chains.template add<2>(load(p + 2 * kColumn), x, k + 2);
      chains.store(args, panel, lane);
    }
  }
}

}  // namespace chimere::cpu
