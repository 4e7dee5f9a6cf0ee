// device.cpp  The card and its memory; in the emulator, the host's.
#include "backend/cuda/runtime/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifndef CHIMERE_SIMT_EMULATOR
#include "backend/cuda/runtime/error.h"
#endif

namespace chimere::cuda {

std::string bytes_text(uint64_t bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    unit++;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

#ifdef CHIMERE_SIMT_EMULATOR

int device_count() { return 1; }

Result<DeviceInfo> probe_device(int index) {
  TRY(use_device(index));
  DeviceInfo info;
  info.name = "emulator";
  info.sm = 90;
  info.n_sms = 4;
  info.memory_bytes = info.free_bytes = uint64_t{8} << 30;
  info.l2_bytes = 4 << 20;
  info.shared_bytes = 99 << 10;
  info.emulated = true;
  return Result<DeviceInfo>{std::move(info)};
}

Status use_device(int index) {
  if (index != 0) return Error{Code::not_found, "CUDA device " + std::to_string(index) + ": expected 0, the emulator"};
  return Ok{};
}

Result<void*> allocate_device(uint64_t bytes) {
  const uint64_t rounded = (bytes + 255) / 256 * 256;
  void* memory = std::aligned_alloc(256, rounded);
  if (!memory) return Error{Code::exhausted, "out of memory: " + std::to_string(bytes) + " bytes"};
  std::memset(memory, 0xFF, rounded);  // NaNs, for who reads before writing
  return memory;
}

void free_device(void* memory) { std::free(memory); }
Result<void*> allocate_pinned(uint64_t bytes) { return allocate_device(bytes); }
void free_pinned(void* memory) { std::free(memory); }

#else

int device_count() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return n;
}

Status use_device(int index) { return checked(cudaSetDevice(index), "cudaSetDevice to " + std::to_string(index)); }

Result<DeviceInfo> probe_device(int index) {
  int driver = 0, n = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    return Error{Code::not_found, "CUDA device " + std::to_string(index) + ": no CUDA driver on this machine"};
  }
  TRY(checked(cudaGetDeviceCount(&n), "cudaGetDeviceCount"));
  if (index < 0 || index >= n) {
    return Error{Code::not_found, "CUDA device " + std::to_string(index) + ": found " + std::to_string(n) + " devices"};
  }
  TRY(use_device(index));
  cudaDeviceProp properties{};
  TRY(checked(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"));
  DeviceInfo info;
  info.index = index;
  info.name = properties.name;
  info.sm = properties.major * 10 + properties.minor;
  info.n_sms = properties.multiProcessorCount;
  info.memory_bytes = properties.totalGlobalMem;
  info.l2_bytes = static_cast<uint64_t>(properties.l2CacheSize);
  info.shared_bytes = properties.sharedMemPerBlockOptin;
  if (info.sm < 80) {
    return Error{Code::unsupported, "CUDA device " + std::to_string(index) + ", " + info.name +
                                        ": expected compute capability 8.0 or later, found " +
                                        std::to_string(properties.major) + "." + std::to_string(properties.minor)};
  }
  size_t free = 0, total = 0;
  TRY(checked(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  info.free_bytes = free;
  info.context_bytes = std::min<uint64_t>(total - free, kMostContextBytes);
  return Result<DeviceInfo>{std::move(info)};
}

Result<void*> allocate_device(uint64_t bytes) {
  void* memory = nullptr;
  TRY(checked(cudaMalloc(&memory, bytes), "cudaMalloc of " + std::to_string(bytes) + " bytes"));
  return memory;
}

void free_device(void* memory) { cudaFree(memory); }

Result<void*> allocate_pinned(uint64_t bytes) {
  void* memory = nullptr;
  TRY(checked(cudaMallocHost(&memory, bytes), "cudaMallocHost of " + std::to_string(bytes) + " bytes"));
  return memory;
}

void free_pinned(void* memory) { cudaFreeHost(memory); }

#endif

}  // namespace chimere::cuda
