#include "engine/draft_pass.h"

#include <algorithm>

namespace chimere::engine {

Status DraftPass::run(std::span<const Part> parts) {
  Batch batch;
  in_.clear();
  first_guess_.clear();
  for (const Part& part : parts) {
    const auto n = static_cast<int>(part.tokens.size());
    TRY_ASSIGN(Slice slice, part.sequence->begin_pass(part.pos, n));
    slice.first_row = batch.n_rows();
    batch.slices.push_back(slice);
    batch.tokens.insert(batch.tokens.end(), part.tokens.begin(), part.tokens.end());
    in_.insert(in_.end(), part.hidden.begin(), part.hidden.end());
    first_guess_.push_back(batch.logit_rows.size());
    for (int i = part.n_guesses; i > 0; --i) batch.logit_rows.push_back(batch.n_rows() - i);
  }
  batch.draft_hidden = in_.data();
  const size_t n = batch.logit_rows.size();
  const auto v = static_cast<size_t>(model_.n_vocab()), d = static_cast<size_t>(model_.d_model());
  logits_.resize(n * v);
  hidden_.resize(n * d);
  Outputs outputs;
  if (n > 0) outputs.logits = logits_.data(), outputs.hidden = hidden_.data();
  TRY(model_.executable().run(batch, outputs));
  guesses_.clear();
  for (size_t i = 0; i < n; ++i) {
    const auto row = logits_.begin() + static_cast<std::ptrdiff_t>(i * v);
    guesses_.push_back(static_cast<int32_t>(std::max_element(row, row + static_cast<std::ptrdiff_t>(v)) - row));
  }
  return Ok{};
}

}  // namespace chimere::engine
