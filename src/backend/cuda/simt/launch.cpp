// launch.cpp  What a launch checks beforehand and says when it fails.
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda::simt {

namespace {

std::string text(const dim3& d) { return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z); }

}  // namespace

std::string launch_complaint(const Launch& launch) {
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads == 0 || threads > 1024 || launch.block.z > 64) return "expected a block of 1 to 1024 threads";
  if (launch.grid.x == 0 || launch.grid.x > 0x7FFFFFFFu || launch.grid.y == 0 || launch.grid.y > 65535 ||
      launch.grid.z == 0 || launch.grid.z > 65535) {
    return "expected a grid of 1 to 2147483647 by 65535 by 65535 blocks";
  }
  if (launch.shared_bytes > shared_limit())
    return "expected at most " + std::to_string(shared_limit()) + " shared bytes";
  return "";
}

Error launch_error(const Launch& launch, const char* what) {
  return Error{Code::device,
               "kernel launch, grid " + text(launch.grid) + ", block " + text(launch.block) + ", " +
                   std::to_string(launch.shared_bytes) + " shared bytes: " + what,
               launch.file, launch.line};
}

#ifndef CHIMERE_SIMT_EMULATOR
size_t shared_limit() {
  static const size_t limit = [] {
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return size_t{0};
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess)
      return size_t{0};
    return static_cast<size_t>(bytes);
  }();
  return limit;
}

bool has_bulk_copy() { return has_dependent_launch(); }

bool has_dependent_launch() {
  static const bool has = [] {
    int device = 0, major = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return false;
    return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
  }();
  return has;
}
#endif

}  // namespace chimere::cuda::simt
