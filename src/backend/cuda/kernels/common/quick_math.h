// quick_math.h  Gate functions to a few ulps in few instructions: for kernels of a few microseconds, in which every
// instruction is fetched for the first time.
#pragma once

#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {

__device__ __forceinline__ float quick_sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// log(1 + exp(x)) without branches: log(1 + e) = 2 artanh(e / (2 + e)), and e / (2 + e) is at most 1 / 3.
__device__ __forceinline__ float quick_softplus(float x) {
  const float e = expf(-fabsf(x)), y = __fdividef(e, 2.0f + e), square = y * y;
  float sum = 1.0f / 13.0f;
#pragma unroll
  for (int i = 11; i > 0; i -= 2) sum = fmaf(sum, square, 1.0f / static_cast<float>(i));
  return fmaf(2.0f * y, sum, fmaxf(x, 0.0f));
}

}  // namespace chimere::cuda
