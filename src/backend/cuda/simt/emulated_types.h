// emulated_types.h  CUDA's vector and 16-bit float types for the emulator: same names, layouts and rounding.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/half.h"

#define SIMT_VECTOR2(name, type, align) \
  struct alignas(align) name {          \
    type x, y;                          \
  };                                    \
  constexpr name make_##name(type x, type y) { return {x, y}; }
#define SIMT_VECTOR3(name, type) \
  struct name {                  \
    type x, y, z;                \
  };                             \
  constexpr name make_##name(type x, type y, type z) { return {x, y, z}; }
#define SIMT_VECTOR4(name, type, align) \
  struct alignas(align) name {          \
    type x, y, z, w;                    \
  };                                    \
  constexpr name make_##name(type x, type y, type z, type w) { return {x, y, z, w}; }

SIMT_VECTOR2(char2, signed char, 2)
SIMT_VECTOR2(uchar2, unsigned char, 2)
SIMT_VECTOR2(short2, short, 4)
SIMT_VECTOR2(ushort2, unsigned short, 4)
SIMT_VECTOR2(int2, int, 8)
SIMT_VECTOR2(uint2, unsigned, 8)
SIMT_VECTOR2(float2, float, 8)
SIMT_VECTOR2(double2, double, 16)
SIMT_VECTOR2(longlong2, long long, 16)
SIMT_VECTOR2(ulonglong2, unsigned long long, 16)
SIMT_VECTOR3(int3, int)
SIMT_VECTOR3(uint3, unsigned)
SIMT_VECTOR3(float3, float)
SIMT_VECTOR4(char4, signed char, 4)
SIMT_VECTOR4(uchar4, unsigned char, 4)
SIMT_VECTOR4(short4, short, 8)
SIMT_VECTOR4(ushort4, unsigned short, 8)
SIMT_VECTOR4(int4, int, 16)
SIMT_VECTOR4(uint4, unsigned, 16)
SIMT_VECTOR4(float4, float, 16)

#undef SIMT_VECTOR2
#undef SIMT_VECTOR3
#undef SIMT_VECTOR4

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

namespace chimere::cuda::simt {

// A double to float so that a later rounding to 16 bits is as if it were done at once ("round to odd").
inline float odd_float(double value) {
  float f = static_cast<float>(value);
  if (static_cast<double>(f) == value || !std::isfinite(f)) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(value)) f = std::nextafterf(f, 0.0f);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(f) | 1u);
}

}  // namespace chimere::cuda::simt

struct __half {
  uint16_t bits;

  __half() = default;
  __half(float f) : bits(chimere::f32_to_f16(f)) {}
  __half(double f) : bits(chimere::f32_to_f16(chimere::cuda::simt::odd_float(f))) {}
  __half(int i) : __half(static_cast<double>(i)) {}
  operator float() const { return chimere::f16_to_f32(bits); }
};
using half = __half;

struct __nv_bfloat16 {
  uint16_t bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float f) : bits(chimere::f32_to_bf16(f)) {}
  __nv_bfloat16(double f) : bits(chimere::f32_to_bf16(chimere::cuda::simt::odd_float(f))) {}
  __nv_bfloat16(int i) : __nv_bfloat16(static_cast<double>(i)) {}
  operator float() const { return chimere::bf16_to_f32(bits); }
};
using nv_bfloat16 = __nv_bfloat16;

// One operation in float and one rounding down is the correctly rounded result: a float has more than twice the bits.
#define SIMT_HALF_OPERATORS(T)                                                                            \
  inline T operator+(T a, T b) { return T(static_cast<float>(a) + static_cast<float>(b)); }               \
  inline T operator-(T a, T b) { return T(static_cast<float>(a) - static_cast<float>(b)); }               \
  inline T operator*(T a, T b) { return T(static_cast<float>(a) * static_cast<float>(b)); }               \
  inline T operator/(T a, T b) { return T(static_cast<float>(a) / static_cast<float>(b)); }               \
  inline T operator-(T a) {                                                                               \
    a.bits ^= 0x8000u;                                                                                    \
    return a;                                                                                             \
  }                                                                                                       \
  inline T& operator+=(T& a, T b) { return a = a + b; }                                                   \
  inline T& operator-=(T& a, T b) { return a = a - b; }                                                   \
  inline T& operator*=(T& a, T b) { return a = a * b; }                                                   \
  inline bool operator<(T a, T b) { return static_cast<float>(a) < static_cast<float>(b); }               \
  inline bool operator>(T a, T b) { return static_cast<float>(a) > static_cast<float>(b); }               \
  inline bool operator<=(T a, T b) { return static_cast<float>(a) <= static_cast<float>(b); }             \
  inline bool operator>=(T a, T b) { return static_cast<float>(a) >= static_cast<float>(b); }             \
  inline bool operator==(T a, T b) { return static_cast<float>(a) == static_cast<float>(b); }             \
  inline bool operator!=(T a, T b) { return static_cast<float>(a) != static_cast<float>(b); }             \
  inline T __hadd(T a, T b) { return a + b; }                                                             \
  inline T __hsub(T a, T b) { return a - b; }                                                             \
  inline T __hmul(T a, T b) { return a * b; }                                                             \
  inline T __hdiv(T a, T b) { return a / b; }                                                             \
  inline T __hneg(T a) { return -a; }                                                                     \
  inline T __hfma(T a, T b, T c) {                                                                        \
    return T(static_cast<double>(static_cast<float>(a)) * static_cast<float>(b) + static_cast<float>(c)); \
  }                                                                                                       \
  inline T __hmax(T a, T b) { return T(std::fmax(static_cast<float>(a), static_cast<float>(b))); }        \
  inline T __hmin(T a, T b) { return T(std::fmin(static_cast<float>(a), static_cast<float>(b))); }        \
  inline T __habs(T a) {                                                                                  \
    a.bits &= 0x7FFFu;                                                                                    \
    return a;                                                                                             \
  }
SIMT_HALF_OPERATORS(__half)
SIMT_HALF_OPERATORS(__nv_bfloat16)
#undef SIMT_HALF_OPERATORS

struct alignas(4) __half2 {
  __half x, y;
};
using half2 = __half2;
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
using nv_bfloat162 = __nv_bfloat162;

#define SIMT_HALF2_OPERATORS(T2)                                                                 \
  inline T2 __hadd2(T2 a, T2 b) { return {a.x + b.x, a.y + b.y}; }                               \
  inline T2 __hsub2(T2 a, T2 b) { return {a.x - b.x, a.y - b.y}; }                               \
  inline T2 __hmul2(T2 a, T2 b) { return {a.x * b.x, a.y * b.y}; }                               \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  inline T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                 \
  inline T2 __hmin2(T2 a, T2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                 \
  inline T2 operator+(T2 a, T2 b) { return __hadd2(a, b); }                                      \
  inline T2 operator-(T2 a, T2 b) { return __hsub2(a, b); }                                      \
  inline T2 operator*(T2 a, T2 b) { return __hmul2(a, b); }
SIMT_HALF2_OPERATORS(__half2)
SIMT_HALF2_OPERATORS(__nv_bfloat162)
#undef SIMT_HALF2_OPERATORS

inline __half __float2half(float f) { return __half(f); }
inline __half __float2half_rn(float f) { return __half(f); }
inline float __half2float(__half h) { return h; }
inline __half __ushort_as_half(unsigned short bits) { return std::bit_cast<__half>(bits); }
inline __half __short_as_half(short bits) { return std::bit_cast<__half>(bits); }
inline unsigned short __half_as_ushort(__half h) { return h.bits; }
inline short __half_as_short(__half h) { return std::bit_cast<short>(h); }
inline __half __int2half_rn(int i) { return __half(i); }
inline int __half2int_rn(__half h) { return static_cast<int>(std::nearbyint(static_cast<float>(h))); }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 f) { return {__half(f.x), __half(f.y)}; }
inline __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
inline __half2 __half2half2(__half h) { return {h, h}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline float2 __half22float2(__half2 h) { return {static_cast<float>(h.x), static_cast<float>(h.y)}; }
inline __half __low2half(__half2 h) { return h.x; }
inline __half __high2half(__half2 h) { return h.y; }
inline float __low2float(__half2 h) { return h.x; }
inline float __high2float(__half2 h) { return h.y; }

inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
inline float __bfloat162float(__nv_bfloat16 b) { return b; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return std::bit_cast<__nv_bfloat16>(bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 f) { return {__nv_bfloat16(f.x), __nv_bfloat16(f.y)}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 b) { return {b, b}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 b) { return {static_cast<float>(b.x), static_cast<float>(b.y)}; }
inline float __low2float(__nv_bfloat162 b) { return b.x; }
inline float __high2float(__nv_bfloat162 b) { return b.y; }
