// quarter_sums.h  Sums over the rows of a state in which a lane holds four columns of every fourth run of rows.
#pragma once

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

// Adds a row, times a number, to sums over rows.
__device__ __forceinline__ float4 add_scaled(float4 sum, float4 v, float by) {
  return make_float4(fmaf(v.x, by, sum.x), fmaf(v.y, by, sum.y), fmaf(v.z, by, sum.z), fmaf(v.w, by, sum.w));
}

// Sums over the four lanes that differ in bits 3 and 4, of four values each; a lane keeps the sum of value
// 2 (bit 4) + bit 3.
__device__ __forceinline__ float sum_quarters(float4 x, int lane) {
  const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
  float first = upper ? x.z : x.x, second = upper ? x.w : x.y;
  first += __shfl_xor_sync(simt::kAllLanes, upper ? x.x : x.z, 16);
  second += __shfl_xor_sync(simt::kAllLanes, upper ? x.y : x.w, 16);
  return (odd ? second : first) + __shfl_xor_sync(simt::kAllLanes, odd ? first : second, 8);
}

// Which of four values a lane keeps.
__device__ __forceinline__ int kept_quarter(int lane) { return (lane & 16) / 8 + (lane & 8) / 8; }

}  // namespace chimere::cuda
