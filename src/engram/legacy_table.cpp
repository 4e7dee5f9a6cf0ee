#include "engram/legacy_table.h"

#include <bit>
#include <cstring>

#include "engram/ngram_hash.h"
#include "engram/table_format.h"

namespace chimere::engram {
namespace {

constexpr size_t kHeaderBytes = 20, kSlotBytes = 16;

uint32_t word_at(std::span<const std::byte> bytes, size_t offset) {
  uint32_t word;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

}  // namespace

Result<LegacyTable> LegacyTable::read(const std::string& path, std::span<const std::byte> bytes, uint32_t n_vocab) {
  const auto corrupt = [&](const std::string& what) { return Error{Code::corrupt, path + ": version 1: " + what}; };
  if (bytes.size() < kHeaderBytes) return corrupt("expected a header of 20 bytes");
  LegacyTable table;
  const uint32_t order = word_at(bytes, 8);
  table.n_slots_ = word_at(bytes, 12);
  table.n_keys_ = word_at(bytes, 16);
  if (order < 1 || order > kMaxOrder) {
    return Error{Code::unsupported, path + ": expected n-grams of 1 to " + std::to_string(kMaxOrder) +
                                        " tokens, found " + std::to_string(order)};
  }
  table.order_ = static_cast<int>(order);
  if (!std::has_single_bit(table.n_slots_) || table.n_slots_ > (bytes.size() - kHeaderBytes) / kSlotBytes) {
    return corrupt("expected a power of two of slots inside the file, found " + std::to_string(table.n_slots_));
  }
  table.slots_ = bytes.subspan(kHeaderBytes, table.n_slots_ * kSlotBytes);
  table.data_ = bytes.subspan(kHeaderBytes + table.n_slots_ * kSlotBytes);
  uint64_t used = 0, checked = 0;
  for (uint64_t i = 0; i < table.n_slots_; ++i) {
    const Slot slot = table.slot(i);
    if (slot.hash == 0) continue;
    ++used;
    if (slot.offset % 4 != 0 || slot.offset > table.data_.size() || table.data_.size() - slot.offset < 4 ||
        word_at(table.data_, slot.offset) > (table.data_.size() - slot.offset - 4) / sizeof(Next)) {
      return corrupt("the record of slot " + std::to_string(i) + " lies outside of the file");
    }
    // No record belongs to two keys: together they are no longer than the data, and so is this check.
    checked += 4 + table.record(slot.offset).size_bytes();
    if (checked > table.data_.size()) return corrupt("its records overlap");
    for (const Next& next : table.record(slot.offset)) {
      if (next.token < n_vocab) continue;
      return Error{Code::invalid_argument, path + ": was made for another vocabulary: expected tokens below " +
                                               std::to_string(n_vocab) + ", found " + std::to_string(next.token)};
    }
  }
  if (used != table.n_keys_ || used == table.n_slots_) {
    return corrupt("expected " + std::to_string(table.n_keys_) + " keys, found " + std::to_string(used) + " in " +
                   std::to_string(table.n_slots_) + " slots");
  }
  return table;
}

LegacyTable::Slot LegacyTable::slot(uint64_t index) const {
  Slot slot;
  std::memcpy(&slot, slots_.data() + index * kSlotBytes, sizeof(slot));
  return slot;
}

// Aligned: the data start at a multiple of four, and read() has seen that the offset is one.
std::span<const LegacyTable::Next> LegacyTable::record(uint32_t offset) const {
  return {reinterpret_cast<const Next*>(data_.data() + offset + 4), word_at(data_, offset)};
}

std::span<const LegacyTable::Next> LegacyTable::find(std::span<const uint32_t> newest_first) const {
  uint64_t standard = kFnvBasis, other = kFnvBasis;
  for (size_t i = newest_first.size(); i-- > 0;) {
    standard = fnv_add(standard, newest_first[i]);
    other = fnv_add(other, newest_first[i], kShortPrime);
  }
  // An empty slot ends every walk: read() saw one.
  for (uint64_t at = standard % n_slots_;; at = (at + 1) % n_slots_) {
    const Slot found = slot(at);
    if (found.hash == 0) return {};
    if (found.hash == standard || found.hash == other) return record(found.offset);
  }
}

}  // namespace chimere::engram
