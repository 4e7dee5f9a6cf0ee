// device.h  The card and its raw memory. Code that allocates goes through the ledger (ledger.h), not through this file.
//
// The card is chosen per thread: a thread that uses it calls use_device() once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace chimere::cuda {

struct DeviceInfo {
  int index = 0;
  std::string name;
  int sm = 0;     // compute capability, 90 for 9.0
  int n_sms = 0;  // streaming multiprocessors
  uint64_t memory_bytes = 0;
  uint64_t free_bytes = 0;     // after our context was created
  uint64_t context_bytes = 0;  // what the context took, at most: other programs may have allocated meanwhile
  uint64_t l2_bytes = 0;
  uint64_t shared_bytes = 0;  // of a thread block that opts in
  bool emulated = false;

  bool dependent_launch() const { return sm >= 90; }
};

inline constexpr uint64_t kMostContextBytes = uint64_t{768} << 20;

// Number of cards; 0 without a driver.
int device_count();
// Makes the card current for this thread and queries it. Fails without a card, or with one older than sm_80.
Result<DeviceInfo> probe_device(int index = 0);
Status use_device(int index);

// Uninitialised, 256-byte aligned at least. Whole pages of kPageBytes keep their address while what is behind it is
// given away and taken again, where the driver can do that: kernels, graphs and pointers know nothing of it.
inline constexpr uint64_t kPageBytes = uint64_t{2} << 20;
Result<void*> allocate_device(uint64_t bytes);
// REQUIRES: it is backed.
void free_device(void* memory, uint64_t bytes);

bool can_unback(uint64_t bytes);  // whether an allocation of that size can be
// Nothing may use the memory from here until it is backed again; its bytes are lost. REQUIRES: can_unback, it is backed.
Status unback(void* memory, uint64_t bytes);
// Uninitialised again. Fails as exhausted when another program has taken the room. REQUIRES: it is not backed.
Status back(void* memory, uint64_t bytes);
// Gives up an address that is not backed.
void free_unbacked(void* memory, uint64_t bytes);

// Host memory that the card reads and writes directly.
Result<void*> allocate_pinned(uint64_t bytes);
void free_pinned(void* memory);
#ifdef CHIMERE_SIMT_EMULATOR
// So many pieces can be pinned, and the one after them can not, as on a system that sets a limit. Once.
void refuse_pinned_after(int n);
// From now on no more than so many bytes beyond what is allocated are given, as where other programs take the rest.
void refuse_device_beyond(uint64_t more_bytes);
#endif

// "1.50 GiB"
std::string bytes_text(uint64_t bytes);

}  // namespace chimere::cuda
