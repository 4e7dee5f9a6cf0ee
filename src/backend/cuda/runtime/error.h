// error.h  Errors of the CUDA runtime as ours.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "base/result.h"

namespace chimere::cuda {

inline Code code_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return Code::exhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return Code::not_found;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorNotSupported: return Code::unsupported;
    default: return Code::device;
  }
}

// `call` says which call with which size failed, e.g. "cudaMalloc of 512 bytes".
inline Status checked(cudaError_t error, const std::string& call) {
  if (error == cudaSuccess) return Ok{};
  // Clears errors that are not sticky: an unrelated later call would report them again.
  cudaGetLastError();
  return Error{code_of(error), call + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")"};
}

}  // namespace chimere::cuda
