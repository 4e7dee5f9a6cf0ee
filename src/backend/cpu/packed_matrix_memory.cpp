// packed_matrix_memory.cpp  Large matrices get their own range, small ones are cut from shared chunks.
#include "backend/cpu/packed_matrix_memory.h"

#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace chimere::cpu {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kChunk = size_t{16} << 20;
constexpr size_t kLarge = kChunk / 4;  // what is left of a chunk is lost at most once for each chunk

std::shared_ptr<uint8_t> allocate_range(size_t bytes) {
  constexpr std::align_val_t kAlign{kHugePage};
  auto* p = static_cast<uint8_t*>(::operator new[](bytes, kAlign, std::nothrow));
  if (p == nullptr) return nullptr;
#if defined(__linux__)
  // Whole huge pages only: the rest of the range stays on small pages and costs no memory beyond its size.
  if (bytes >= kHugePage) static_cast<void>(madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE));
#endif
  return {p, [](uint8_t* q) { ::operator delete[](q, kAlign); }};
}

// The chunk that is being filled. A weak reference: the matrices own it, not this.
struct OpenChunk {
  std::mutex mutex;
  std::weak_ptr<uint8_t> memory;
  size_t used = 0;
};

}  // namespace

std::shared_ptr<uint8_t> allocate_weights(size_t bytes) {
  if (bytes >= kLarge) return allocate_range(bytes);
  static OpenChunk open;
  const std::lock_guard lock(open.mutex);
  std::shared_ptr<uint8_t> chunk = open.memory.lock();
  if (!chunk || kChunk - open.used < bytes) {
    chunk = allocate_range(kChunk);
    if (!chunk) return nullptr;
    open.memory = chunk;
    open.used = 0;
  }
  uint8_t* p = chunk.get() + open.used;
  open.used += (bytes + 63) / 64 * 64;
  return {std::move(chunk), p};
}

}  // namespace chimere::cpu
