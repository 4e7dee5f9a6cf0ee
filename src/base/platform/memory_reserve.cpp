// memory_reserve.cpp  A mapping without pages, and the handler of the allocator that drops it.
#include "base/platform/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace chimere {
namespace {

constexpr size_t kReserveBytes = size_t{128} << 20;

std::atomic<void*> g_reserve{nullptr};

// Called by operator new when there is no memory. Its contract leaves two ways: to find some, or to throw. Were the
// allocation tried again it might succeed and eat the reserve, and the next one would find none.
[[noreturn]] void give_up_reserve() {
  if (void* reserve = g_reserve.exchange(nullptr)) munmap(reserve, kReserveBytes);
  throw std::bad_alloc();
}

}  // namespace

bool keep_memory_reserve() {
  if (g_reserve.load()) return true;
  std::set_new_handler(give_up_reserve);
  void* reserve =
      mmap(nullptr, kReserveBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserve == MAP_FAILED) return false;
  void* none = nullptr;
  if (!g_reserve.compare_exchange_strong(none, reserve)) munmap(reserve, kReserveBytes);  // another thread was faster
  return true;
}

bool has_memory_reserve() { return g_reserve.load() != nullptr; }

}  // namespace chimere
