// following.cpp  The model's draft pass (MTP) beside its trunk: what it has to see of a text, and the guesses it makes.
//
// The pass has a KV layer of its own in the sequence's pages, and needs the trunk's hidden states to fill it. They are
// collected from every step and run through the pass
//   - when guesses are made: what is missing goes into the first pass of a chain. That is also where positions whose
//     states had been guesses themselves are done again;
//   - when kFarBehind positions are missing: the slice of a prompt at once, an answer that is not drafted for every so
//     many tokens, in one pass that costs a small part of one of the steps before it;
//   - before state is kept for others.
// With auto the pass leaves a text when so much is missing and so many answers run that no guess could pay.
// Nothing of an answer depends on any of it, so what cannot be done is left out: without memory, guesses end.
#include <algorithm>

#include "engine/loop.h"

namespace chimere::engine {
namespace {

using speculative::Mode;

constexpr int32_t kFarBehind = 64;
// Of a pass that only catches up, rows at its end whose guesses are compared with what followed: how often they are
// right is known, then, while nothing is drafted.
constexpr int32_t kProbes = 2;

}  // namespace

void Loop::begin_following(Active& a) {
  Following& f = a.draft.following;
  f = {};
  if (!model_.has_drafts() || !speculative::uses_draft_pass(a.draft.mode) || a.draft.companion.is_on) return;
  if (a.draft.mode == Mode::automatic) {
    time_steps_once();
    const auto n_read = static_cast<double>(a.sampler.n_prompt()) - a.sequence->length();
    const speculative::StepCosts* costs = pass_costs_ ? &*pass_costs_ : nullptr;
    if (!guesses_pay_for(a, n_read, costs, speculative::pass_kind, experience_of(a).n_not_followed)) return;
  }
  f.is_on = true;
  likely_tokens_.learn(a.sampler.tokens().subspan(static_cast<size_t>(a.sequence->length())));
  f.n_seen = a.sequence->length();
  f.hidden.assign(static_cast<size_t>(model_.d_model()), 0.0f);
}

// The rows of the step that was committed.
void Loop::follow(Active& a) {
  Following& f = a.draft.following;
  if (!f.is_on) return;
  const auto d = static_cast<std::ptrdiff_t>(model_.d_model());
  const int32_t length_before = a.sequence->length() - a.rows_in_batch;
  if (f.n_seen > length_before) f.hidden.clear();  // that of the last position has served
  const auto begin = row_hidden_.begin() + a.first_row * d;
  f.hidden.insert(f.hidden.end(), begin, begin + a.rows_in_batch * d);
}

// Tokens that were taken back.
void Loop::follow_back(Active& a, int n_tokens) {
  Following& f = a.draft.following;
  if (!f.is_on) return;
  f.hidden.resize(f.hidden.size() - static_cast<size_t>(n_tokens) * static_cast<size_t>(model_.d_model()));
}

Status Loop::run_chains(std::span<const DraftPass::Part> parts) {
  if (likely_tokens_.take_changed()) draft_pass_.set_candidates(likely_tokens_.blocks());
  const auto n = static_cast<int>(parts.size());
  int rows = 0, guesses = 0, deepest = 0;
  for (const DraftPass::Part& part : parts) {
    rows += static_cast<int>(part.tokens.size());
    guesses += part.n_guesses;
    deepest = std::max(deepest, part.n_guesses);
  }
  counts_.draft_passes += static_cast<uint64_t>(deepest);
  counts_.draft_pass_rows += static_cast<uint64_t>(rows + guesses - n);
  const double begun = work_clock_.seconds();
  TRY(draft_pass_.run_chains(parts));
  // The first pass has what was missed, too; those behind it as many rows as there are chains.
  if (pass_costs_ && deepest == 1) pass_costs_->observe(rows, work_clock_.since(begun));
  if (pass_costs_ && deepest > 1 && rows == n && guesses == n * deepest) {
    pass_costs_->observe(n, work_clock_.since(begun) / deepest);
  }
  return Ok{};
}

// Brings the pass to the end of each sequence, in as few batches as it takes.
void Loop::catch_up(const std::vector<Active*>& behind) {
  const auto d = static_cast<size_t>(model_.d_model());
  const int max_rows = model_.executable().max_rows();
  std::vector<DraftPass::Part> parts;
  std::vector<Active*> passing;
  int n_rows = 0;
  if (likely_tokens_.take_changed()) draft_pass_.set_candidates(likely_tokens_.blocks());
  const auto run = [&] {
    if (parts.empty()) return;
    ++counts_.draft_passes;
    counts_.draft_pass_rows += static_cast<uint64_t>(n_rows);
    const Status ran = draft_pass_.run(parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      Following& f = passing[i]->draft.following;
      if (!ran) {
        f = {};  // if it is the device that failed, the next step says so
        continue;
      }
      learn_from_pass(*passing[i], i, parts[i].n_guesses);
      f.n_seen += static_cast<int32_t>(parts[i].tokens.size());
      f.hidden.erase(f.hidden.begin(), f.hidden.begin() + static_cast<std::ptrdiff_t>(parts[i].tokens.size() * d));
    }
    parts.clear();
    passing.clear();
    n_rows = 0;
  };
  for (Active* a : behind) {
    while (a->draft.following.is_on && a->draft.following.n_seen < a->sequence->length()) {
      Following& f = a->draft.following;
      const int n = std::min(a->sequence->length() - f.n_seen, max_rows - n_rows);
      if (!has_free(a->sequence->bytes_to_begin_pass(f.n_seen, n))) {
        f = {};
        break;
      }
      const std::span<const int32_t> tokens = a->sampler.tokens();
      const int32_t end = f.n_seen + n;
      // Probes where what followed is known, and is no prompt's.
      const int32_t n_answer = end - static_cast<int32_t>(a->sampler.n_prompt());
      const bool is_known = end == a->sequence->length() && static_cast<size_t>(end) < tokens.size();
      parts.push_back({.sequence = &*a->sequence,
                       .pos = f.n_seen,
                       .tokens = tokens.subspan(static_cast<size_t>(f.n_seen), static_cast<size_t>(n)),
                       .hidden = std::span(f.hidden).first(static_cast<size_t>(n) * d),
                       .n_guesses = is_known ? std::clamp(std::min(n_answer, n), 0, kProbes) : 0});
      passing.push_back(a);
      n_rows += n;
      const bool is_done = end == a->sequence->length();
      if (!is_done || n_rows == max_rows) run();
      if (is_done) break;
    }
  }
  run();
}

void Loop::learn_from_pass(Active& a, size_t part, int n_guesses) {
  const std::span<const int32_t> tokens = a.sampler.tokens();
  for (int i = 0; i < n_guesses; ++i) {
    const auto follows_at = static_cast<size_t>(a.sequence->length() - n_guesses + i + 1);
    const bool is_right = draft_pass_.guess(part, i) == tokens[follows_at];
    learn(a, speculative::pass_kind(0), is_right);
  }
}

void Loop::catch_up_where_far() {
  std::vector<Active*> far;
  for (auto& a : running_) {
    Following& f = a->draft.following;
    if (!a->events || !a->sequence || !f.is_on || a->sequence->length() - f.n_seen < kFarBehind) continue;
    if (may_pay_ || a->draft.mode != Mode::automatic) {
      far.push_back(a.get());
    } else {
      f = {};
    }
  }
  if (far.empty()) return;
  const WorkAdded work(work_clock_, draft_work_);
  catch_up(far);
}

// Before its state is kept: who goes on from there has what the draft pass knows, too.
void Loop::catch_up_alone(Active& a) {
  if (!a.draft.following.is_on) return;
  const WorkAdded work(work_clock_, draft_work_);
  catch_up({&a});
}

// Guess i of all of them in one pass. Each begins with the token that was drawn last, whose state before it is known, and
// goes on with what it guessed itself.
void Loop::guess_with_passes(const std::vector<Active*>& decoders) {
  std::vector<Active*> chains;
  int n_rows = 0;
  bool is_far = false;
  for (Active* a : decoders) {
    Draft& d = a->draft;
    if (!d.from_pass || d.depth == 0 || !d.passes()) continue;
    d.guesses.clear();
    // Guessed already, and there was no place in the step for it: once more.
    d.following.n_seen = std::min(d.following.n_seen, a->sequence->length());
    const int32_t n_behind = a->sequence->length() - d.following.n_seen;
    if (!has_free(a->sequence->bytes_to_begin_pass(d.following.n_seen, n_behind + d.depth))) {
      d.depth = 0;
      continue;
    }
    chains.push_back(a);
    n_rows += n_behind + 1;
    is_far |= n_behind + 1 > kDecodeTokens;
  }
  if (is_far || n_rows > model_.executable().max_rows()) catch_up(chains);
  std::vector<DraftPass::Part> parts;
  for (Active* a : chains) {
    Following& f = a->draft.following;
    if (!f.is_on) {  // it could not catch up
      a->draft.depth = 0;
      continue;
    }
    parts.push_back({.sequence = &*a->sequence,
                     .pos = f.n_seen,
                     .tokens = a->sampler.tokens().subspan(static_cast<size_t>(f.n_seen)),
                     .hidden = f.hidden,
                     .n_guesses = a->draft.depth});
  }
  std::erase_if(chains, [](const Active* a) { return a->draft.depth == 0; });
  if (parts.empty()) return;
  const Status ran = run_chains(parts);
  for (size_t i = 0; i < chains.size(); ++i) {
    Active& a = *chains[i];
    Draft& d = a.draft;
    if (!ran) {
      d.following = {};  // if it is the device that failed, the next step says so
      d.depth = 0;
      continue;
    }
    d.following.n_seen = a.sequence->length() + 1;
    d.following.hidden.erase(d.following.hidden.begin(), d.following.hidden.end() - model_.d_model());
    take_chain(
        a, [&](int depth) { return draft_pass_.guess(i, depth); }, speculative::pass_kind);
  }
}

}  // namespace chimere::engine
