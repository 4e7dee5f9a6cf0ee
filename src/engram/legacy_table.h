// legacy_table.h  Tables of version 1 (`.engr`), read as they are.
//
//   u32 magic | u32 version 1 | u32 order | u32 n_slots, a power of two | u32 n_keys
//   slots      u64 hash, 0: empty | u32 offset of its record in the data | u32 total
//   data       u32 n_next, then n_next times u32 token, u32 count
//
// The hash is FNV-1a over the key from its oldest token to its newest. Writers disagreed about the prime, and a file
// does not say which one it was made with; the low halves of both hashes agree, so both start at the same slot, and one
// walk compares with both. Keys are not stored and a vocabulary is not named: a hit rests on 64 bits of hash, and a
// file is refused only when it speaks of tokens that do not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace chimere::engram {

class LegacyTable {
 public:
  struct Next {
    uint32_t token, count;
  };

  // A view of `bytes`, which outlive it. Every record is checked here, so that lookups need not.
  static Result<LegacyTable> read(const std::string& path, std::span<const std::byte> bytes, uint32_t n_vocab);

  int order() const { return order_; }
  uint64_t n_keys() const { return n_keys_; }
  // Most frequent first; empty when the key is unknown. REQUIRES: `newest_first` has order() tokens.
  std::span<const Next> find(std::span<const uint32_t> newest_first) const;

 private:
  struct Slot {
    uint64_t hash;
    uint32_t offset, total;
  };
  Slot slot(uint64_t index) const;
  std::span<const Next> record(uint32_t offset) const;

  int order_ = 0;
  uint64_t n_slots_ = 0, n_keys_ = 0;
  std::span<const std::byte> slots_;
  std::span<const std::byte> data_;
};

}  // namespace chimere::engram
