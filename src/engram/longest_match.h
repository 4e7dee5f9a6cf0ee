// longest_match.h  Tables as a source of drafts: the tokens that most likely come next, by the longest known n-gram.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engram/table.h"

namespace chimere::engram {

struct DraftOptions {
  int max_tokens = 8;
  int min_order = 3;      // shorter matches are chance
  float min_share = 0.5;  // of the key's evidence that its best continuation must have
};

// Follows the best continuation token by token, from the table that knows the longest key (of equal lengths the first
// table), until nobody is sure enough. A draft is a guess: whoever takes it verifies it with the model.
std::vector<int32_t> longest_match(std::span<const std::shared_ptr<const Table>> tables,
                                   std::span<const int32_t> tokens, const DraftOptions& options);

}  // namespace chimere::engram
