// bpe.h  Byte-pair merging: a part of text, byte by byte, becomes the tokens that the ranked merges lead to.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/text_table.h"
#include "tokenizer/vocab.h"

namespace chimere::tokenizer {

// Symbols are numbered texts: every normal token, and every text that occurs in the merges. One that is no token
// (or a token that text must not produce) is written out as the two symbols it was merged from.
class Bpe {
 public:
  static Result<Bpe> from_metadata(const gguf::Metadata& metadata, const Vocab& vocab);

  // Appends the tokens of a stretch of text without special tokens. Thread-safe.
  void encode(std::string_view text, std::vector<int32_t>& out) const;
  // The token whose bytes are exactly `bytes`, or -1.
  int32_t find(std::string_view bytes) const;

 private:
  struct Merge {
    int32_t left, right, result;  // symbols; left -1 when the line can never apply
  };
  struct Symbol {
    int32_t token;        // -1: none
    int32_t left, right;  // what to write instead; -1: nothing (a byte the vocabulary lacks)
  };

  int32_t symbol_of(std::string_view bytes);
  void index_merges();
  int32_t rank_of(int32_t left, int32_t right) const;  // -1: no such merge
  void encode_part(std::string_view part, std::vector<int32_t>& out) const;
  void merge_short(std::string_view part, std::vector<int32_t>& out) const;
  void merge_long(std::string_view part, std::vector<int32_t>& out) const;
  void emit(int32_t symbol, std::vector<int32_t>& out) const;

  PreTokenizer pre_;
  TextTable texts_;              // bytes of the symbols
  std::vector<Symbol> symbols_;  // by number in texts_
  std::vector<Merge> merges_;    // by rank
  std::vector<int32_t> slots_;   // open addressing over (left, right) -> rank, -1 free
  std::array<int32_t, 256> byte_symbols_{};
};

}  // namespace chimere::tokenizer
