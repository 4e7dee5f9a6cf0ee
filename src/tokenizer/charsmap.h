// charsmap.h  The normaliser of a SentencePiece file: the longest known beginning of a text becomes its replacement.
//
// The blob is a u32 (bytes of the trie), the trie as units of 32 bits, then the replacements, each ended by a 0 byte.
// The trie is a double array: the child of unit u for byte c is u ^ offset(u) ^ c, and holds c as its label.
//
//   bits  0-7  label          bit 8  a key ends here: the child for byte 0 holds where its replacement begins
//   bits 10-30 offset         bit 9  the offset is to be shifted left by 8
//   bit  31    the unit holds a value (bits 0-30) and no label
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::tokenizer {

class CharsMap {
 public:
  CharsMap() = default;  // changes nothing
  // The file is hostile input: whatever the blob says, reading stays inside it.
  static Result<CharsMap> parse(std::string_view blob);

  // Appends what the text at `pos` becomes and gives the bytes that were read, at least 1. A byte that begins no
  // character becomes U+FFFD. REQUIRES: pos < text.size().
  size_t append(std::string_view text, size_t pos, std::string& out) const;

 private:
  uint32_t unit(uint32_t index) const { return index < units_.size() ? units_[index] : 0; }

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace chimere::tokenizer
