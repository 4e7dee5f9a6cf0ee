// text_table.h  A growing list of distinct texts, numbered from 0, that finds a text's number.
//
// One blob, one offset array, one open-addressing table: a vocabulary of 250,000 tokens takes about 6 MB and two
// cache misses a lookup, where a node-based map takes five times that.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::tokenizer {

inline uint64_t hash_text(std::string_view text) {
  constexpr uint64_t kMul = 0x9E3779B97F4A7C15;
  uint64_t h = text.size() * kMul;
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * kMul;
    h ^= h >> 32;
  }
  uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, p, left);
  h = (h ^ tail) * kMul;
  return h ^ h >> 29;
}

class TextTable {
 public:
  void reserve(size_t n_texts, size_t n_bytes);
  // The number of `text`, added when it is new.
  int32_t intern(std::string_view text);
  int32_t find(std::string_view text) const;  // -1 when absent

  std::string_view operator[](int32_t number) const {
    return std::string_view(blob_).substr(offsets_[number], offsets_[number + 1] - offsets_[number]);
  }
  int32_t size() const { return static_cast<int32_t>(offsets_.size() - 1); }

 private:
  void rehash(size_t n_slots);
  size_t slot_of(std::string_view text) const;  // of the text, or the free slot where it belongs

  std::string blob_;
  std::vector<size_t> offsets_{0};
  std::vector<int32_t> slots_;  // numbers, -1 free; a power of two, at most half full
};

}  // namespace chimere::tokenizer
