// text_records.h  The n-grams of texts, as a stream of records.
//
// Positions are sorted once by the tokens before them, newest first. Then the keys of every order lie beside each
// other, and one walk an order counts them: eight bytes of memory a token and no hash table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engram/record.h"

namespace chimere::engram {

class TextRecords : public RecordStream {
 public:
  // REQUIRES: 1 <= min_order <= max_order <= kMaxOrder.
  TextRecords(int min_order, int max_order);
  // One text of a source; no key reaches across two texts. REQUIRES: before the first next(); ids are not negative.
  void add(std::span<const int32_t> tokens, uint32_t source);
  Result<bool> next(Record& record) override;

 private:
  struct Text {
    uint32_t begin, end, source;  // of tokens_
  };
  void sort_positions();
  uint32_t context_length(uint32_t position) const { return context_[position]; }
  uint32_t shared_length(uint32_t a, uint32_t b) const;
  uint32_t source_of(uint32_t position) const;

  const uint32_t min_order_, max_order_;
  std::vector<uint32_t> tokens_;
  std::vector<uint8_t> context_;  // tokens of the same text before this one, at most max_order_
  std::vector<Text> texts_;
  std::vector<uint32_t> sorted_;  // positions that have at least min_order_ tokens before them
  std::vector<uint8_t> shared_;   // tokens of the key that sorted_[i] shares with sorted_[i - 1]
  uint32_t order_ = 0;            // of the walk that goes on
  size_t at_ = 0;
  std::vector<uint32_t> key_;
  std::vector<uint64_t> seen_;  // token << 32 | source
  std::vector<uint64_t> entries_;
};

}  // namespace chimere::engram
