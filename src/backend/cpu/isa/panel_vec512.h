// panel_vec512.h  The vector type of panel_body.h in AVX-512: 16 rows in one register.
//
// A class template over the level's own tag, so that two levels compiled with different flags share no symbol.
#pragma once

// g++ 12 takes the undefined operands inside its own intrinsics for a mistake of ours when sanitizers are on.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/isa/act_block.h"
#include "backend/cpu/isa/panel_layout.h"

namespace chimere::cpu {

template <class Tag>
struct Vec512 {
  using I = __m512i;
  using F = __m512;
  using Lut = __m512i;
  static constexpr int kLanes = 16;

  static I load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static I zero_i() { return _mm512_setzero_si512(); }
  static I set1_i(int v) { return _mm512_set1_epi32(v); }
  static I bcast(const int32_t* p) { return _mm512_set1_epi32(*p); }
  static I sub(I a, I b) { return _mm512_sub_epi32(a, b); }
  // 2n + 1 for the lowest nibble of a lane
  static I odd_nibble(I a) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(1), _mm512_slli_epi32(a, 1), _mm512_set1_epi32(0x1E), 0xF8);
  }
  template <int n>
  static I shr(I a) {
    return _mm512_srli_epi32(a, n);
  }
  template <int n>
  static I shl(I a) {
    return _mm512_slli_epi32(a, n);
  }
  template <int n>
  static I sar(I a) {
    if constexpr (n == 0) return a;
    return _mm512_srai_epi32(a, n);
  }
  static I shr_dyn(I a, int n) { return n == 0 ? a : _mm512_srli_epi32(a, static_cast<unsigned>(n)); }
  static I shl_dyn(I a, int n) { return n == 0 ? a : _mm512_slli_epi32(a, static_cast<unsigned>(n)); }
  template <int mask>
  static I and_bytes(I a) {
    return _mm512_and_si512(a, _mm512_set1_epi32(mask * 0x01010101));
  }
  template <int mask>
  static I and_lanes(I a) {
    return _mm512_and_si512(a, _mm512_set1_epi32(mask));
  }
  // a | (b & mask)
  template <int mask>
  static I or_masked(I a, I b) {
    return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi32(mask * 0x01010101), 0xF8);
  }
  static Lut load_lut(const uint8_t* p) {
    return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I lookup(Lut lut, I codes) { return _mm512_shuffle_epi8(lut, codes); }
  // Words 0..31 of sets s and s + 1: eight look-ups in 64 words each, every one done where bits 6 and 7 of the index
  // say so and leaving the other indexes as they are. Both sets share the loads of the table.
  static __attribute__((always_inline)) void lookup_sets(const uint16_t* table, const uint8_t* block, int s,
                                                         I (&x)[2]) {
    const I pairs = load(block + 32 * s);
    const I index[2] = {pairs, _mm512_srli_epi16(pairs, 8)};
    uint32_t high[2];
    __builtin_memcpy(high, block + kGridHigh + 4 * s, 8);
    I half[2][2];
    for (int h = 0; h < 2; ++h) {
      I quarter[2][2];
      for (int q = 0; q < 2; ++q) {
        const uint16_t* t = table + 256 * h + 128 * q;
        const I t0 = _mm512_load_si512(t), t1 = _mm512_load_si512(t + 32);
        const I t2 = _mm512_load_si512(t + 64), t3 = _mm512_load_si512(t + 96);
        for (int i = 0; i < 2; ++i) {
          const __mmask32 odd = _mm512_test_epi16_mask(index[i], _mm512_set1_epi16(0x40));
          const I even_done = _mm512_mask2_permutex2var_epi16(t0, index[i], _knot_mask32(odd), t1);
          quarter[q][i] = _mm512_mask2_permutex2var_epi16(t2, even_done, odd, t3);
        }
      }
      for (int i = 0; i < 2; ++i) {
        const __mmask32 upper = _mm512_test_epi16_mask(index[i], _mm512_set1_epi16(0x80));
        half[h][i] = _mm512_mask_blend_epi16(upper, quarter[0][i], quarter[1][i]);
      }
    }
    for (int i = 0; i < 2; ++i) x[i] = _mm512_mask_blend_epi16(high[i], half[0][i], half[1][i]);
  }
  static __attribute__((always_inline)) I negate_codes(I codes, const uint8_t* signs) {
    uint64_t negative;
    __builtin_memcpy(&negative, signs, 8);
    return _mm512_mask_sub_epi8(codes, negative, _mm512_set1_epi8(32), codes);
  }
  static __attribute__((always_inline)) void lookup_grid(const GridTable& grid, const uint8_t* block, int, I (&w)[8]) {
    const I bits = _mm512_set1_epi8(0x0E), rest = _mm512_set1_epi8(0x11);
    for (int s = 0; s < 4; s += 2) {
      I x[2];
      lookup_sets(grid.nibbles, block, s, x);
      for (int i = 0; i < 2; ++i) {
        const I even = _mm512_ternarylogic_epi32(rest, x[i], bits, 0xF8);
        const I odd = _mm512_ternarylogic_epi32(rest, _mm512_srli_epi16(x[i], 4), bits, 0xF8);
        const int g = 2 * (s + i);
        w[g] = negate_codes(_mm512_unpacklo_epi8(even, odd), block + kGridSigns + 8 * g);
        w[g + 1] = negate_codes(_mm512_unpackhi_epi8(even, odd), block + kGridSigns + 8 * g + 8);
      }
    }
  }
  static void store_codes(uint8_t* p, I a) { _mm512_storeu_si512(p, a); }
  static I flip_sign_bits(I a) { return _mm512_xor_si512(a, _mm512_set1_epi32(static_cast<int>(0x80808080u))); }

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float v) { return _mm512_set1_ps(v); }
  static F bcast(const float* p) { return _mm512_set1_ps(*p); }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F load_f32(const uint8_t* p) {
    F v = _mm512_loadu_ps(p);
    // Keeps the compiler from loading it again for each token as a memory operand.
    asm("" : "+v"(v));
    return v;
  }
  static F load_f16(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load_bf16(const uint8_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static I load_u8_lanes(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F load_u8(const uint8_t* p) { return to_float(load_u8_lanes(p)); }
  static F load_s8(const uint8_t* p) {
    return to_float(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  // 2^(e - 128): a float's exponent field is e - 1, below that the two denormals 2^-128 and 2^-127.
  static F load_e8m0(const uint8_t* p) {
    const I e = load_u8_lanes(p);
    const I normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const I small = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    const __mmask16 is_small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_small, small));
  }
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static void store_some(float* p, F a, int rows) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << rows) - 1), a);
  }

  // One row to blocks of 32.
  static void quantize(const float* x, int64_t k, ActBlock* blocks) {
    int64_t i = 0;
    for (; i + 32 <= k; i += 32) quantize_block(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + 16), blocks++);
    if (i == k) return;
    const unsigned valid = (1u << (k - i)) - 1;
    quantize_block(_mm512_maskz_loadu_ps(static_cast<__mmask16>(valid), x + i),
                   _mm512_maskz_loadu_ps(static_cast<__mmask16>(valid >> 16), x + i + 16), blocks);
  }
  // The largest magnitude is found on the bit patterns, where a NaN wins and so stays visible.
  static __attribute__((always_inline)) void quantize_block(F a, F b, ActBlock* blocks) {
    const I magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    const I top = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a), magnitude),
                                   _mm512_and_si512(_mm512_castps_si512(b), magnitude));
    const __m256i top8 = _mm256_max_epi32(_mm512_castsi512_si256(top), _mm512_extracti64x4_epi64(top, 1));
    __m128i top4 = _mm_max_epi32(_mm256_castsi256_si128(top8), _mm256_extracti128_si256(top8, 1));
    top4 = _mm_max_epi32(top4, _mm_shuffle_epi32(top4, 0x4E));
    top4 = _mm_max_epi32(top4, _mm_shuffle_epi32(top4, 0xB1));
    const float max = _mm_cvtss_f32(_mm_castsi128_ps(top4));
    const float inverse = max < kTiny ? 0.0f : 127.0f / max;
    // What is not finite converts to some code; d carries it into the result.
    const __m128i qa = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(a, _mm512_set1_ps(inverse))));
    const __m128i qb = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(b, _mm512_set1_ps(inverse))));
    const __m256i q = _mm256_inserti128_si256(_mm256_castsi128_si256(qa), qb, 1);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(blocks->q), q);
    // Sums of the two halves, side by side.
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4E));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xB1));
    const int sum_b = _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
    const int sum = _mm_cvtsi128_si32(_mm256_castsi256_si128(sums)) + sum_b;
    blocks->d = max < kTiny ? 0.0f : max * (1.0f / 127.0f);
    blocks->neg128 = -128 * sum;
    blocks->neg128b = -128 * sum_b;
    blocks->sum = static_cast<float>(sum);
  }
  // Below this 127 / max would overflow; such a block counts as zeros.
  static constexpr float kTiny = 1e-30f;
};

}  // namespace chimere::cpu
