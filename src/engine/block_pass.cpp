#include "engine/block_pass.h"

#include <algorithm>

#include "base/check.h"

namespace chimere::engine {

Status BlockPass::run(std::span<const Part> parts) {
  first_guess_.clear();
  guesses_.clear();
  const auto at_once = static_cast<size_t>(model_.executable().max_rows() / model_.draft_blocks()->n_rows);
  CHECK(at_once > 0);
  while (!parts.empty()) {
    const size_t n = std::min(parts.size(), at_once);
    TRY(run_once(parts.first(n)));
    parts = parts.subspan(n);
  }
  return Ok{};
}

Status BlockPass::run_once(std::span<const Part> parts) {
  const DraftBlocks& blocks = *model_.draft_blocks();
  Batch batch;
  batch.draft_blocks = true;
  for (const Part& part : parts) {
    TRY_ASSIGN(Slice slice, part.sequence->begin_pass(part.sequence->length(), blocks.n_rows));
    slice.first_row = batch.n_rows();
    batch.slices.push_back(slice);
    // The row of a mask guesses the token at its own place.
    first_guess_.push_back(guesses_.size() + batch.logit_rows.size());
    for (int i = 1; i <= part.n_guesses; ++i) batch.logit_rows.push_back(batch.n_rows() + i);
    batch.tokens.push_back(part.token);
    batch.tokens.insert(batch.tokens.end(), static_cast<size_t>(blocks.n_rows) - 1, blocks.mask_token);
  }
  TRY(best_.run(batch, model_.executable().chains_drafts()));
  guesses_.insert(guesses_.end(), best_.best().begin(), best_.best().end());
  return Ok{};
}

}  // namespace chimere::engine
