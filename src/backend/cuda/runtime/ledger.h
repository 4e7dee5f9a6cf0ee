// ledger.h  The account of the card's memory: every byte by purpose, within a budget that is never exceeded.
//
// What the driver takes by itself (the context, graphs) cannot be refused, but it is measured and charged, so that less
// is left to allocate. Thread-safe. Must outlive every buffer allocated from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/result.h"

namespace chimere::cuda {

enum class Purpose { weights, adapters, kv, recurrent, scratch, graphs, context };
inline constexpr int kPurposes = 7;
const char* purpose_name(Purpose purpose);

class Ledger {
 public:
  explicit Ledger(uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}
  ~Ledger();  // everything allocated has been released
  Ledger(const Ledger&) = delete;

  // Uninitialised, 256-byte aligned. Fails with the list of purposes when the budget or the card has no room.
  Result<std::byte*> allocate(Purpose purpose, uint64_t bytes);
  void release(Purpose purpose, std::byte* memory, uint64_t bytes);

  // Charges memory that was allocated elsewhere.
  Status charge(Purpose purpose, uint64_t bytes);
  void discharge(Purpose purpose, uint64_t bytes);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const;
  uint64_t used_bytes(Purpose purpose) const;
  uint64_t peak_bytes() const;
  uint64_t peak_bytes(Purpose purpose) const;
  uint64_t free_bytes() const;  // of the budget

  // "weights 14.52 GiB, kv 1.00 GiB; 15.52 GiB of 16.00 GiB"
  std::string text() const;

  // What an allocation of that size really takes: cards hand out large ones in pages of 2 MiB. Small ones share such
  // pages, so up to one page more than the ledger counts may be in use.
  static uint64_t taken_bytes(uint64_t bytes);

 private:
  struct Entry {
    uint64_t used = 0;
    uint64_t peak = 0;
  };

  Status add(Purpose purpose, uint64_t bytes);  // REQUIRES: mutex_ held
  void subtract(Purpose purpose, uint64_t bytes);
  std::string text_locked() const;

  const uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::array<Entry, kPurposes> entries_;
  Entry total_;
  uint64_t n_allocations_ = 0;
};

}  // namespace chimere::cuda
