// vec_portable.cpp  vec.h for any processor: 4 lanes in the compilers' own vector type (SSE2, NEON).
#include "backend/cpu/vec.h"
#include "tensor/half.h"

namespace chimere::cpu {
namespace {

struct V {
  typedef float Reg __attribute__((vector_size(16)));
  typedef int32_t Int __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  static constexpr int kTileRows = 4;
  static constexpr int kDotQueries = 2;
  static constexpr int kStripVecs = 4;

  static Reg zero() { return Reg{0, 0, 0, 0}; }
  static Reg set1(float x) { return Reg{x, x, x, x}; }
  static Reg load(const float* p) {
    Reg x;
    __builtin_memcpy(&x, p, sizeof(x));
    return x;
  }
  static Reg load_n(const float* p, int n) {
    Reg x = zero();
    for (int i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  static void store(float* p, Reg x) { __builtin_memcpy(p, &x, sizeof(x)); }
  static void store_n(float* p, Reg x, int n) {
    for (int i = 0; i < n; ++i) p[i] = x[i];
  }
  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg select(Int mask, Reg a, Reg b) { return (Reg)((mask & (Int)a) | (~mask & (Int)b)); }
  static Reg min(Reg a, Reg b) { return select(a < b, a, b); }
  static Reg max(Reg a, Reg b) { return select(a > b, a, b); }
  static Reg round(Reg x) {
    const Reg magic = set1(12582912.0f);  // 1.5 * 2^23: adding it leaves no bits below the units
    return (x + magic) - magic;
  }
  static Reg pow2(Reg n) {
    Int bits;
    for (int i = 0; i < kLanes; ++i) bits[i] = n[i] == n[i] ? (static_cast<int32_t>(n[i]) + 127) * (1 << 23) : 0;
    return (Reg)bits;
  }
  static float sum(Reg x) { return (x[0] + x[2]) + (x[1] + x[3]); }
  static void sum4(Reg a, Reg b, Reg c, Reg d, float* out) {
    out[0] = sum(a), out[1] = sum(b), out[2] = sum(c), out[3] = sum(d);
  }
  static float maximum(Reg x) {
    const float a = x[0] > x[1] ? x[0] : x[1];
    const float b = x[2] > x[3] ? x[2] : x[3];
    return a > b ? a : b;
  }
  static float f16_value(const std::byte* p) {
    uint16_t bits;
    __builtin_memcpy(&bits, p, sizeof(bits));
    return f16_to_f32(bits);
  }
  static Reg load_f16(const std::byte* p) {
    // Exponent and mantissa moved into place are 2^112 too small, denormals too; infinity and NaN need their exponent.
    uint16_t h[4];
    __builtin_memcpy(h, p, sizeof(h));
    const Int half = {h[0], h[1], h[2], h[3]};
    const Int magnitude = (half & 0x7FFF) << 13;
    const Int special = magnitude >= 0x0F800000;
    const Int value = (Int)((Reg)magnitude * set1(0x1p112f));
    return (Reg)(value | (special & 0x7F800000) | (half & 0x8000) << 16);
  }
  static Reg load_i8(const std::byte* p) {
    const auto value = [&](int i) { return static_cast<float>(static_cast<signed char>(p[i])); };
    return Reg{value(0), value(1), value(2), value(3)};
  }
  static Reg load_i4(const std::byte* p, bool high) {
    const auto value = [&](int i) { return static_cast<float>((static_cast<int>(p[i]) >> (high ? 4 : 0) & 15) - 8); };
    return Reg{value(0), value(1), value(2), value(3)};
  }
  static void store_f16(std::byte* p, Reg x) {
    for (int i = 0; i < kLanes; ++i) {
      const uint16_t bits = f32_to_f16(x[i]);
      __builtin_memcpy(p + 2 * i, &bits, sizeof(bits));
    }
  }
  static void transpose_block(const float* in, int64_t in_row, float* out, int64_t out_row) {
    for (int i = 0; i < kLanes; ++i) {
      for (int j = 0; j < kLanes; ++j) out[j * out_row + i] = in[i * in_row + j];
    }
  }
};

}  // namespace

#include "backend/cpu/isa/vec_body.h"

const VecKernels kVecPortable = table("portable");

}  // namespace chimere::cpu
