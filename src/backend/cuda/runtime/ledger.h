// ledger.h  The account of the card's memory: every byte by purpose, within a budget that is never exceeded.
//
// What the driver takes by itself (the context, graphs) cannot be refused, but it is measured and charged, so that less
// is left to allocate. Thread-safe. Must outlive every buffer allocated from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace chimere::cuda {

class Stream;

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

  // Sleep: the bytes of all large allocations go to the host's memory, and the card's memory is free for other programs.
  // Addresses, and what is charged, stay as they are. Nothing may use any of the memory until wake(). A failure leaves
  // everything in place. Returns how many bytes were given away. REQUIRES: not asleep; nothing runs on the card.
  Result<uint64_t> sleep(const Stream& stream);
  // Fails as exhausted while others hold the card's memory, and may be called again. Nothing happens where it is awake.
  Status wake(const Stream& stream);

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

  struct Block {
    uint64_t bytes = 0;       // as taken
    std::vector<void*> kept;  // while it sleeps: its bytes, in pieces of pinned memory
    bool is_backed = true;
  };

  Status add(Purpose purpose, uint64_t bytes);  // REQUIRES: mutex_ held
  Status put_away(std::byte* memory, Block& block, const Stream& stream);
  Status wake_locked(const Stream& stream);
  void drop_kept();
  void subtract(Purpose purpose, uint64_t bytes);
  std::string text_locked() const;

  const uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::array<Entry, kPurposes> entries_;
  Entry total_;
  std::map<std::byte*, Block> blocks_;
  std::jthread dropper_;  // frees what was kept of a sleep
};

}  // namespace chimere::cuda
