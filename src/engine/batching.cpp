// batching.cpp  What goes into the next step.
#include <algorithm>

#include "engine/loop.h"

namespace chimere::engine {

// False when there is no memory for it now, or when it failed.
bool Loop::add_slice(Batch& batch, Active& a, int n_tokens) {
  a.is_stalled = !make_room(a.sequence->bytes_to_begin(n_tokens));
  if (a.is_stalled) return false;
  auto slice = a.sequence->begin(n_tokens);
  if (!slice) {
    fail(a, slice.error());
    return false;
  }
  slice->first_row = batch.n_rows();
  slice->adapters = a.request.adapters.get();
  const std::span<const int32_t> pending = a.pending();
  batch.tokens.insert(batch.tokens.end(), pending.begin(), pending.begin() + n_tokens);
  batch.slices.push_back(*slice);
  a.rows_in_batch = n_tokens;
  if (static_cast<size_t>(n_tokens) == pending.size()) {
    a.logit_index = static_cast<int32_t>(batch.logit_rows.size());
    batch.logit_rows.push_back(batch.n_rows() - 1);
  }
  return true;
}

// Prompts take turns: who had a slice longest ago comes first, so that a long prompt holds up nobody's short one for
// more than a slice. Where a slice ends follows from the prompt alone: what it computes does not depend on who else was
// in the batch, nor on what was cached.
void Loop::add_prompts(Batch& batch) {
  std::vector<Active*> prompts;
  for (auto& a : running_) {
    if (a->events && a->sequence && a->pending().size() > 1) prompts.push_back(a.get());
  }
  std::stable_sort(prompts.begin(), prompts.end(),
                   [](const Active* a, const Active* b) { return a->last_slice < b->last_slice; });
  for (Active* a : prompts) {
    const int32_t at = a->sequence->length();
    const auto cut = std::upper_bound(a->cuts.cuts.begin(), a->cuts.cuts.end(), at);
    const int32_t end = cut == a->cuts.cuts.end() ? at + static_cast<int32_t>(a->pending().size()) : *cut;
    if (batch.n_rows() + end - at > model_.executable().max_rows()) continue;
    if (add_slice(batch, *a, end - at)) a->last_slice = n_steps_;
  }
}

Batch Loop::make_batch() {
  Batch batch;
  ++n_steps_;
  for (auto& a : running_) {
    a->rows_in_batch = 0;
    a->logit_index = -1;
    a->is_stalled = false;
  }
  // Decoding requests first: one token each, so nobody's stream waits for somebody's prompt.
  for (auto& a : running_) {
    const bool decodes = a->events && a->sequence && a->pending().size() == 1;
    if (decodes && batch.n_rows() < model_.executable().max_rows()) add_slice(batch, *a, 1);
  }
  add_prompts(batch);
  if (!batch.slices.empty()) return batch;
  // Texts that are embedded come to their ends and give memory back.
  if (embeds_.held_bytes() > 0) return batch;
  // Nobody can go on, so nobody's end will give memory back: the youngest that waits for some has to go.
  for (auto a = running_.rbegin(); a != running_.rend(); ++a) {
    if (!(*a)->is_stalled) continue;
    fail(**a, {Code::exhausted, "out of state memory: all sequences together may hold " +
                                    std::to_string(config_.state_bytes) + " bytes"});
    break;
  }
  return batch;
}

}  // namespace chimere::engine
