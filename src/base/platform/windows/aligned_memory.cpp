#include "base/platform/aligned_memory.h"

#include <malloc.h>

namespace chimere {

void* allocate_aligned(size_t bytes, size_t alignment) { return _aligned_malloc(bytes, alignment); }

void free_aligned(void* memory) { _aligned_free(memory); }

}  // namespace chimere
