// panel_avx2.cpp  Matmul kernels for AVX2 with FMA and F16C: a panel as two halves of 8 rows.
#if defined(__AVX2__)

#include <immintrin.h>

#include "backend/cpu/isa/panel_table.h"

namespace chimere::cpu {

namespace avx2 {

typedef int32_t __attribute__((may_alias)) Word;

struct Vec {
  using I = __m256i;
  using F = __m256;
  using Lut = __m256i;
  static constexpr int kLanes = 8;
  static constexpr bool kWideIsSigned = true;

  static I load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static I zero_i() { return _mm256_setzero_si256(); }
  static I set1_i(int v) { return _mm256_set1_epi32(v); }
  static I bcast(const int32_t* p) { return _mm256_set1_epi32(*p); }
  static I sub(I a, I b) { return _mm256_sub_epi32(a, b); }
  // 2n + 1 for the lowest nibble of a lane
  static I odd_nibble(I a) {
    return _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi32(a, 1), _mm256_set1_epi32(0x1E)), _mm256_set1_epi32(1));
  }
  template <int n>
  static I shr(I a) {
    return _mm256_srli_epi32(a, n);
  }
  template <int n>
  static I shl(I a) {
    return _mm256_slli_epi32(a, n);
  }
  template <int n>
  static I sar(I a) {
    if constexpr (n == 0) return a;
    return _mm256_srai_epi32(a, n);
  }
  static I shr_dyn(I a, int n) { return n == 0 ? a : _mm256_srli_epi32(a, n); }
  static I shl_dyn(I a, int n) { return n == 0 ? a : _mm256_slli_epi32(a, n); }
  template <int mask>
  static I and_bytes(I a) {
    return _mm256_and_si256(a, _mm256_set1_epi8(mask));
  }
  template <int mask>
  static I and_lanes(I a) {
    return _mm256_and_si256(a, _mm256_set1_epi32(mask));
  }
  // a | (b & mask)
  template <int mask>
  static I or_masked(I a, I b) {
    return _mm256_or_si256(a, and_bytes<mask>(b));
  }
  static Lut load_lut(const uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I lookup(Lut lut, I codes) { return _mm256_shuffle_epi8(lut, codes); }
  static I lookup_group(const GridTable& grid, I index, const uint8_t* signs) {
    const I codes = _mm256_i32gather_epi32(reinterpret_cast<const int*>(grid.codes), index, 4);
    int bits;
    __builtin_memcpy(&bits, signs, 4);
    // Byte i of the result: the byte of the signs that has bit i, then that bit of it.
    const I spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const I select = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
    const I mine = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread), select);
    return _mm256_xor_si256(codes, _mm256_and_si256(_mm256_cmpeq_epi8(mine, select), _mm256_set1_epi8(0x1E)));
  }
  static void lookup_grid(const GridTable& grid, const uint8_t* block, int lane, I (&w)[8]) {
    const I select = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768);
    for (int s = 0; s < 4; ++s) {
      const I pairs = load(block + 64 * (s / 2) + 4 * lane);
      const I low = s % 2 == 0 ? _mm256_and_si256(pairs, _mm256_set1_epi16(255)) : _mm256_srli_epi16(pairs, 8);
      int16_t bits;
      __builtin_memcpy(&bits, block + kGridHigh + 4 * s + lane / 4, 2);
      const I is_high = _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(bits), select), select);
      const I index = _mm256_or_si256(low, _mm256_and_si256(is_high, _mm256_set1_epi16(256)));
      const uint8_t* signs = block + kGridSigns + 16 * s + lane / 2;
      w[2 * s] = lookup_group(grid, _mm256_unpacklo_epi16(index, zero_i()), signs);
      w[2 * s + 1] = lookup_group(grid, _mm256_unpackhi_epi16(index, zero_i()), signs + 8);
    }
  }
  static void store_codes(uint8_t* p, I a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
  static I flip_sign_bits(I a) { return _mm256_xor_si256(a, _mm256_set1_epi8(-128)); }
  static I word(const int8_t* q) { return _mm256_set1_epi32(*reinterpret_cast<const Word*>(q)); }
  static I add_pairs(I acc, I products) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
  }
  // Codes up to 127: the sum of two products fits in 16 bits.
  static I dot(I acc, I w, const int8_t* q) { return add_pairs(acc, _mm256_maddubs_epi16(w, word(q))); }
  // Signed weights: |w| times q with the sign of w; 2 * 128 * 127 fits as well.
  static I dot_wide(I acc, I w, const int8_t* q) {
    return add_pairs(acc, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(word(q), w)));
  }

  static F zero() { return _mm256_setzero_ps(); }
  static F set1(float v) { return _mm256_set1_ps(v); }
  static F bcast(const float* p) { return _mm256_broadcast_ss(p); }
  static F to_float(I a) { return _mm256_cvtepi32_ps(a); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static __m128i load_128(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
  static __m128i load_64(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  static F load_f32(const uint8_t* p) {
    F v = _mm256_castsi256_ps(load(p));
    // Keeps the compiler from loading it again for each token as a memory operand.
    asm("" : "+x"(v));
    return v;
  }
  static F load_f16(const uint8_t* p) { return _mm256_cvtph_ps(load_128(p)); }
  static F load_bf16(const uint8_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(p)), 16));
  }
  static I load_u8_lanes(const uint8_t* p) { return _mm256_cvtepu8_epi32(load_64(p)); }
  static F load_u8(const uint8_t* p) { return to_float(load_u8_lanes(p)); }
  static F load_s8(const uint8_t* p) { return to_float(_mm256_cvtepi8_epi32(load_64(p))); }
  // 2^(e - 128): a float's exponent field is e - 1, below that the two denormals 2^-128 and 2^-127.
  static F load_e8m0(const uint8_t* p) {
    const I e = load_u8_lanes(p);
    const I normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const I small = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(small, normal, _mm256_cmpgt_epi32(e, _mm256_set1_epi32(1))));
  }
  static void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  static void store_some(float* p, F a, int rows) {
    const I lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(rows), lanes), a);
  }

  static int reduce_max(I a) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
    return _mm_cvtsi128_si32(m);
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
      F v[4];
      I top = zero_i();
      for (int n = 0; n < 4; ++n) {
        v[n] = _mm256_loadu_ps(from + 8 * n);
        top = _mm256_max_epi32(top, _mm256_and_si256(_mm256_castps_si256(v[n]), _mm256_set1_epi32(0x7FFFFFFF)));
      }
      const int max_bits = reduce_max(top);
      float max;
      __builtin_memcpy(&max, &max_bits, 4);
      const bool tiny = max < 1e-30f;  // 127 / max would overflow; such a block counts as zeros
      const F inverse = _mm256_set1_ps(tiny ? 0.0f : 127.0f / max);
      blocks->d = tiny ? 0.0f : max * (1.0f / 127.0f);
      I q[4];
      // What is not finite converts to some code; d carries it into the result.
      for (int n = 0; n < 4; ++n) q[n] = _mm256_cvtps_epi32(_mm256_mul_ps(v[n], inverse));
      // The packs interleave 128-bit halves; the permutation restores the order.
      const I words = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
      const I bytes = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(blocks->q), bytes);
      // Sums of the two halves, side by side.
      I sums = add_pairs(zero_i(), _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes));
      sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4E));
      sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xB1));
      const int second = _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
      const int sum = _mm_cvtsi128_si32(_mm256_castsi256_si128(sums)) + second;
      blocks->neg128 = -128 * sum;
      blocks->neg128b = -128 * second;
      blocks->sum = static_cast<float>(sum);
    }
  }
};

}  // namespace avx2

const PanelKernels& panel_kernels_avx2() {
  static constexpr PanelKernels kTable = make_panel_kernels<avx2::Vec, Tiles<1, 2, 3, 4>, Tiles<1, 2>>();
  return kTable;
}

}  // namespace chimere::cpu

#endif
