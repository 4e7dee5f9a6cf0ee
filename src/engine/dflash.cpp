// dflash.cpp  Guesses of a DFlash drafter: a whole block in one pass. What it knows of a text is in the sequence's pages
// already, because the trunk writes it (models/dflash.h), so there is nothing to follow here.
#include <algorithm>

#include "engine/loop.h"

namespace chimere::engine {

// While nothing is drafted, a block is guessed now and then and compared with what is drawn: texts change, and what is
// thought to be of no use would never be tried again. That takes one part in a hundred of the time at most.
bool Loop::is_worth_a_probe(const Active& a) const {
  constexpr double kShare = 0.01;
  const Draft& d = a.draft;
  if (d.mode == speculative::Mode::always || !step_costs_ || !pass_costs_) return false;
  if (!d.guesses.empty() || !prefers_pass(a) || draft_room(a) <= 0) return false;
  const int n_guesses = model_.draft_blocks()->n_rows - 1;
  const double seconds = pass_costs_->step(1) + (n_guesses - 1) * block_guess_s_;
  const auto n_tokens = static_cast<double>(counts_.generated_tokens - tokens_at_block_);
  return kShare * n_tokens * step_costs_->step(1) >= seconds;
}

void Loop::guess_with_blocks(const std::vector<Active*>& decoders) {
  const int n_rows = model_.draft_blocks()->n_rows;
  std::vector<Active*> drafted;
  std::vector<BlockPass::Part> parts;
  int n_guesses = 0;
  for (Active* a : decoders) {
    Draft& d = a->draft;
    const bool is_drafted = d.from_pass && d.depth > 0 && !d.companion.is_on;
    if (!is_drafted && (d.companion.is_on || !is_worth_a_probe(*a))) continue;
    if (is_drafted) d.guesses.clear();
    if (!has_free(a->sequence->bytes_to_begin_pass(a->sequence->length(), n_rows))) {
      d.depth = 0;
      continue;
    }
    tokens_at_block_ = counts_.generated_tokens;
    drafted.push_back(a);
    parts.push_back({&*a->sequence, a->pending().front(), is_drafted ? d.depth : n_rows - 1});
    n_guesses += parts.back().n_guesses;
  }
  if (parts.empty()) return;
  const auto n = static_cast<int>(parts.size());
  counts_.drafter_rows += static_cast<uint64_t>(n) * static_cast<uint64_t>(n_rows);
  const double begun = work_clock_.seconds();
  const Status ran = block_pass_.run(parts);
  if (pass_costs_ && ran) {
    const double seconds = work_clock_.since(begun);
    pass_costs_->observe(n, std::max(seconds - (n_guesses - n) * block_guess_s_, 0.1 * seconds));
  }
  for (size_t i = 0; i < drafted.size(); ++i) {
    Active& a = *drafted[i];
    Draft& d = a.draft;
    const auto guess_at = [&](int slot) { return block_pass_.guess(i, slot); };
    d.probe.clear();
    d.n_probed = 0;
    if (!ran) {
      d.depth = 0;  // if it is the device that failed, the next step says so
    } else if (d.depth > 0) {
      take_chain(a, guess_at, speculative::dflash_kind);
    } else {
      for (int slot = 0; slot < parts[i].n_guesses; ++slot) {
        d.probe.push_back({guess_at(slot), speculative::dflash_kind(slot)});
      }
    }
  }
}

}  // namespace chimere::engine
