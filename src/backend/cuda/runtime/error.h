// error.h  What the CUDA runtime says, as our errors.
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
  // Errors that are not sticky would otherwise be reported again by an innocent later call.
  cudaGetLastError();
  return Error{code_of(error), call + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")"};
}

}  // namespace chimere::cuda
