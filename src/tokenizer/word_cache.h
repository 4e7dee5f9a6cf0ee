// word_cache.h  Tokens of the words seen last, for the length of one call.
//
// Direct-mapped and made anew for each long text: bounded, without locks, and of no use to someone who picks words to
// collide (they only lose the gain).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/text_table.h"

namespace chimere::tokenizer {

class WordCache {
 public:
  // For text below 4 KiB making the cache costs more than it saves.
  explicit WordCache(size_t text_bytes) : entries_(text_bytes < 4096 ? 0 : 4096) {}

  // Appends the tokens of `word`, calling encode(word, out) when they are not known.
  template <class Encode>
  void append(std::string_view word, std::vector<int32_t>& out, Encode&& encode) {
    if (entries_.empty() || word.size() > kMaxWord) {
      encode(word, out);
      return;
    }
    Entry& entry = entries_[hash_text(word) % entries_.size()];
    if (entry.n_bytes == word.size() && std::memcmp(entry.word.data(), word.data(), word.size()) == 0) {
      out.insert(out.end(), entry.tokens.begin(), entry.tokens.begin() + entry.n_tokens);
      return;
    }
    const size_t before = out.size();
    encode(word, out);
    const size_t n_tokens = out.size() - before;
    if (n_tokens > kMaxTokens) return;
    entry.n_bytes = static_cast<uint8_t>(word.size());
    entry.n_tokens = static_cast<uint8_t>(n_tokens);
    std::copy(word.begin(), word.end(), entry.word.begin());
    std::copy(out.begin() + static_cast<ptrdiff_t>(before), out.end(), entry.tokens.begin());
  }

 private:
  static constexpr size_t kMaxWord = 24;
  static constexpr size_t kMaxTokens = 6;
  struct Entry {
    uint8_t n_bytes = 0, n_tokens = 0;
    std::array<char, kMaxWord> word;
    std::array<int32_t, kMaxTokens> tokens;
  };
  std::vector<Entry> entries_;
};

}  // namespace chimere::tokenizer
