// word_wait.h  Sleeping until a word changes. It is what std::atomic::wait is for, which loses wakes where the system has no
// futex (libstdc++ 12 looks at the word before it takes the lock that notify_all does not take).
#pragma once

#include <atomic>
#include <cstdint>

namespace chimere {

// Returns once the word is not `old`, with acquire order.
void wait_while(const std::atomic<uint32_t>& word, uint32_t old);
// Wakes all that wait. REQUIRES: the word was changed before.
void wake_all(std::atomic<uint32_t>& word);

}  // namespace chimere
