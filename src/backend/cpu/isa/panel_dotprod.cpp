// panel_dotprod.cpp  Matmul kernels for arm64 with dot products of signed bytes.
#if defined(__ARM_FEATURE_DOTPROD)

#include "backend/cpu/isa/panel_table.h"
#include "backend/cpu/isa/panel_vec_neon.h"

namespace chimere::cpu {

namespace dotprod {

struct Vec : VecNeon<Vec> {
  static constexpr bool kWideIsSigned = true;
  static uint32x4_t dot_part(uint32x4_t acc, uint32x4_t w, int8x16_t x) {
    return vreinterpretq_u32_s32(vdotq_s32(vreinterpretq_s32_u32(acc), vreinterpretq_s8_u32(w), x));
  }
};

}  // namespace dotprod

const PanelKernels& panel_kernels_dotprod() {
  static constexpr PanelKernels kTable = make_panel_kernels<dotprod::Vec, Tiles<1, 2, 3, 4>, Tiles<1, 2>>();
  return kTable;
}

}  // namespace chimere::cpu

#endif
