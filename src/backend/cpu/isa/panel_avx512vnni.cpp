// panel_avx512vnni.cpp  Matmul kernels for AVX-512 with VNNI.
#if defined(__AVX512VNNI__)

#include "backend/cpu/isa/panel_table.h"
#include "backend/cpu/isa/panel_vec512.h"

namespace chimere::cpu {

namespace avx512vnni {

typedef int32_t __attribute__((may_alias)) Word;

struct Vec : Vec512<Vec> {
  static constexpr bool kWideIsSigned = false;
  // Written out because the compiler does not fold the broadcast into the instruction.
  static __attribute__((always_inline)) I dot(I acc, I w, const int8_t* q) {
    asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*reinterpret_cast<const Word*>(q)));
    return acc;
  }
  static __attribute__((always_inline)) I dot_wide(I acc, I w, const int8_t* q) { return dot(acc, w, q); }
};

}  // namespace avx512vnni

const PanelKernels& panel_kernels_avx512vnni() {
  static constexpr PanelKernels kTable =
      make_panel_kernels<avx512vnni::Vec, Tiles<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>,
                         Tiles<1, 2, 3, 4, 5, 6>>();
  return kTable;
}

}  // namespace chimere::cpu

#endif
