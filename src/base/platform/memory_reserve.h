// memory_reserve.h  Room for the way back when memory ends.
//
// A request that runs out of memory fails with std::bad_alloc, which is caught where requests are. On the way there
// destructors run, and some of them allocate (a tree of JSON makes a list of its nodes to take itself apart): with no
// memory at all they would end the process. So some address space is put aside, never touched and therefore no memory
// yet, and the first allocation that fails gives it up before it fails.
#pragma once

namespace chimere {

// Takes the reserve, or takes it again after it was given up; cheap while there is one. False when there is no room for
// it: then nothing large should begin. From any thread.
bool keep_memory_reserve();

bool has_memory_reserve();

}  // namespace chimere
