// draft_pass.h  Runs the draft pass of a model, for rows of several sequences at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/sequence.h"
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
    int n_guesses = 0;              // of the last so many tokens: what follows each
  };

  explicit DraftPass(models::Model& model) : model_(model) {}

  // REQUIRES: the model has a draft pass, and its batches hold all rows; each sequence once.
  Status run(std::span<const Part> parts);

  // Of the last run: guess i of a part, and the hidden state that it came from, which goes with it into the next.
  int32_t guess(size_t part, int i) const { return guesses_[first_guess_[part] + static_cast<size_t>(i)]; }
  std::span<const float> hidden(size_t part, int i) const {
    const auto d = static_cast<size_t>(model_.d_model());
    return std::span(hidden_).subspan((first_guess_[part] + static_cast<size_t>(i)) * d, d);
  }

 private:
  models::Model& model_;
  std::vector<size_t> first_guess_;  // [parts]
  std::vector<int32_t> guesses_;     // the best token of each row that is asked for
  std::vector<float> in_, hidden_, logits_;
};

}  // namespace chimere::engine
