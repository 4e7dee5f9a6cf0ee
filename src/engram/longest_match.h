// longest_match.h  Tables as a source of drafts: the tokens that most likely come next, by the longest known n-gram.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engram/ngram_source.h"

namespace chimere::engram {

struct DraftOptions {
  int max_tokens = 8;
  int min_order = 3;      // shorter matches are chance
  float min_share = 0.5;  // of the key's evidence that its best continuation must have
};

struct Expected {
  int32_t token;
  int order;  // tokens of the key that it follows

  bool operator==(const Expected&) const = default;
};

// Follows the best continuation token by token, from the table that knows the longest key (of equal lengths the first
// table), until nobody is sure enough. A draft is a guess: whoever takes it verifies it with the model.
std::vector<Expected> longest_match(std::span<const std::shared_ptr<const NgramSource>> tables,
                                    std::span<const int32_t> tokens, const DraftOptions& options);

}  // namespace chimere::engram
