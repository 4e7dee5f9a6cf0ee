// device.cpp  The card and its memory; in the emulator, the host's.
#include "backend/cuda/runtime/device.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#ifndef CHIMERE_SIMT_EMULATOR
#include <cuda.h>

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

namespace {

std::atomic<uint64_t> device_held = 0, device_room = UINT64_MAX;

Result<void*> allocate_filled(uint64_t bytes) {
  const uint64_t rounded = (bytes + 255) / 256 * 256;
  void* memory = std::aligned_alloc(256, rounded);
  if (!memory) return Error{Code::exhausted, "out of memory: " + std::to_string(bytes) + " bytes"};
  std::memset(memory, 0xFF, rounded);  // NaNs, for who reads before writing
  return memory;
}

}  // namespace

void refuse_device_beyond(uint64_t more_bytes) {
  device_room = more_bytes > UINT64_MAX - device_held ? UINT64_MAX : device_held + more_bytes;
}

Result<void*> allocate_device(uint64_t bytes) {
  if (bytes > device_room || device_held > device_room - bytes) {
    return Error{Code::exhausted, "the device has no " + std::to_string(bytes) + " bytes left"};
  }
  TRY_ASSIGN(void* memory, allocate_filled(bytes));
  device_held += bytes;
  return memory;
}

void free_device(void* memory, uint64_t bytes) {
  device_held -= bytes;
  std::free(memory);
}

bool can_unback(uint64_t bytes) { return bytes % kPageBytes == 0; }
Status unback(void* memory, uint64_t bytes) { return back(memory, bytes); }
Status back(void* memory, uint64_t bytes) {
  std::memset(memory, 0xFF, bytes);
  return Ok{};
}
void free_unbacked(void* memory, uint64_t bytes) { free_device(memory, bytes); }

namespace {
int pieces_until_refused = -1;  // negative: none is
}
void refuse_pinned_after(int n) { pieces_until_refused = n; }

Result<void*> allocate_pinned(uint64_t bytes) {
  if (pieces_until_refused < 0 || pieces_until_refused-- > 0) return allocate_filled(bytes);
  return Error{Code::exhausted, "pinned memory: " + std::to_string(bytes) + " bytes are more than the system gives"};
}
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

namespace {

// The driver's calls for addresses and the memory behind them. They are asked for by name: the program starts on
// machines without a driver.
struct MappingCalls {
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
};

template <class Call>
bool find_call(const char* name, Call& call) {
  constexpr unsigned kSince = 10020;  // the version these calls came with
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  if (cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  call = reinterpret_cast<Call>(found);
  return result == cudaDriverEntryPointSuccess && found;
}

CUmemAllocationProp on_this_card() {
  CUmemAllocationProp where{};
  where.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  where.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  cudaGetDevice(&where.location.id);
  return where;
}

// Null where the driver or the card has none, or pages of another size.
const MappingCalls* mapping_calls() {
  static const std::optional<MappingCalls> calls = []() -> std::optional<MappingCalls> {
    MappingCalls c;
    if (!find_call("cuMemAddressReserve", c.reserve) || !find_call("cuMemAddressFree", c.free) ||
        !find_call("cuMemCreate", c.create) || !find_call("cuMemRelease", c.release) || !find_call("cuMemMap", c.map) ||
        !find_call("cuMemUnmap", c.unmap) || !find_call("cuMemSetAccess", c.set_access) ||
        !find_call("cuMemGetAllocationGranularity", c.granularity)) {
      return std::nullopt;
    }
    const CUmemAllocationProp where = on_this_card();
    size_t page = 0;
    if (c.granularity(&page, &where, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) return std::nullopt;
    return page > 0 && kPageBytes % page == 0 ? std::optional(c) : std::nullopt;
  }();
  return calls ? &*calls : nullptr;
}

Status checked_mapping(CUresult result, const char* call, uint64_t bytes) {
  if (result == CUDA_SUCCESS) return Ok{};
  const bool is_full = result == CUDA_ERROR_OUT_OF_MEMORY;
  return Error{is_full ? Code::exhausted : Code::device,
               std::string(call) + " of " + std::to_string(bytes) +
                   " bytes: " + (is_full ? "the card has no room" : "CUDA error " + std::to_string(result))};
}

CUdeviceptr address(void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

bool can_unback(uint64_t bytes) { return bytes % kPageBytes == 0 && mapping_calls(); }

Status back(void* memory, uint64_t bytes) {
  const MappingCalls& calls = *mapping_calls();
  const CUmemAllocationProp where = on_this_card();
  CUmemGenericAllocationHandle pages{};
  TRY(checked_mapping(calls.create(&pages, bytes, &where, 0), "cuMemCreate", bytes));
  const CUresult mapped = calls.map(address(memory), bytes, 0, pages, 0);
  calls.release(pages);  // they live as long as they are mapped
  TRY(checked_mapping(mapped, "cuMemMap", bytes));
  const CUmemAccessDesc access{where.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUresult opened = calls.set_access(address(memory), bytes, &access, 1);
  if (opened != CUDA_SUCCESS) calls.unmap(address(memory), bytes);
  return checked_mapping(opened, "cuMemSetAccess", bytes);
}

Status unback(void* memory, uint64_t bytes) {
  TRY(checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  return checked_mapping(mapping_calls()->unmap(address(memory), bytes), "cuMemUnmap", bytes);
}

void free_unbacked(void* memory, uint64_t bytes) { mapping_calls()->free(address(memory), bytes); }

Result<void*> allocate_device(uint64_t bytes) {
  void* memory = nullptr;
  if (!can_unback(bytes)) {
    TRY(checked(cudaMalloc(&memory, bytes), "cudaMalloc of " + std::to_string(bytes) + " bytes"));
    return memory;
  }
  CUdeviceptr at = 0;
  TRY(checked_mapping(mapping_calls()->reserve(&at, bytes, 0, 0, 0), "cuMemAddressReserve", bytes));
  memory = reinterpret_cast<void*>(at);
  if (Status backed = back(memory, bytes); !backed) {
    free_unbacked(memory, bytes);
    return std::move(backed.error());
  }
  return memory;
}

void free_device(void* memory, uint64_t bytes) {
  if (!can_unback(bytes)) {
    cudaFree(memory);
  } else if (unback(memory, bytes)) {
    free_unbacked(memory, bytes);
  }
}

Result<void*> allocate_pinned(uint64_t bytes) {
  void* memory = nullptr;
  TRY(checked(cudaMallocHost(&memory, bytes), "cudaMallocHost of " + std::to_string(bytes) + " bytes"));
  return memory;
}

void free_pinned(void* memory) { cudaFreeHost(memory); }

#endif

}  // namespace chimere::cuda
