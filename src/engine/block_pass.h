// block_pass.h  Runs the drafter of a model: a block of guesses for each of several sequences at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/sequence.h"
#include "engine/best_tokens.h"
#include "models/model.h"

namespace chimere::engine {

class BlockPass {
 public:
  // A block behind a sequence, which begins with the token that was drawn last and is not in the sequence yet.
  struct Part {
    Sequence* sequence;
    int32_t token;
    int n_guesses;  // of what follows it; at least one, at most the rows of a block less one
  };

  explicit BlockPass(models::Model& model) : model_(model), best_(model) {}

  // One pass, or as many as it takes where a batch has no place for all blocks.
  // REQUIRES: the model has a drafter; each sequence once.
  Status run(std::span<const Part> parts);

  // Of the last run: guess i of a part.
  int32_t guess(size_t part, int i) const { return guesses_[first_guess_[part] + static_cast<size_t>(i)]; }

 private:
  Status run_once(std::span<const Part> parts);

  models::Model& model_;
  std::vector<size_t> first_guess_;  // [parts]
  std::vector<int32_t> guesses_;
  BestTokens best_;
};

}  // namespace chimere::engine
