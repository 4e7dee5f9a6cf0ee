// unigram.h  SentencePiece's unigram model: of all ways to cut a text into pieces, the one with the largest sum of
// scores.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/text_table.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {

class Unigram {
 public:
  static Result<Unigram> from_metadata(const gguf::Metadata& metadata, const Vocab& vocab);

  // Appends the tokens of a stretch of text without special tokens. Thread-safe.
  void encode(std::string_view text, std::vector<int32_t>& out) const;
  int32_t find(std::string_view bytes) const;

 private:
  struct Piece {
    int32_t token;
    float score;
  };
  struct Range {
    uint32_t begin = 0, end = 0;
  };

  std::string normalised(std::string_view text) const;
  // Calls take(bytes, piece) for every piece that the text begins with, shortest first.
  template <class Take>
  void each_prefix(std::string_view text, Take take) const;

  bool add_space_prefix_ = false;
  bool merge_spaces_ = false;
  int32_t unk_ = -1;
  double unknown_score_ = 0;
  CharsMap charsmap_;
  TextTable texts_;             // with U+2581 read as a space
  std::vector<Piece> pieces_;   // by number in texts_
  std::vector<int32_t> order_;  // numbers by text
  std::array<Range, 256> by_first_byte_{};
};

}  // namespace chimere::tokenizer
