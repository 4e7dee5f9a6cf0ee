// packed_matrix_memory.h  Memory for packed weights, on huge pages where the system offers them.
//
// Decode streams every weight once per token; with 4 KiB pages, walking the page tables costs a third of the memory
// bandwidth (18 GB/s against 29 GB/s a core on a Zen 4 server). Transparent huge pages only serve ranges of 2 MiB, so
// matrices below that size share chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace chimere::cpu {

// 64-byte aligned, uninitialised; null when there is no memory. Thread-safe. A chunk lives as long as its last user.
std::shared_ptr<uint8_t> allocate_weights(size_t bytes);

}  // namespace chimere::cpu
