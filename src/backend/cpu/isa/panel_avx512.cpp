// panel_avx512.cpp  Matmul kernels for AVX-512 without VNNI.
#if defined(__AVX512BW__)

#include "backend/cpu/isa/panel_table.h"
#include "backend/cpu/isa/panel_vec512.h"

namespace chimere::cpu {

namespace avx512 {

typedef int32_t __attribute__((may_alias)) Word;

struct Vec : Vec512<Vec> {
  static constexpr bool kWideIsSigned = true;
  static I word(const int8_t* q) { return _mm512_set1_epi32(*reinterpret_cast<const Word*>(q)); }
  static I add_pairs(I acc, I products) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(products, _mm512_set1_epi16(1)));
  }
  // Codes up to 127: the sum of two products fits in 16 bits.
  static I dot(I acc, I w, const int8_t* q) { return add_pairs(acc, _mm512_maddubs_epi16(w, word(q))); }
  // Signed weights: |w| times q with the sign of w; 2 * 128 * 127 fits as well.
  static I dot_wide(I acc, I w, const int8_t* q) {
    const I x = word(q);
    const I signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    return add_pairs(acc, _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x));
  }
};

}  // namespace avx512

const PanelKernels& panel_kernels_avx512() {
  static constexpr PanelKernels kTable =
      make_panel_kernels<avx512::Vec, Tiles<1, 2, 3, 4, 5, 6, 7, 8>, Tiles<1, 2, 3, 4, 5, 6>>();
  return kTable;
}

}  // namespace chimere::cpu

#endif
