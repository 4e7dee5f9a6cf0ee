// draft_pass.h  Runs the draft pass of a model, for rows of several sequences at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/sequence.h"
#include "engine/best_tokens.h"
#include "models/model.h"

namespace chimere::engine {

class DraftPass {
 public:
  // Positions [pos, pos + tokens) of a sequence, each with the hidden state of the one before it.
  struct Part {
    Sequence* sequence;
    int32_t pos;
    std::span<const int32_t> tokens;
    std::span<const float> hidden;  // [tokens, d_model]
    int n_guesses = 0;
  };

  explicit DraftPass(models::Model& model) : model_(model), best_(model) {}

  // From here on guesses are of these blocks of the vocabulary alone (Batch::head_blocks), where the backend can.
  void set_candidates(std::span<const int32_t> blocks) {
    candidates_.clear();
    if (blocks.empty() || !model_.executable().prepare_head_blocks(static_cast<int>(blocks.size()))) return;
    candidates_.assign(blocks.begin(), blocks.end());
  }

  // One pass. Guesses are of what follows each of the last n_guesses tokens of a part.
  // REQUIRES: the model has a draft pass, and its batches hold all rows; each sequence once.
  Status run(std::span<const Part> parts);
  // Guesses are a chain of n_guesses, at least one: what follows the last token, then what follows that guess.
  // As many passes as the longest chain, or one batch where the backend chains them itself.
  // REQUIRES also: at most kDecodeTokens tokens in a part.
  Status run_chains(std::span<const Part> parts);

  // Of the last run: guess i of a part.
  int32_t guess(size_t part, int i) const { return guesses_[first_guess_[part] + static_cast<size_t>(i)]; }

 private:
  void number_guesses(std::span<const Part> parts);
  // Runs one pass: the best token and, if asked for, the hidden state of every row that is guessed from.
  Status run_once(std::span<const Part> parts, bool wants_hidden);
  Status chain_on_device(std::span<const Part> parts);
  Status add(Batch& batch, const Part& part, int n_behind);

  models::Model& model_;
  std::vector<size_t> first_guess_;  // [parts]
  std::vector<int32_t> guesses_;
  BestTokens best_;
  std::vector<int32_t> candidates_;  // empty: all
  std::vector<float> in_, hidden_;
};

}  // namespace chimere::engine
