// emulated_math.h  The scalar functions of CUDA that the C++ library lacks, for the emulator.
//
// Fast-math variants are the ordinary functions here: a test may ask for tolerance, never for the device's own error.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// glibc declares these names for itself, so they can be macros only.
#define __expf(x) expf(x)
#define __exp10f(x) powf(10.0f, x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, s, c) sincosf(x, s, c)

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z) { return std::fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0.0f ? std::fmin(x, 1.0f) : 0.0f; }

// As CUDA converts: NaN is 0, and what does not fit becomes the nearest number that does.
template <class T>
T saturated(float x) {
  if (x != x) return 0;
  if (x >= static_cast<float>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return x <= static_cast<float>(std::numeric_limits<T>::min()) ? std::numeric_limits<T>::min() : static_cast<T>(x);
}
inline int __float2int_rn(float x) { return saturated<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return saturated<int>(x); }
inline int __float2int_rd(float x) { return saturated<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return saturated<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return saturated<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return saturated<unsigned>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= ((x >> i) & 1u) << (31 - i);
  return r;
}
inline int __mulhi(int a, int b) { return static_cast<int>((int64_t{a} * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>(((uint64_t{hi} << 32 | lo) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return static_cast<unsigned>((uint64_t{hi} << 32 | lo) >> (shift & 31));
}
// Picks four of the eight bytes of y:x. Bit 3 of a selector is ignored, other than in the instruction beneath.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selectors) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned s = (selectors >> (4 * i)) & 7u;
    r |= (static_cast<unsigned>(bytes >> (8 * s)) & 255u) << (8 * i);
  }
  return r;
}

inline int __dp4a(int a, int b, int c) {
  unsigned sum = static_cast<unsigned>(c);
  for (int i = 0; i < 4; i++) {
    sum += static_cast<unsigned>(static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i)));
  }
  return static_cast<int>(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += ((a >> (8 * i)) & 255u) * ((b >> (8 * i)) & 255u);
  return c;
}

namespace chimere::cuda::simt {
template <class F>
unsigned by_bytes(unsigned a, unsigned b, F f) {
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    r |= (static_cast<unsigned>(f(static_cast<uint8_t>(a >> (8 * i)), static_cast<uint8_t>(b >> (8 * i)))) & 255u)
         << (8 * i);
  }
  return r;
}
}  // namespace chimere::cuda::simt
#define SIMT_BY_BYTES(name, expression)                                                                   \
  inline unsigned name(unsigned a, unsigned b) {                                                          \
    return chimere::cuda::simt::by_bytes(a, b, [](uint8_t x, uint8_t y) -> int { return (expression); }); \
  }
SIMT_BY_BYTES(__vadd4, x + y)
SIMT_BY_BYTES(__vsub4, x - y)
SIMT_BY_BYTES(__vaddss4, std::clamp(static_cast<int8_t>(x) + static_cast<int8_t>(y), -128, 127))
SIMT_BY_BYTES(__vsubss4, std::clamp(static_cast<int8_t>(x) - static_cast<int8_t>(y), -128, 127))
SIMT_BY_BYTES(__vcmpeq4, x == y ? 255 : 0)
SIMT_BY_BYTES(__vcmpne4, x != y ? 255 : 0)
SIMT_BY_BYTES(__vcmpgtu4, x > y ? 255 : 0)
SIMT_BY_BYTES(__vcmpgts4, static_cast<int8_t>(x) > static_cast<int8_t>(y) ? 255 : 0)
SIMT_BY_BYTES(__vmaxu4, x > y ? x : y)
SIMT_BY_BYTES(__vminu4, x < y ? x : y)
#undef SIMT_BY_BYTES

// CUDA's min and max for every pair of arithmetic types; for floats a NaN loses, as fminf says.
#define SIMT_MIN_MAX(T)                                      \
  inline constexpr T min(T a, T b) { return b < a ? b : a; } \
  inline constexpr T max(T a, T b) { return a < b ? b : a; }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
