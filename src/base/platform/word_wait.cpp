#include "base/platform/word_wait.h"

namespace chimere {

void wait_while(const std::atomic<uint32_t>& word, uint32_t old) { word.wait(old, std::memory_order_acquire); }

void wake_all(std::atomic<uint32_t>& word) { word.notify_all(); }

}  // namespace chimere
