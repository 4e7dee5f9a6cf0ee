// shared_ngrams.h  The n-grams that a query and a passage have in common, and what follows them in the passage: why a
// passage was found, in the words that a table of n-grams would use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chimere::retrieval {

struct SharedNgram {
  int position = 0;   // in the passage
  int order = 0;      // tokens
  int32_t next = -1;  // the token that follows; -1 at the end of the passage
};

// Of 2 to max_order tokens, none of them inside another one at the same place; longest first, then by position.
std::vector<SharedNgram> shared_ngrams(std::span<const int32_t> query, std::span<const int32_t> passage, int max_order,
                                       size_t at_most);

}  // namespace chimere::retrieval
