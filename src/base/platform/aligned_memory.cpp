#include "base/platform/aligned_memory.h"

#include <cstdlib>

namespace chimere {

void* allocate_aligned(size_t bytes, size_t alignment) { return std::aligned_alloc(alignment, bytes); }

void free_aligned(void* memory) { std::free(memory); }

}  // namespace chimere
