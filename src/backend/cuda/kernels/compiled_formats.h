// compiled_formats.h  Which weight formats get kernels of their own.
//
// All that have instances, for cards and in the emulator of a Release build. Sanitized builds, and the build that only
// asks whether nvcc takes the kernels, set CHIMERE_FEW_FORMATS and keep four that between them take every branch of the
// templates: one scale for 32 weights (Q8_0), scales with minima (Q5_K), a codebook (IQ3_S in its wide form) and a
// look-up table with exponents (MXFP4). The others then take
// the path of formats without instances (any_dot), which is slower and right.
#pragma once

#include "backend/cuda/weights/formats.h"

namespace chimere::cuda {

constexpr bool has_own_kernels([[maybe_unused]] DType type) {
#ifdef CHIMERE_FEW_FORMATS
  return type == DType::Q8_0 || type == DType::Q5_K || type == kIq3Wide || type == DType::MXFP4;
#else
  return true;
#endif
}

}  // namespace chimere::cuda
