// head_squares.h  RMSNorm over each head of a row, left to whoever reads the row.
//
// Blocks that share a head would have to meet before one of them knew the head's rms. Instead each leaves the sum of
// squares of its 32 columns beside the columns, which are not yet divided, and the reader divides. So may a kernel
// between the two: a product is rounded the same in a register as in memory.
#pragma once

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

inline constexpr int kSquaresColumns = 32;  // that a sum of squares is of

// A lane brings the sum of the columns 32 (lane % 4) and on of 128 neighbours, and is given 1 / rms of their head.
// All lanes call it; heads are 64 or 128 wide.
__device__ __forceinline__ float head_inverse(float squares, int head_width, float eps) {
  squares += __shfl_xor_sync(simt::kAllLanes, squares, 1);
  const float others = __shfl_xor_sync(simt::kAllLanes, squares, 2);
  if (head_width == 4 * kSquaresColumns) squares += others;
  return rsqrtf(squares / static_cast<float>(head_width) + eps);
}

__device__ __forceinline__ float4 times_all(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

}  // namespace chimere::cuda
