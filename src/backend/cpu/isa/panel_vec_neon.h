// panel_vec_neon.h  The vector type of panel_body.h in NEON: half a panel, 8 rows in two registers.
//
// A class template over the level's own type, so that two levels compiled with different flags share no symbol.
//
// Not measured: no arm64 machine ran it, only an emulator, which tells right from wrong and not fast from slow.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "backend/cpu/isa/act_block.h"
#include "backend/cpu/isa/panel_layout.h"

namespace chimere::cpu {

template <class Level>
struct VecNeon {
  struct I {
    uint32x4_t lo, hi;
  };
  struct F {
    float32x4_t lo, hi;
  };
  using Lut = uint8x16_t;
  static constexpr int kLanes = 8;

  static I load(const uint8_t* p) {
    return {vreinterpretq_u32_u8(vld1q_u8(p)), vreinterpretq_u32_u8(vld1q_u8(p + 16))};
  }
  static I both(uint32x4_t a) { return {a, a}; }
  static I zero_i() { return both(vdupq_n_u32(0)); }
  static I set1_i(int v) { return both(vdupq_n_u32(static_cast<uint32_t>(v))); }
  static I bcast(const int32_t* p) { return both(vreinterpretq_u32_s32(vld1q_dup_s32(p))); }
  static I sub(I a, I b) { return {vsubq_u32(a.lo, b.lo), vsubq_u32(a.hi, b.hi)}; }
  static I bit_and(I a, uint32x4_t b) { return {vandq_u32(a.lo, b), vandq_u32(a.hi, b)}; }
  // 2n + 1 for the lowest nibble of a lane
  static I odd_nibble(I a) {
    const I doubled = bit_and(shl<1>(a), vdupq_n_u32(0x1E));
    return {vorrq_u32(doubled.lo, vdupq_n_u32(1)), vorrq_u32(doubled.hi, vdupq_n_u32(1))};
  }
  template <int n>
  static I shr(I a) {
    return {vshrq_n_u32(a.lo, n), vshrq_n_u32(a.hi, n)};
  }
  template <int n>
  static I shl(I a) {
    return {vshlq_n_u32(a.lo, n), vshlq_n_u32(a.hi, n)};
  }
  template <int n>
  static uint32x4_t sar_part(uint32x4_t a) {
    return vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(a), n));
  }
  template <int n>
  static I sar(I a) {
    if constexpr (n == 0) {
      return a;
    } else {
      return {sar_part<n>(a.lo), sar_part<n>(a.hi)};
    }
  }
  static I shl_dyn(I a, int n) { return {vshlq_u32(a.lo, vdupq_n_s32(n)), vshlq_u32(a.hi, vdupq_n_s32(n))}; }
  static I shr_dyn(I a, int n) { return shl_dyn(a, -n); }  // the instruction shifts right by what is negative
  template <int mask>
  static I and_bytes(I a) {
    return bit_and(a, vdupq_n_u32(mask * 0x01010101u));
  }
  template <int mask>
  static I and_lanes(I a) {
    return bit_and(a, vdupq_n_u32(mask));
  }
  // a | (b & mask)
  template <int mask>
  static I or_masked(I a, I b) {
    const I masked = and_bytes<mask>(b);
    return {vorrq_u32(a.lo, masked.lo), vorrq_u32(a.hi, masked.hi)};
  }
  static uint8x16_t bytes(uint32x4_t a) { return vreinterpretq_u8_u32(a); }
  static Lut load_lut(const uint8_t* p) { return vld1q_u8(p); }
  // By the low four bits: the instruction gives 0 where any bit above is set.
  static I lookup(Lut lut, I codes) {
    const I low = and_bytes<0x0F>(codes);
    return {vreinterpretq_u32_u8(vqtbl1q_u8(lut, bytes(low.lo))), vreinterpretq_u32_u8(vqtbl1q_u8(lut, bytes(low.hi)))};
  }
  // The codes of a register with the signs of its 16 bytes: bit i of `signs` is that of byte i.
  static uint32x4_t with_signs(uint32x4_t codes, const uint8_t* signs) {
    const uint8x16_t spread = vcombine_u8(vdup_n_u8(signs[0]), vdup_n_u8(signs[1]));
    const uint8x16_t select = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t negative = vtstq_u8(spread, select);
    return veorq_u32(codes, vreinterpretq_u32_u8(vandq_u8(negative, vdupq_n_u8(0x1E))));
  }
  static void lookup_grid(const GridTable& grid, const uint8_t* block, int lane, I (&w)[8]) {
    for (int g = 0; g < 8; ++g) {
      const int s = g / 2;
      uint32_t high;
      __builtin_memcpy(&high, block + kGridHigh + 4 * s, 4);
      uint32_t codes[kLanes];
      for (int r = 0; r < kLanes; ++r) {
        const int i = 8 * ((lane + r) / 4) + 4 * (g % 2) + r % 4;
        const uint32_t index = block[64 * (s / 2) + 2 * i + s % 2] | ((high >> i) & 1u) << 8;
        codes[r] = grid.codes[index];
      }
      const uint8_t* signs = block + kGridSigns + 8 * g + lane / 2;
      w[g] = {with_signs(vld1q_u32(codes), signs), with_signs(vld1q_u32(codes + 4), signs + 2)};
    }
  }
  static void store_codes(uint8_t* p, I a) {
    vst1q_u8(p, bytes(a.lo));
    vst1q_u8(p + 16, bytes(a.hi));
  }
  static I flip_sign_bits(I a) {
    const uint32x4_t signs = vdupq_n_u32(0x80808080u);
    return {veorq_u32(a.lo, signs), veorq_u32(a.hi, signs)};
  }
  // The activations of four columns, in every lane.
  static int8x16_t word(const int8_t* q) {
    int32_t four;
    __builtin_memcpy(&four, q, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  // Half of a dot product is what levels differ in: they write `dot_part`, of four lanes.
  static I dot(I acc, I w, const int8_t* q) {
    const int8x16_t x = word(q);
    return {Level::dot_part(acc.lo, w.lo, x), Level::dot_part(acc.hi, w.hi, x)};
  }
  static I dot_wide(I acc, I w, const int8_t* q) { return dot(acc, w, q); }

  static F zero() { return set1(0.0f); }
  static F set1(float v) { return {vdupq_n_f32(v), vdupq_n_f32(v)}; }
  static F bcast(const float* p) {
    const float32x4_t v = vld1q_dup_f32(p);
    return {v, v};
  }
  static F to_float(I a) {
    return {vcvtq_f32_s32(vreinterpretq_s32_u32(a.lo)), vcvtq_f32_s32(vreinterpretq_s32_u32(a.hi))};
  }
  static F add(F a, F b) { return {vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)}; }
  static F mul(F a, F b) { return {vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)}; }
  static F fma(F a, F b, F c) { return {vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)}; }
  static uint16x8_t load_halves(const uint8_t* p) { return vreinterpretq_u16_u8(vld1q_u8(p)); }
  static F load_f32(const uint8_t* p) {
    return {vreinterpretq_f32_u8(vld1q_u8(p)), vreinterpretq_f32_u8(vld1q_u8(p + 16))};
  }
  static F load_f16(const uint8_t* p) {
    const float16x8_t h = vreinterpretq_f16_u16(load_halves(p));
    return {vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
  }
  static F load_bf16(const uint8_t* p) {
    const uint16x8_t h = load_halves(p);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)), vreinterpretq_f32_u32(vshll_high_n_u16(h, 16))};
  }
  static I load_u8_lanes(const uint8_t* p) {
    const uint16x8_t h = vmovl_u8(vld1_u8(p));
    return {vmovl_u16(vget_low_u16(h)), vmovl_high_u16(h)};
  }
  static F load_u8(const uint8_t* p) { return to_float(load_u8_lanes(p)); }
  static F load_s8(const uint8_t* p) {
    const int16x8_t h = vmovl_s8(vreinterpret_s8_u8(vld1_u8(p)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(h))), vcvtq_f32_s32(vmovl_high_s16(h))};
  }
  // 2^(e - 128): a float's exponent field is e - 1, below that the two denormals 2^-128 and 2^-127.
  static float32x4_t e8m0_part(uint32x4_t e) {
    const uint32x4_t one = vdupq_n_u32(1);
    const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, one), 23);
    const uint32x4_t small = vshlq_u32(vdupq_n_u32(0x200000), vreinterpretq_s32_u32(e));
    return vreinterpretq_f32_u32(vbslq_u32(vcgtq_u32(e, one), normal, small));
  }
  static F load_e8m0(const uint8_t* p) {
    const I e = load_u8_lanes(p);
    return {e8m0_part(e.lo), e8m0_part(e.hi)};
  }
  static void store(float* p, F a) {
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
  }
  static void store_some(float* p, F a, int rows) {
    float all[kLanes];
    store(all, a);
    for (int r = 0; r < rows; ++r) p[r] = all[r];
  }

  // One row to blocks of 32: the largest magnitude is found on the bit patterns, where a NaN wins and so stays visible.
  static void quantize(const float* x, int64_t k, ActBlock* blocks) {
    for (int64_t i = 0; i < k; i += 32, x += 32, ++blocks) {
      float tail[32];
      const float* from = x;
      if (k - i < 32) {
        for (int64_t e = 0; e < 32; ++e) tail[e] = e < k - i ? x[e] : 0.0f;
        from = tail;
      }
      float32x4_t v[8];
      uint32x4_t top = vdupq_n_u32(0);
      for (int n = 0; n < 8; ++n) {
        v[n] = vld1q_f32(from + 4 * n);
        top = vmaxq_u32(top, vandq_u32(vreinterpretq_u32_f32(v[n]), vdupq_n_u32(0x7FFFFFFF)));
      }
      const uint32_t max_bits = vmaxvq_u32(top);
      float max;
      __builtin_memcpy(&max, &max_bits, 4);
      const bool tiny = max < 1e-30f;  // 127 / max would overflow; such a block counts as zeros
      const float inverse = tiny ? 0.0f : 127.0f / max;
      blocks->d = tiny ? 0.0f : max * (1.0f / 127.0f);
      // What is not finite converts to some code; d carries it into the result.
      const auto codes = [&](int n) {
        const int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(v[n], inverse));
        const int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(v[n + 1], inverse));
        return vqmovn_s16(vcombine_s16(vqmovn_s32(a), vqmovn_s32(b)));
      };
      const int8x16_t first = vcombine_s8(codes(0), codes(2)), second = vcombine_s8(codes(4), codes(6));
      vst1q_s8(blocks->q, first);
      vst1q_s8(blocks->q + 16, second);
      const int sum_first = vaddlvq_s8(first), sum_second = vaddlvq_s8(second);
      blocks->neg128 = -128 * (sum_first + sum_second);
      blocks->neg128b = -128 * sum_second;
      blocks->sum = static_cast<float>(sum_first + sum_second);
    }
  }
};

}  // namespace chimere::cpu
