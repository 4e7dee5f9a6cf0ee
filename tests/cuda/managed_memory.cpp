// managed_memory.cpp  Puts everything a test program allocates where host and card both see it, so that a kernel's
// test, which hands its vectors to the kernel as they are, runs on a card as well as in the emulator.
//
// One arena, never given back: tests are short, and freeing managed memory would wait for the card each time.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kArenaBytes = size_t{16} << 30;  // of addresses; memory comes with the first touch
constexpr size_t kAlignment = 256;

std::byte* arena() {
  static std::byte* const memory = [] {
    void* p = nullptr;
    if (const cudaError_t error = cudaMallocManaged(&p, kArenaBytes); error != cudaSuccess) {
      std::fprintf(stderr, "cudaMallocManaged of %zu bytes: %s\n", kArenaBytes, cudaGetErrorString(error));
      std::abort();
    }
    return static_cast<std::byte*>(p);
  }();
  return memory;
}

void* take(size_t bytes) {
  static std::atomic<size_t> used{0};
  const size_t at = used.fetch_add((bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (at + bytes > kArenaBytes) {
    std::fprintf(stderr, "the test program needs more than %zu bytes\n", kArenaBytes);
    std::abort();
  }
  return arena() + at;
}

}  // namespace

void* operator new(size_t bytes) { return take(bytes); }
void* operator new[](size_t bytes) { return take(bytes); }
void* operator new(size_t bytes, std::align_val_t) { return take(bytes); }
void* operator new[](size_t bytes, std::align_val_t) { return take(bytes); }
void operator delete(void*) noexcept {}
void operator delete[](void*) noexcept {}
void operator delete(void*, size_t) noexcept {}
void operator delete[](void*, size_t) noexcept {}
void operator delete(void*, std::align_val_t) noexcept {}
void operator delete[](void*, std::align_val_t) noexcept {}
void operator delete(void*, size_t, std::align_val_t) noexcept {}
void operator delete[](void*, size_t, std::align_val_t) noexcept {}
