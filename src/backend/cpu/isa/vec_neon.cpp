// vec_neon.cpp  vec.h for any arm64: 4 lanes, 32 registers.
#if defined(__aarch64__)
#include <arm_neon.h>

#include "backend/cpu/vec.h"

namespace chimere::cpu {
namespace {

struct V {
  using Reg = float32x4_t;
  static constexpr int kLanes = 4;
  static constexpr int kTileRows = 8;  // 8 x 2 accumulators leave registers for B and the broadcast
  static constexpr int kDotQueries = 4;
  static constexpr int kStripVecs = 4;

  static Reg zero() { return vdupq_n_f32(0.0f); }
  static Reg set1(float x) { return vdupq_n_f32(x); }
  static Reg load(const float* p) { return vld1q_f32(p); }
  static Reg load_n(const float* p, int n) {
    float x[kLanes] = {};
    for (int i = 0; i < n; ++i) x[i] = p[i];
    return vld1q_f32(x);
  }
  static void store(float* p, Reg x) { vst1q_f32(p, x); }
  static void store_n(float* p, Reg x, int n) {
    float all[kLanes];
    vst1q_f32(all, x);
    for (int i = 0; i < n; ++i) p[i] = all[i];
  }
  static Reg add(Reg a, Reg b) { return vaddq_f32(a, b); }
  static Reg sub(Reg a, Reg b) { return vsubq_f32(a, b); }
  static Reg mul(Reg a, Reg b) { return vmulq_f32(a, b); }
  static Reg div(Reg a, Reg b) { return vdivq_f32(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return vfmaq_f32(c, a, b); }
  // Comparisons, as the instructions of that name give a NaN where there is one.
  static Reg min(Reg a, Reg b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static Reg max(Reg a, Reg b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Reg round(Reg x) { return vrndnq_f32(x); }
  static Reg pow2(Reg n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
  static float sum(Reg x) { return vaddvq_f32(x); }
  static void sum4(Reg a, Reg b, Reg c, Reg d, float* out) {
    vst1q_f32(out, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
  }
  static float maximum(Reg x) { return vmaxvq_f32(x); }
  static uint8x8_t load_4(const std::byte* p) {
    uint32_t bytes;
    __builtin_memcpy(&bytes, p, sizeof(bytes));
    return vcreate_u8(bytes);
  }
  static Reg load_f16(const std::byte* p) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(reinterpret_cast<const uint8_t*>(p))));
  }
  static float f16_value(const std::byte* p) {
    uint16_t bits;
    __builtin_memcpy(&bits, p, sizeof(bits));
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))), 0);
  }
  static Reg load_i8(const std::byte* p) {
    const int16x8_t halves = vmovl_s8(vreinterpret_s8_u8(load_4(p)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves)));
  }
  static Reg load_i4(const std::byte* p, bool high) {
    const uint8x8_t bytes = load_4(p);
    const uint8x8_t nibbles = high ? vshr_n_u8(bytes, 4) : vand_u8(bytes, vdup_n_u8(15));
    const int16x8_t halves = vmovl_s8(vsub_s8(vreinterpret_s8_u8(nibbles), vdup_n_s8(8)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves)));
  }
  static void store_f16(std::byte* p, Reg x) {
    vst1_u8(reinterpret_cast<uint8_t*>(p), vreinterpret_u8_f16(vcvt_f16_f32(x)));
  }
  static void transpose_block(const float* in, int64_t in_row, float* out, int64_t out_row) {
    const Reg a = load(in), b = load(in + in_row), c = load(in + 2 * in_row), d = load(in + 3 * in_row);
    const float32x4x2_t ac = vzipq_f32(a, c), bd = vzipq_f32(b, d);  // a0 c0 a1 c1, a2 c2 a3 c3
    const float32x4x2_t low = vzipq_f32(ac.val[0], bd.val[0]), high = vzipq_f32(ac.val[1], bd.val[1]);
    store(out, low.val[0]);
    store(out + out_row, low.val[1]);
    store(out + 2 * out_row, high.val[0]);
    store(out + 3 * out_row, high.val[1]);
  }
};

}  // namespace

#include "backend/cpu/isa/vec_body.h"

const VecKernels kVecNeon = table("neon");

}  // namespace chimere::cpu

#endif  // __aarch64__
