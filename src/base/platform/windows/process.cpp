#include "base/platform/process.h"

#include "base/platform/windows/files.h"
// After windows.h.
#include <malloc.h>
#include <psapi.h>

namespace chimere {

uint64_t resident_bytes() {
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof counters;
  return K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) ? counters.WorkingSetSize : 0;
}

uint64_t available_memory_bytes() {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  return GlobalMemoryStatusEx(&memory) ? memory.ullAvailPhys : 0;
}

void release_free_memory() { _heapmin(); }

// Handles of a process have a fixed limit, which the system's documents state.
uint64_t allow_open_files(uint64_t) { return uint64_t{1} << 24; }

}  // namespace chimere
