#include "engine/draft_model.h"

#include <algorithm>

#include "engine/step_timing.h"

namespace chimere::engine {
namespace {

void add_slice_of(Batch& batch, Slice slice, std::span<const int32_t> tokens) {
  slice.first_row = batch.n_rows();
  batch.slices.push_back(slice);
  batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
}

}  // namespace

void DraftModel::prepare(const std::vector<int32_t>& suppressed_ids) {
  if (auto ready = model_.executable().prepare_draws(suppressed_ids)) draws_ = *ready;
}

void DraftModel::time(const InAHurry& in_a_hurry) {
  if (auto costs = time_steps(model_, draws_, in_a_hurry)) costs_.emplace(std::move(*costs));
}

Status DraftModel::begin(Companion& companion) {
  TRY_ASSIGN(Sequence sequence, Sequence::create(model_.executable()));
  companion.sequence.emplace(std::move(sequence));
  companion.guesses.clear();
  companion.n_run = 0;
  return Ok{};
}

Status DraftModel::settle(Companion& companion, std::span<const int32_t> text) {
  const auto n_read = static_cast<size_t>(companion.length() - companion.n_run);
  const size_t most = std::min(static_cast<size_t>(companion.n_run), text.size() - 1 - n_read);
  size_t n_right = 0;
  while (n_right < most && companion.guesses[n_right] == text[n_read + n_right]) ++n_right;
  const int n_wrong = companion.n_run - static_cast<int>(n_right);
  companion.guesses.clear();
  companion.n_run = 0;
  return companion.sequence->rollback(n_wrong);
}

uint64_t DraftModel::bytes_to_run(const Companion& companion, int n_tokens, int n_guesses) {
  const Sequence& sequence = *companion.sequence;
  return n_guesses > 1 ? sequence.bytes_to_begin_draft(n_tokens + n_guesses) : sequence.bytes_to_begin(n_tokens);
}

Status DraftModel::run_batch(const Batch& batch) {
  const double begun = work_clock_.seconds();
  TRY(best_.run(batch, draws_));
  const int rows = batch.n_rows();
  n_rows_ += static_cast<uint64_t>(rows);
  const bool is_step = rows <= kDecodeTokens && !batch.logit_rows.empty();
  if (costs_ && is_step) costs_->observe(rows, work_clock_.since(begun));
  return Ok{};
}

Status DraftModel::run(std::span<const Part> parts) {
  Batch batch;
  for (const Part& part : parts) {
    TRY_ASSIGN(const Slice slice, part.companion->sequence->begin(static_cast<int>(part.tokens.size())));
    add_slice_of(batch, slice, part.tokens);
    for (int i = part.n_guesses; i > 0; --i) batch.logit_rows.push_back(batch.n_rows() - i);
  }
  TRY(run_batch(batch));
  guesses_.assign(parts.size(), {});
  auto from = best_.best().begin();
  for (size_t i = 0; i < parts.size(); ++i) {
    TRY(parts[i].companion->sequence->commit(static_cast<int>(parts[i].tokens.size())));
    guesses_[i].assign(from, from + parts[i].n_guesses);
    from += parts[i].n_guesses;
  }
  return Ok{};
}

// What was taken stays whatever comes; the rows of guesses are a draft that grows by one with each pass.
Status DraftModel::run_chains(std::span<const Part> parts) {
  std::vector<Part> first(parts.begin(), parts.end());
  for (Part& part : first) part.n_guesses = 1;
  TRY(run(first));
  for (size_t i = 0; i < parts.size(); ++i) parts[i].companion->guesses = {guesses_[i].front()};
  for (int depth = 1;; ++depth) {
    Batch batch;
    std::vector<Companion*> longer;
    for (const Part& part : parts) {
      if (part.n_guesses <= depth) continue;
      Companion& c = *part.companion;
      TRY_ASSIGN(const Slice slice, depth == 1 ? c.sequence->begin_draft(1) : c.sequence->extend_draft(1));
      add_slice_of(batch, slice, {&c.guesses.back(), 1});
      batch.logit_rows.push_back(batch.n_rows() - 1);
      longer.push_back(&c);
    }
    if (longer.empty()) return Ok{};
    TRY(run_batch(batch));
    for (size_t row = 0; row < longer.size(); ++row) {
      TRY(longer[row]->sequence->commit(1));
      ++longer[row]->n_run;
      longer[row]->guesses.push_back(best_.best()[row]);
    }
  }
}

}  // namespace chimere::engine
