// process.h  What the system knows about this process, and asks of it.
#pragma once

#include <cstdint>

namespace chimere {

// Memory the system holds for the process; 0 where it does not say.
uint64_t resident_bytes();

// Memory that can be had without taking it from others: what the system says, and no more than what is left of the limit
// that this process was given (cgroup). 0 where neither says.
uint64_t available_memory_bytes();

// Gives freed memory back to the system. The allocator keeps what lies between blocks in use, so that a server's memory
// would stay at its highest mark.
void release_free_memory();

// Raises the limit of open files to `wanted` or as far as the system allows; what it is then.
uint64_t allow_open_files(uint64_t wanted);

}  // namespace chimere
