// panel_i8mm.cpp  Matmul kernels for arm64 with dot products of unsigned by signed bytes, a part of the extension I8MM.
//
// Not done  The matrix products it is named for: two rows of eight columns by two tokens, so another layout of panels.
#if defined(__ARM_FEATURE_MATMUL_INT8)

#include "backend/cpu/isa/panel_table.h"
#include "backend/cpu/isa/panel_vec_neon.h"

namespace chimere::cpu {

namespace i8mm {

struct Vec : VecNeon<Vec> {
  static constexpr bool kWideIsSigned = false;
  static uint32x4_t dot_part(uint32x4_t acc, uint32x4_t w, int8x16_t x) {
    return vreinterpretq_u32_s32(vusdotq_s32(vreinterpretq_s32_u32(acc), bytes(w), x));
  }
};

}  // namespace i8mm

const PanelKernels& panel_kernels_i8mm() {
  static constexpr PanelKernels kTable = make_panel_kernels<i8mm::Vec, Tiles<1, 2, 3, 4>, Tiles<1, 2>>();
  return kTable;
}

}  // namespace chimere::cpu

#endif
