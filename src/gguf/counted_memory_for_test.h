// counted_memory_for_test.h  How much memory the test program has asked for.
#pragma once

#include <cstddef>

namespace chimere {

// Sum of all sizes this thread passed to operator new so far, freed or not.
size_t allocated_bytes();

}  // namespace chimere
