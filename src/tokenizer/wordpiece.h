// wordpiece.h  BERT's tokenizer: cleaned and lower-cased words, cut greedily into the longest known pieces.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenizer/text_table.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {

class WordPiece {
 public:
  static Result<WordPiece> from_metadata(const gguf::Metadata& metadata, const Vocab& vocab);

  // Appends the tokens of a stretch of text without special tokens. Thread-safe.
  void encode(std::string_view text, std::vector<int32_t>& out) const;
  int32_t find(std::string_view bytes) const;

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& out) const;

  bool lowercase_ = true;
  bool strip_accents_ = true;
  int32_t unk_ = -1;
  size_t longest_ = 0;           // bytes of the longest piece
  TextTable texts_;              // a piece that starts a word begins with a space
  std::vector<int32_t> tokens_;  // by number in texts_
};

}  // namespace chimere::tokenizer
