#include "engine/draft_pass.h"

#include <algorithm>
#include <numeric>

namespace chimere::engine {

// n_behind: positions behind the part that the same batch goes on to.
Status DraftPass::add(Batch& batch, const Part& part, int n_behind) {
  const auto n = static_cast<int>(part.tokens.size());
  TRY_ASSIGN(Slice slice, part.sequence->begin_pass(part.pos, n + n_behind));
  slice.n_tokens = n;
  slice.first_row = batch.n_rows();
  batch.slices.push_back(slice);
  batch.tokens.insert(batch.tokens.end(), part.tokens.begin(), part.tokens.end());
  in_.insert(in_.end(), part.hidden.begin(), part.hidden.end());
  return Ok{};
}

Status DraftPass::run_once(std::span<const Part> parts, bool wants_hidden) {
  Batch batch;
  in_.clear();
  for (const Part& part : parts) {
    TRY(add(batch, part, 0));
    for (int i = part.n_guesses; i > 0; --i) batch.logit_rows.push_back(batch.n_rows() - i);
  }
  batch.draft_hidden = in_.data();
  batch.head_blocks = candidates_;
  if (wants_hidden) hidden_.resize(batch.logit_rows.size() * static_cast<size_t>(model_.d_model()));
  return best_.run(batch, model_.executable().chains_drafts(), wants_hidden ? hidden_.data() : nullptr);
}

void DraftPass::number_guesses(std::span<const Part> parts) {
  first_guess_.clear();
  size_t n = 0;
  for (const Part& part : parts) {
    first_guess_.push_back(n);
    n += static_cast<size_t>(part.n_guesses);
  }
  guesses_.assign(n, 0);
}

Status DraftPass::run(std::span<const Part> parts) {
  number_guesses(parts);
  TRY(run_once(parts, false));
  guesses_ = best_.best();
  return Ok{};
}

Status DraftPass::run_chains(std::span<const Part> parts) {
  number_guesses(parts);
  if (model_.executable().chains_drafts()) return chain_on_device(parts);
  const auto d = static_cast<size_t>(model_.d_model());
  std::vector<Part> next(parts.begin(), parts.end());
  std::vector<size_t> chain(parts.size());  // [next]
  std::iota(chain.begin(), chain.end(), size_t{0});
  std::vector<float> states;
  for (int depth = 0; !next.empty(); ++depth) {
    for (Part& part : next) part.n_guesses = 1;
    TRY(run_once(next, true));
    states = hidden_;
    std::vector<Part> longer;
    std::vector<size_t> of_longer;
    for (size_t i = 0; i < next.size(); ++i) {
      const Part& part = parts[chain[i]];
      int32_t& guess = guesses_[first_guess_[chain[i]] + static_cast<size_t>(depth)];
      guess = best_.best()[i];
      if (depth + 1 >= part.n_guesses) continue;
      const auto pos = part.pos + static_cast<int32_t>(part.tokens.size()) + depth;
      longer.push_back({part.sequence, pos, {&guess, 1}, std::span(states).subspan(i * d, d)});
      of_longer.push_back(chain[i]);
    }
    next = std::move(longer);
    chain = std::move(of_longer);
  }
  return Ok{};
}

// One batch, the longest chains first.
Status DraftPass::chain_on_device(std::span<const Part> parts) {
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return parts[a].n_guesses > parts[b].n_guesses; });
  Batch batch;
  in_.clear();
  for (const size_t i : order) {
    TRY(add(batch, parts[i], parts[i].n_guesses - 1));
    batch.logit_rows.push_back(batch.n_rows() - 1);
    batch.draft_depths.push_back(parts[i].n_guesses);
  }
  batch.draft_hidden = in_.data();
  batch.head_blocks = candidates_;
  std::vector<int32_t> chained(guesses_.size());
  Outputs outputs;
  outputs.guesses = chained;
  TRY(model_.executable().run(batch, outputs));
  auto from = chained.begin();
  for (const size_t i : order) {
    const auto to = guesses_.begin() + static_cast<std::ptrdiff_t>(first_guess_[i]);
    std::copy_n(from, parts[i].n_guesses, to);
    from += parts[i].n_guesses;
  }
  return Ok{};
}

}  // namespace chimere::engine
