#include "base/platform/word_wait.h"

#include "base/platform/windows/files.h"

namespace chimere {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void wait_while(const std::atomic<uint32_t>& word, uint32_t old) {
  // It may return without a change.
  while (word.load(std::memory_order_acquire) == old) {
    WaitOnAddress(const_cast<std::atomic<uint32_t>*>(&word), &old, sizeof old, INFINITE);
  }
}

void wake_all(std::atomic<uint32_t>& word) { WakeByAddressAll(&word); }

}  // namespace chimere
