// relax.h  What a thread does between two looks at something that another one is about to change.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <thread>
#endif

namespace chimere {

// Some tens of cycles, which a core shared with another thread gives to that one.
inline void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace chimere
