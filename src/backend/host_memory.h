// host_memory.h  State memory of the backends that compute on the host.
#pragma once

#include <cstring>
#include <string>

#include "backend/backend.h"
#include "base/platform/aligned_memory.h"

namespace chimere {

class HostMemory final : public StateMemory {
 public:
  Result<std::byte*> allocate(uint64_t bytes, uint64_t unset_bytes = 0) override {
    const uint64_t rounded = (bytes + 63) / 64 * 64;
    void* p = allocate_aligned(rounded, 64);
    if (!p) return Error{Code::exhausted, "out of memory: " + std::to_string(bytes) + " bytes of sequence state"};
    std::memset(p, 0, rounded - unset_bytes);
#ifndef NDEBUG
    std::memset(static_cast<std::byte*>(p) + rounded - unset_bytes, 0xff,
                unset_bytes);  // no numbers: who reads it, knows
#endif
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* memory, uint64_t) override { free_aligned(memory); }
  void zero(std::byte* to, uint64_t bytes) override { std::memset(to, 0, bytes); }
  void copy(std::byte* to, const std::byte* from, uint64_t bytes) override { std::memcpy(to, from, bytes); }
  void read(std::byte* host, const std::byte* from, uint64_t bytes) override { std::memcpy(host, from, bytes); }
  void write(std::byte* to, const std::byte* host, uint64_t bytes) override { std::memcpy(to, host, bytes); }
};

}  // namespace chimere
