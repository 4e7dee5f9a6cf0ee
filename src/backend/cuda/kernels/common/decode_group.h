// decode_group.h  32 neighbouring weights of a row as floats, for any type: slow and exact.
#pragma once

#include "backend/cuda/simt/simt.h"
#include "backend/cuda/weights/formats.h"
#include "backend/cuda/weights/weight.h"

namespace chimere::cuda {

__device__ __forceinline__ float decode_float(DType type, const uint8_t* row, int64_t i) {
  if (type == DType::F32) return bits_to_float(load_u32(row + 4 * i));
  const uint32_t bits = load_u16(row + 2 * i);
  return type == DType::F16 ? half_to_float(bits) : bits_to_float(bits << 16);
}

// Elements 32 g to 32 g + 31; zeros beyond the row.
__device__ inline void decode_group(const Weight& w, const uint8_t* row, int g, float (&out)[kGroup]) {
  if (w.is_float()) {
    for (int i = 0; i < kGroup; ++i) {
      out[i] = g * kGroup + i < w.width ? decode_float(w.type, row, g * kGroup + i) : 0.0f;
    }
    return;
  }
  Group group;
  unpack_any(w.type, row, static_cast<uint32_t>(w.width / kGroup), static_cast<uint32_t>(g), w.grids, group);
  for (int i = 0; i < kGroup; ++i) {
    const float q = static_cast<float>(static_cast<int8_t>(group.q[i / 4] >> (8 * (i % 4))));
    out[i] = __fadd_rn(__fmul_rn(group.scale[i / 16], q), group.min[i / 16]);
  }
}

}  // namespace chimere::cuda
