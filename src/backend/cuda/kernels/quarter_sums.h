// quarter_sums.h  Sums over the rows of a state whose lanes have four columns of every fourth run of rows.
#pragma once

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

// Sums over the four lanes that differ in bits 3 and 4, of four values each; a lane keeps the sum of value
// 2 (bit 4) + bit 3.
__device__ __forceinline__ float sum_quarters(float4 x, int lane) {
  const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
  float first = upper ? x.z : x.x, second = upper ? x.w : x.y;
  first += __shfl_xor_sync(simt::kAllLanes, upper ? x.x : x.z, 16);
  second += __shfl_xor_sync(simt::kAllLanes, upper ? x.y : x.w, 16);
  return (odd ? second : first) + __shfl_xor_sync(simt::kAllLanes, odd ? first : second, 8);
}

}  // namespace chimere::cuda
