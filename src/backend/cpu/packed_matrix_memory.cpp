// packed_matrix_memory.cpp  Large matrices get their own range, small ones are cut from shared chunks.
#include "backend/cpu/packed_matrix_memory.h"

#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace chimere::cpu {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kChunk = size_t{16} << 20;
constexpr size_t kLarge = kChunk / 4;  // little is left of a chunk when no such matrix fits any more

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

// The chunks that still have room. Weak references: the matrices own them, not this.
struct OpenChunk {
  std::weak_ptr<uint8_t> memory;
  size_t used = 0;
};

struct OpenChunks {
  std::mutex mutex;
  std::vector<OpenChunk> chunks;
};

}  // namespace

std::shared_ptr<uint8_t> allocate_weights(size_t bytes) {
  if (bytes >= kLarge) return allocate_range(bytes);
  static OpenChunks open;
  const std::lock_guard lock(open.mutex);
  std::erase_if(open.chunks, [](const OpenChunk& c) { return c.memory.expired(); });
  // First fit: matrices come largest first, so the small ones fill what the others left.
  for (OpenChunk& c : open.chunks) {
    if (kChunk - c.used < bytes) continue;
    std::shared_ptr<uint8_t> memory = c.memory.lock();
    if (!memory) continue;
    uint8_t* p = memory.get() + c.used;
    c.used += (bytes + 63) / 64 * 64;
    return {std::move(memory), p};
  }
  std::shared_ptr<uint8_t> memory = allocate_range(kChunk);
  if (!memory) return nullptr;
  open.chunks.push_back({memory, (bytes + 63) / 64 * 64});
  uint8_t* p = memory.get();
  return {std::move(memory), p};
}

}  // namespace chimere::cpu
