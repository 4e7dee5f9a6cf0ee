// aligned_memory.h  Memory at addresses that are multiples of something, for what is too large to ask operator new for: where
// there is none the answer is null, and no reserve is given up (memory_reserve.h).
#pragma once

#include <cstddef>

namespace chimere {

// REQUIRES: `alignment` is a power of two, `bytes` a multiple of it.
void* allocate_aligned(size_t bytes, size_t alignment);
void free_aligned(void* memory);

}  // namespace chimere
