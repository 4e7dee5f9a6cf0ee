// memory_reserve.cpp  Memory that is promised and never touched, and the handler of the allocator that drops it. Windows
// promises no more than it has, so that the reserve counts as used from the beginning.
#include "base/platform/memory_reserve.h"

#include <atomic>
#include <cstddef>
#include <new>

#include "base/platform/windows/files.h"

namespace chimere {
namespace {

constexpr size_t kReserveBytes = size_t{128} << 20;

std::atomic<void*> g_reserve{nullptr};

// Called by operator new when there is no memory. Its contract leaves two ways: to find some, or to throw. Were the
// allocation tried again it might succeed and eat the reserve, and the next one would find none.
[[noreturn]] void give_up_reserve() {
  if (void* reserve = g_reserve.exchange(nullptr)) VirtualFree(reserve, 0, MEM_RELEASE);
  throw std::bad_alloc();
}

}  // namespace

bool keep_memory_reserve() {
  if (g_reserve.load()) return true;
  std::set_new_handler(give_up_reserve);
  void* reserve = VirtualAlloc(nullptr, kReserveBytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!reserve) return false;
  void* none = nullptr;
  if (!g_reserve.compare_exchange_strong(none, reserve)) VirtualFree(reserve, 0, MEM_RELEASE);
  return true;
}

bool has_memory_reserve() { return g_reserve.load() != nullptr; }

}  // namespace chimere
