// ngram_source.h  Whoever knows n-grams: a table in a file (table.h), texts in memory (text_ngrams.h).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engram/table_format.h"

namespace chimere::engram {

// A key that ends the context, and its continuations.
struct Hit {
  int order = 0;
  double total = 0;     // of all counts, by age
  double distinct = 0;  // continuations seen, read ones only
  struct Next {
    int32_t token;
    float count;  // by age
  };
  std::vector<Next> next;  // one a token, most frequent first
};

// The hashes of the last 2 to 8 tokens of a context, by order.
struct NgramContext {
  std::array<uint64_t, kMaxOrder + 1> hashes;
  std::array<uint32_t, kMaxOrder> newest_first;
  int length = 0;
};

// Immutable for those who ask: use it from any thread.
class NgramSource {
 public:
  virtual ~NgramSource() = default;
  // What follows the last `order` tokens; false when nothing is known. `hit` keeps its memory from call to call.
  virtual bool find(const NgramContext& context, int order, Hit& hit) const = 0;
  // Asks memory for what find() of every order will read, so that the orders of a context wait together.
  virtual void prefetch(const NgramContext&) const {}
  virtual int min_order() const = 0;
  virtual int max_order() const = 0;
};

}  // namespace chimere::engram
