// vec_avx512.cpp  vec.h for AVX-512 (F, BW, VL, DQ) with F16C: 16 lanes, 32 registers, masked edges.
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 starts its unmasked AVX-512 intrinsics from a deliberately undefined register and then warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "backend/cpu/vec.h"

namespace chimere::cpu {
namespace {

struct V {
  using Reg = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 8;  // 8 x 2 accumulators: 16 independent chains hide any FMA latency
  static constexpr int kDotQueries = 4;
  static constexpr int kStripVecs = 8;  // 128 columns, a whole row of the usual state

  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg set1(float x) { return _mm512_set1_ps(x); }
  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static Reg load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store(float* p, Reg x) { _mm512_storeu_ps(p, x); }
  static void store_n(float* p, Reg x, int n) { _mm512_mask_storeu_ps(p, first(n), x); }
  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg round(Reg x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static Reg pow2(Reg n) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
  }
  static float sum(Reg x) { return _mm512_reduce_add_ps(x); }
  static void sum4(Reg a, Reg b, Reg c, Reg d, float* out) {
    const auto fold = [](Reg x) { return _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)); };
    const __m256 s = _mm256_hadd_ps(_mm256_hadd_ps(fold(a), fold(b)), _mm256_hadd_ps(fold(c), fold(d)));
    _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
  }
  static float maximum(Reg x) { return _mm512_reduce_max_ps(x); }
  static Reg load_f16(const std::byte* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static float f16_value(const std::byte* p) {
    unsigned short bits;
    __builtin_memcpy(&bits, p, sizeof(bits));
    return _cvtsh_ss(bits);
  }
  static Reg load_i8(const std::byte* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static Reg load_i4(const std::byte* p, bool high) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m512i nibbles = _mm512_and_si512(_mm512_srli_epi32(bytes, high ? 4 : 0), _mm512_set1_epi32(15));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(nibbles, _mm512_set1_epi32(8)));
  }
  static void store_f16(std::byte* p, Reg x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static void transpose_block(const float* in, int64_t in_row, float* out, int64_t out_row) {
    // Pairs, quads, then 128-bit lanes twice.
    __m512 r[16], t[16];
    for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_ps(in + i * in_row);
    for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
      r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
      r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xEE);
      r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
      t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
      t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
      t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
    }
    for (int i = 0; i < 4; ++i) {
      _mm512_storeu_ps(out + i * out_row, _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
      _mm512_storeu_ps(out + (i + 8) * out_row, _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD));
      _mm512_storeu_ps(out + (i + 4) * out_row, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88));
      _mm512_storeu_ps(out + (i + 12) * out_row, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xDD));
    }
  }
};

}  // namespace

#include "backend/cpu/isa/vec_body.h"

const VecKernels kVecAvx512 = table("avx512");

}  // namespace chimere::cpu

#endif  // __x86_64__
