// spm.h  SentencePiece BPE: neighbouring pieces merge, best score first, while their union is a piece.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenizer/text_table.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {

class Spm {
 public:
  static Result<Spm> from_metadata(const gguf::Metadata& metadata, const Vocab& vocab);

  // Appends the tokens of a stretch of text without special tokens; the space prefix is put in front of it when the
  // model asks for one. Thread-safe.
  void encode(std::string_view text, std::vector<int32_t>& out) const;
  int32_t find(std::string_view bytes) const;

 private:
  struct Piece {
    int32_t token;
    float score;
  };
  void merge(std::string_view text, std::vector<int32_t>& out) const;
  void emit(std::string_view piece, std::vector<int32_t>& out) const;

  bool add_space_prefix_ = false;
  bool words_apart_ = true;  // no piece goes on with a space after other text
  size_t longest_ = 0;       // bytes of the longest piece
  int32_t unk_ = -1;
  TextTable texts_;                         // with U+2581 read as a space
  std::vector<Piece> pieces_;               // by number in texts_
  std::array<int32_t, 256> byte_tokens_{};  // -1: none
};

}  // namespace chimere::tokenizer
