// vocabulary.h  A model's tokens as masks need them: a tree of their bytes, and what is known of all of them.
//
// Made once for a model and shared. Control tokens stand in the tree under their code (token_code), so that no text
// ever matches one; tokens that a file marks as its own words (user-defined) can be met both ways. Tokens that end a
// generation, stand for nothing or are never drawn are not in the tree.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace chimere::grammar {

// Nodes in the order of a depth-first walk; node 0 is the root, the empty text.
struct TokenTree {
  std::vector<unsigned char> byte;      // that leads to the node
  std::vector<std::uint16_t> depth;     // number of bytes from the root
  std::vector<std::uint32_t> end;       // the first node behind the node's subtree
  std::vector<std::uint32_t> first_id;  // of the node in `ids`; one more at the end
  std::vector<std::int32_t> ids;

  std::uint32_t size() const { return static_cast<std::uint32_t>(byte.size()); }
  std::span<const std::int32_t> ids_at(std::uint32_t node) const {
    return std::span(ids).subspan(first_id[node], first_id[node + 1] - first_id[node]);
  }
};

class Vocabulary {
 public:
  // Plain tokens (plain_text.h) with more characters are treated like the others: there are few.
  static constexpr int kMaxPlainChars = 32;

  // `n_rows` is the number of logits, which may be larger than the vocabulary.
  Vocabulary(const Tokenizer& tokenizer, std::int32_t n_rows);

  size_t n_words() const { return n_words_; }  // of a mask
  const TokenTree& all() const { return all_; }
  const TokenTree& not_plain() const { return not_plain_; }
  // Tokens of at most `n_chars` plain characters, as a mask.
  std::span<const std::uint64_t> plain(std::uint32_t n_chars) const;
  const std::vector<std::int32_t>& end_ids() const { return end_ids_; }
  bool is_end(std::int32_t id) const;
  // How a token can be read: its text, its code, both or neither.
  struct Reading {
    std::string_view text;
    std::string code;
  };
  Reading reading(std::int32_t id) const;
  // A text cut into tokens, always the longest that fits; empty where a byte of it has none.
  std::vector<std::int32_t> longest_tokens(std::string_view text) const;
  size_t longest_bytes() const { return longest_bytes_; }

 private:
  Tokenizer tokenizer_;
  size_t n_words_;
  std::vector<bool> is_left_out_;
  TokenTree all_, not_plain_;
  std::vector<std::vector<std::uint64_t>> plain_;  // by number of characters
  std::vector<std::int32_t> end_ids_;
  size_t longest_bytes_ = 4;
};

}  // namespace chimere::grammar
