// panel_neon.cpp  Matmul kernels for any arm64.
#if defined(__aarch64__)

#include "backend/cpu/isa/panel_table.h"
#include "backend/cpu/isa/panel_vec_neon.h"

namespace chimere::cpu {

namespace neon {

struct Vec : VecNeon<Vec> {
  static constexpr bool kWideIsSigned = true;
  // Signed codes down to -128: two products, of at most 128 * 127 each, fit in 16 bits.
  static uint32x4_t dot_part(uint32x4_t acc, uint32x4_t w, int8x16_t x) {
    const int8x16_t codes = vreinterpretq_s8_u32(w);
    const int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(x)), high = vmull_high_s8(codes, x);
    return vreinterpretq_u32_s32(vpadalq_s16(vreinterpretq_s32_u32(acc), vpaddq_s16(low, high)));
  }
};

}  // namespace neon

const PanelKernels& panel_kernels_neon() {
  static constexpr PanelKernels kTable = make_panel_kernels<neon::Vec, Tiles<1, 2, 3, 4>, Tiles<1, 2>>();
  return kTable;
}

}  // namespace chimere::cpu

#endif
