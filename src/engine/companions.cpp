// companions.cpp  A draft model beside the model: what it reads of each text, and the guesses it makes.
//
// It has a sequence of its own for each text, and reads
//   - what was taken since its last guesses, with the first pass of the next ones;
//   - what it is far behind with, after a step: at most one batch for all texts together, so that nobody's answer waits
//     for the draft model to read a prompt that the model had from its cache. Until it is through, it guesses nothing.
//     While so many answers run that no guess could pay, it reads nothing.
// Nothing of an answer depends on any of it, so what cannot be done is left out: without memory, and beyond the context
// of the draft model, guesses end.
#include <algorithm>

#include "engine/loop.h"

namespace chimere::engine {
namespace {

using speculative::Mode;

constexpr int32_t kFarFromText = 64;
// Of a batch that only reads, rows at its end whose guesses are compared with what followed.
constexpr int32_t kReadProbes = 2;

}  // namespace

void Loop::begin_companion(Active& a) {
  Companion& c = a.draft.companion;
  c = {};
  a.draft.acceptance.stand_on(&experience_of(a).acceptance);
  if (!draft_model_ || !speculative::uses_draft_model(a.draft.mode) || !companion_has_room(a)) return;
  if (a.draft.mode != Mode::always) {
    time_steps_once();
    const auto n_tokens = static_cast<double>(a.sampler.tokens().size());
    uint64_t& n_left_out = experience_of(a).n_not_accompanied;
    if (!guesses_pay_for(a, n_tokens, draft_model_->costs(), speculative::draft_model_kind, n_left_out)) return;
  }
  c.is_on = true;
}

bool Loop::companion_has_room(const Active& a) const {
  const auto n_tokens = static_cast<int>(a.sampler.tokens().size());
  return n_tokens + kDecodeTokens <= draft_model_->model().context_length();
}

// Makes it ready to read what the text has behind it. False where it is off from now on.
bool Loop::ready_companion(Active& a) {
  Companion& c = a.draft.companion;
  const std::span<const int32_t> text = a.sampler.tokens();
  bool is_ready = companion_has_room(a);
  if (is_ready && !c.sequence) {
    const uint64_t bytes = draft_model_->model().executable().layout().recurrent_floats() * sizeof(float);
    is_ready = has_free(bytes) && draft_model_->begin(c);
  }
  // A larger vocabulary may end with tokens that the draft model does not have.
  const auto is_known = [&](int32_t id) { return id < draft_model_->model().n_vocab(); };
  is_ready = is_ready && draft_model_->settle(c, text) && std::all_of(text.begin() + c.length(), text.end(), is_known);
  if (!is_ready) c = {};
  return is_ready;
}

bool Loop::companion_guesses(const Active& a) const {
  const Companion& c = a.draft.companion;
  return c.is_on && static_cast<int32_t>(a.sampler.tokens().size()) - c.length() <= kFarFromText + kDecodeTokens;
}

void Loop::read_beside() {
  if (!draft_model_) return;
  const int max_rows = draft_model_->model().executable().prefill_rows();
  std::vector<DraftModel::Part> parts;
  std::vector<Active*> reading;
  int n_rows = 0;
  for (auto& a : running_) {
    Companion& c = a->draft.companion;
    if (!a->events || !a->sequence || !c.is_on || (!may_pay_ && a->draft.mode != Mode::always)) continue;
    const int32_t n_behind = a->sequence->length() - c.length();
    const int n = std::min(n_behind, max_rows - n_rows);
    if (n_behind < kFarFromText || n <= 0 || !ready_companion(*a)) continue;
    if (!has_free(DraftModel::bytes_to_run(c, n, 0))) {
      c = {};
      continue;
    }
    // Probes where what followed is known, and is no prompt's.
    const std::span<const int32_t> text = a->sampler.tokens();
    const int32_t end = c.length() + n;
    const int32_t n_answer = end - static_cast<int32_t>(a->sampler.n_prompt());
    const bool is_known = static_cast<size_t>(end) < text.size();
    parts.push_back({.companion = &c,
                     .tokens = text.subspan(static_cast<size_t>(c.length()), static_cast<size_t>(n)),
                     .n_guesses = is_known ? std::clamp(std::min(n_answer, n), 0, kReadProbes) : 0});
    reading.push_back(a.get());
    n_rows += n;
  }
  if (parts.empty()) return;
  const WorkAdded work(work_clock_, draft_work_);
  const Status ran = draft_model_->run(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    Active& a = *reading[i];
    if (!ran) {
      a.draft.companion = {};  // if it is the device that failed, the next step says so
      continue;
    }
    for (int g = 0; g < parts[i].n_guesses; ++g) {
      const auto follows_at = static_cast<size_t>(a.draft.companion.length() - parts[i].n_guesses + g + 1);
      const bool is_right = draft_model_->guess(i, g) == a.sampler.tokens()[follows_at];
      learn(a, speculative::draft_model_kind(0), is_right);
    }
  }
}

// Guess i of all of them in one pass.
void Loop::guess_beside(const std::vector<Active*>& decoders) {
  std::vector<DraftModel::Part> parts;
  std::vector<Active*> chains;
  int n_rows = 0;
  for (Active* a : decoders) {
    Draft& d = a->draft;
    if (!d.from_pass || d.depth == 0 || !d.companion.is_on) continue;
    d.guesses.clear();
    // Guessed already, and there was no place in the step for it.
    if (d.companion.has_guessed_behind(a->sampler.tokens().size())) {
      take_companions_chain(*a);
      continue;
    }
    if (!ready_companion(*a)) {
      d.depth = 0;
      continue;
    }
    const std::span<const int32_t> tokens = a->sampler.tokens().subspan(static_cast<size_t>(d.companion.length()));
    const auto n = static_cast<int>(tokens.size());
    const bool fits = n_rows + n <= draft_model_->model().executable().max_rows();
    if (!fits || !has_free(DraftModel::bytes_to_run(d.companion, n, d.depth))) {
      d.depth = 0;
      continue;
    }
    parts.push_back({&d.companion, tokens, d.depth});
    chains.push_back(a);
    n_rows += n;
  }
  if (parts.empty()) return;
  const Status ran = draft_model_->run_chains(parts);
  for (Active* a : chains) {
    if (!ran) a->draft.companion = {};  // if it is the device that failed, the next step says so
    take_companions_chain(*a);
  }
}

void Loop::take_companions_chain(Active& a) {
  const std::vector<int32_t>& guesses = a.draft.companion.guesses;
  a.draft.depth = std::min(a.draft.depth, static_cast<int>(guesses.size()));
  take_chain(
      a, [&](int i) { return guesses[static_cast<size_t>(i)]; }, speculative::draft_model_kind);
}

uint64_t Loop::companion_bytes() const {
  uint64_t bytes = 0;
  for (const auto& a : running_) bytes += a->draft.companion.size_bytes();
  return bytes;
}

}  // namespace chimere::engine
