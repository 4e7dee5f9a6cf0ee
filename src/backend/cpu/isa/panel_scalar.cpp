// panel_scalar.cpp  Matmul kernels in plain C++ for any machine: 16 lanes as an array, left to the compiler.
// Unrolling tokens and groups on top of the loops over lanes would only make the code large.
#define CHIMERE_UNROLL

#include <bit>
#include <cmath>
#include <cstring>

#include "backend/cpu/isa/panel_table.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace chimere::cpu {

namespace scalar {

struct Vec {
  static constexpr int kLanes = 16;
  static constexpr bool kWideIsSigned = false;
  struct I {
    uint32_t v[kLanes];
  };
  struct F {
    float v[kLanes];
  };
  struct Lut {
    uint8_t v[16];
  };

  template <class Out, class Op>
  static __attribute__((always_inline)) Out map(Op op) {
    Out out;
    for (int r = 0; r < kLanes; ++r) out.v[r] = op(r);
    return out;
  }

  static I load(const uint8_t* p) {
    I out;
    std::memcpy(out.v, p, sizeof(out.v));
    return out;
  }
  static I zero_i() { return set1_i(0); }
  static I set1_i(int v) {
    return map<I>([&](int) { return static_cast<uint32_t>(v); });
  }
  static I bcast(const int32_t* p) { return set1_i(*p); }
  static I sub(const I& a, const I& b) {
    return map<I>([&](int r) { return a.v[r] - b.v[r]; });
  }
  // 2n + 1 for the lowest nibble of a lane
  static I odd_nibble(const I& a) {
    return map<I>([&](int r) { return ((a.v[r] << 1) & 0x1Eu) | 1u; });
  }
  template <int n>
  static I shr(const I& a) {
    return shr_dyn(a, n);
  }
  template <int n>
  static I shl(const I& a) {
    return shl_dyn(a, n);
  }
  template <int n>
  static I sar(const I& a) {
    return map<I>([&](int r) { return static_cast<uint32_t>(static_cast<int32_t>(a.v[r]) >> n); });
  }
  static I shr_dyn(const I& a, int n) {
    return map<I>([&](int r) { return a.v[r] >> n; });
  }
  static I shl_dyn(const I& a, int n) {
    return map<I>([&](int r) { return a.v[r] << n; });
  }
  template <int mask>
  static I and_bytes(const I& a) {
    return map<I>([&](int r) { return a.v[r] & (mask * 0x01010101u); });
  }
  template <int mask>
  static I and_lanes(const I& a) {
    return map<I>([&](int r) { return a.v[r] & static_cast<uint32_t>(mask); });
  }
  template <int mask>
  static I or_masked(const I& a, const I& b) {
    return map<I>([&](int r) { return a.v[r] | (b.v[r] & (mask * 0x01010101u)); });
  }
  static Lut load_lut(const uint8_t* p) {
    Lut out;
    std::memcpy(out.v, p, sizeof(out.v));
    return out;
  }
  static I lookup(const Lut& lut, const I& codes) {
    return map<I>([&](int r) {
      uint32_t word = 0;
      for (int b = 0; b < 32; b += 8) word |= static_cast<uint32_t>(lut.v[(codes.v[r] >> b) & 15u]) << b;
      return word;
    });
  }
  static void lookup_grid(const GridTable& grid, const uint8_t* block, int, I (&w)[8]) {
    for (int g = 0; g < 8; ++g) {
      const int s = g / 2;
      uint32_t high;
      uint64_t signs;
      std::memcpy(&high, block + kGridHigh + 4 * s, 4);
      std::memcpy(&signs, block + kGridSigns + 8 * g, 8);
      w[g] = map<I>([&](int r) {
        const int i = 8 * (r / 4) + 4 * (g % 2) + r % 4;
        const uint32_t index = block[64 * (s / 2) + 2 * i + s % 2] | ((high >> i) & 1u) << 8;
        const uint32_t nibble = static_cast<uint32_t>(signs >> (4 * r)) & 15u;
        return grid.codes[index] ^ ((nibble * 0x00204081u) & 0x01010101u) * 0x1Eu;
      });
    }
  }
  static void store_codes(uint8_t* p, const I& a) { std::memcpy(p, a.v, sizeof(a.v)); }
  static I dot(const I& acc, const I& w, const int8_t* q) {
    return map<I>([&](int r) {
      int32_t sum = static_cast<int32_t>(acc.v[r]);
      for (int b = 0; b < 4; ++b) sum += static_cast<int32_t>((w.v[r] >> (8 * b)) & 255u) * q[b];
      return static_cast<uint32_t>(sum);
    });
  }
  static I dot_wide(const I& acc, const I& w, const int8_t* q) { return dot(acc, w, q); }

  static F zero() { return set1(0.0f); }
  static F set1(float v) {
    return map<F>([&](int) { return v; });
  }
  static F bcast(const float* p) { return set1(*p); }
  static F to_float(const I& a) {
    return map<F>([&](int r) { return static_cast<float>(static_cast<int32_t>(a.v[r])); });
  }
  static F add(const F& a, const F& b) {
    return map<F>([&](int r) { return a.v[r] + b.v[r]; });
  }
  static F mul(const F& a, const F& b) {
    return map<F>([&](int r) { return a.v[r] * b.v[r]; });
  }
  // Rounded twice: a fused operation is a library call on machines without the instruction.
  static F fma(const F& a, const F& b, const F& c) {
    return map<F>([&](int r) { return a.v[r] * b.v[r] + c.v[r]; });
  }
  static uint16_t half(const uint8_t* p, int r) {
    uint16_t bits;
    std::memcpy(&bits, p + 2 * r, 2);
    return bits;
  }
  static F load_f32(const uint8_t* p) {
    F out;
    std::memcpy(out.v, p, sizeof(out.v));
    return out;
  }
  static F load_f16(const uint8_t* p) {
    return map<F>([&](int r) { return f16_to_f32(half(p, r)); });
  }
  static F load_bf16(const uint8_t* p) {
    return map<F>([&](int r) { return bf16_to_f32(half(p, r)); });
  }
  static I load_u8_lanes(const uint8_t* p) {
    return map<I>([&](int r) { return static_cast<uint32_t>(p[r]); });
  }
  static F load_u8(const uint8_t* p) { return to_float(load_u8_lanes(p)); }
  static F load_s8(const uint8_t* p) {
    return map<F>([&](int r) { return static_cast<float>(static_cast<int8_t>(p[r])); });
  }
  static F load_e8m0(const uint8_t* p) {
    return map<F>([&](int r) { return mxfp4_scale(p[r]); });
  }
  static void store(float* p, const F& a) { std::memcpy(p, a.v, sizeof(a.v)); }
  static void store_some(float* p, const F& a, int rows) {
    std::memcpy(p, a.v, static_cast<size_t>(rows) * sizeof(float));
  }

  // One row to blocks of 32: the largest magnitude is found on the bit patterns, where a NaN wins and so stays visible.
  static void quantize(const float* x, int64_t k, ActBlock* blocks) {
    for (int64_t i = 0; i < k; i += 32, x += 32, ++blocks) {
      const int64_t n = k - i < 32 ? k - i : 32;
      uint32_t max_bits = 0;
      for (int64_t e = 0; e < n; ++e) {
        const uint32_t bits = std::bit_cast<uint32_t>(x[e]) & 0x7FFFFFFFu;
        if (bits > max_bits) max_bits = bits;
      }
      const float max = std::bit_cast<float>(max_bits);
      const bool tiny = max < 1e-30f;  // 127 / max would overflow; such a block counts as zeros
      // Infinities and NaN reach the result through d; their codes do not matter.
      const bool finite = max_bits < 0x7F800000u;
      const float inverse = tiny || !finite ? 0.0f : 127.0f / max;
      blocks->d = tiny ? 0.0f : max * (1.0f / 127.0f);
      int sums[2] = {0, 0};
      for (int64_t e = 0; e < 32; ++e) {
        const int q = e < n && finite ? static_cast<int>(std::nearbyintf(x[e] * inverse)) : 0;
        blocks->q[e] = static_cast<int8_t>(q);
        sums[e / 16] += q;
      }
      blocks->neg128 = -128 * (sums[0] + sums[1]);
      blocks->neg128b = -128 * sums[1];
      blocks->sum = static_cast<float>(sums[0] + sums[1]);
    }
  }
};

}  // namespace scalar

const PanelKernels& panel_kernels_scalar() {
  static constexpr PanelKernels kTable = make_panel_kernels<scalar::Vec, Tiles<1, 4>, Tiles<1, 2>>();
  return kTable;
}

}  // namespace chimere::cpu
