// batching.cpp  What goes into the next step.
#include <algorithm>
#include <exception>
#include <tuple>
#include <utility>

#include "engine/loop.h"

namespace chimere::engine {
namespace {

// Behind its prompt there is something to read where an answer gave its state back: by what it was decoded by.
int32_t slice_end(const Active& a, int32_t at) {
  const auto cut = std::upper_bound(a.cuts.cuts.begin(), a.cuts.cuts.end(), at);
  if (cut != a.cuts.cuts.end()) return *cut;
  const auto n_prompt = static_cast<int32_t>(a.sampler.n_prompt());
  const auto n_tokens = static_cast<int32_t>(a.sampler.tokens().size());
  return at < n_prompt ? n_prompt : std::min(at + kDecodeTokens, n_tokens);
}

}  // namespace

void Loop::prepare_masks() {
  for (auto& a : running_) {
    const bool draws = a->events && a->sequence && a->answer.draws_answer();
    if (!draws || !a->constraint || a->waits_for_mask) continue;
    if (a->constraint->prepare(kMaskSteps)) continue;
    a->waits_for_mask = true;
    masks_.post([this, id = a->id, made = std::shared_ptr<TokenConstraint>(a->constraint->clone())] {
      try {
        made->prepare(kWholeMask);
      } catch (const std::exception&) {
        // No memory: the engine tries once more itself, and fails the request if there still is none.
      }
      post([id, made](Loop& loop) {
        Active* waiting = loop.find(id);
        if (!waiting) return;
        waiting->constraint = made;
        waiting->waits_for_mask = false;
      });
    });
  }
}

// False when there is no memory for it now, or when it failed.
bool Loop::add_slice(Batch& batch, Active& a, int n_tokens) {
  const uint64_t bytes = a.sequence->bytes_to_begin(n_tokens);
  a.is_stalled = !make_room(bytes);
  if (a.is_stalled) {
    wait_for_memory(a);
    return false;
  }
  auto slice = with_room(bytes, [&] { return a.sequence->begin(n_tokens); });
  if (!slice && slice.error().code == Code::exhausted) {
    a.is_stalled = a.was_refused = true;
    wait_for_memory(a);
    return false;
  }
  if (!slice) {
    fail(a, slice.error());
    return false;
  }
  a.waits_for_memory = false;
  slice->first_row = a.first_row = batch.n_rows();
  slice->adapters = a.request->adapters.get();
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

// The owner for whom least was computed comes first; prompts of others do not make its step long, and those of a crowd
// do not make a step so long that who comes next waits for it. Of one owner's prompts the one that had a slice longest
// ago comes first, so that a long prompt holds up nobody's short one for more than a slice. Where a slice ends follows
// from the prompt alone: what it computes does not depend on who else was in the batch, nor on what was cached.
void Loop::add_prompts(Batch& batch) {
  std::vector<Active*> prompts;
  std::map<OwnerId, size_t> wanted;  // rows
  for (auto& a : running_) {
    if (!a->events || !a->sequence || a->pending().size() <= 1 || a->waits_for_mask) continue;
    prompts.push_back(a.get());
    wanted[a->request->owner] += a->pending().size();
  }
  // Of two who had the same, the one that wants less is the one that came last.
  const auto rank = [&](const Active* a) {
    const OwnerId owner = a->request->owner;
    return std::tuple(shares_.time(owner), wanted[owner], owner, a->last_slice);
  };
  std::stable_sort(prompts.begin(), prompts.end(), [&](const Active* a, const Active* b) { return rank(a) < rank(b); });
  const int n_decoding = batch.n_rows();
  const int most = shares_.n_lately() > 1 ? crowded_step_rows(config_.prefill_tokens) : model_.executable().max_rows();
  int own_rows = 0;  // of the owner who comes first
  OwnerId first = 0;
  for (Active* a : prompts) {
    const int32_t at = a->sequence->length(), end = slice_end(*a, at);
    if (batch.n_rows() + end - at > model_.executable().max_rows()) continue;
    const int rows = batch.n_rows() - n_decoding + end - at;
    if (own_rows > 0 && rows > most) continue;
    const bool is_first = own_rows == 0 || a->request->owner == first;
    if (!is_first && (wanted[a->request->owner] > wanted[first] || rows > rows_with_others(own_rows))) continue;
    if (!add_slice(batch, *a, end - at)) continue;
    a->last_slice = n_steps_;
    if (!is_first) continue;
    first = a->request->owner;
    own_rows += end - at;
  }
}

// At most max_running, each owner as many as the others where it has so many. Those left out are the first of their
// owner the next time; nothing of them changes meanwhile.
std::vector<Active*> Loop::choose_decoders() {
  std::vector<Active*> all;
  for (auto& a : running_) {
    if (a->events && a->sequence && a->pending().size() == 1 && !a->waits_for_mask) all.push_back(a.get());
  }
  const auto n = static_cast<size_t>(config_.max_running);
  if (all.size() <= n) return all;
  std::stable_sort(all.begin(), all.end(),
                   [](const Active* a, const Active* b) { return a->last_token < b->last_token; });
  std::map<OwnerId, int> n_chosen;
  std::vector<Active*> chosen;
  while (chosen.size() < n) {
    const auto next = std::min_element(all.begin(), all.end(), [&](const Active* a, const Active* b) {
      return n_chosen[a->request->owner] < n_chosen[b->request->owner];
    });
    ++n_chosen[(*next)->request->owner];
    chosen.push_back(*next);
    all.erase(next);
  }
  return chosen;
}

Batch Loop::make_batch() {
  Batch batch;
  ++n_steps_;
  for (auto& a : running_) {
    a->rows_in_batch = 0;
    a->logit_index = -1;
    a->is_stalled = a->was_refused = false;
  }
  // Decoding requests first: one token each, and guesses at the next where they pay, so nobody's stream waits for
  // somebody's prompt.
  const std::vector<Active*> decoders = choose_decoders();
  plan_drafts(decoders);
  for (Active* a : decoders) {
    if (batch.n_rows() >= model_.executable().max_rows()) break;
    if (add_draft(batch, *a) || add_slice(batch, *a, 1)) a->last_token = n_steps_;
  }
  add_prompts(batch);
  const bool has_asked = std::exchange(asks_beyond_limit_, false);
  if (has_asked) state_limit_ = std::min(state_limit_, held_bytes());  // so much there is
  if (!batch.slices.empty()) return batch;
  // Texts that are embedded come to their ends and give memory back, and so do answers that wait for a mask.
  if (embeds_.held_bytes() > 0) return batch;
  if (std::any_of(running_.begin(), running_.end(), [](const auto& a) { return a->waits_for_mask; })) return batch;
  end_standstill(has_asked);
  return batch;
}

}  // namespace chimere::engine
