#include "engine/best_tokens.h"

#include <algorithm>

namespace chimere::engine {
namespace {

// The first of the largest. Several at a time, as a vocabulary is long and a guess short.
int32_t best_of(const float* row, int32_t n) {
  constexpr int32_t kLanes = 16;
  float best = row[0];
  int32_t i = 0;
  if (n >= kLanes) {
    float lanes[kLanes];
    std::copy_n(row, kLanes, lanes);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int32_t j = 0; j < kLanes; ++j) lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
    }
    best = *std::max_element(lanes, lanes + kLanes);
  }
  for (; i < n; ++i) best = std::max(best, row[i]);
  const auto at = static_cast<int32_t>(std::find(row, row + n, best) - row);
  return at < n ? at : 0;  // nothing is a number
}

// Of the tokens of some blocks alone.
int32_t best_of_blocks(const float* row, int32_t n, std::span<const int32_t> blocks) {
  int32_t best = blocks.front() * kHeadBlock;
  for (const int32_t block : blocks) {
    const int32_t first = block * kHeadBlock;
    const int32_t at = first + best_of(row + first, std::min(kHeadBlock, n - first));
    if (row[at] > row[best]) best = at;
  }
  return best;
}

}  // namespace

Status BestTokens::run(const Batch& batch, bool draws, float* hidden) {
  const size_t n = batch.logit_rows.size();
  const auto v = static_cast<size_t>(model_.n_vocab());
  best_.resize(n);
  Outputs outputs;
  outputs.hidden = hidden;
  if (draws && n > 0) return run_drawn(batch, outputs);
  if (n > 0) {
    logits_.resize(n * v);
    outputs.logits = logits_.data();
  }
  TRY(model_.executable().run(batch, outputs));
  for (size_t i = 0; i < n; ++i) {
    const float* row = logits_.data() + i * v;
    const int32_t n_vocab = model_.n_vocab();
    best_[i] = batch.head_blocks.empty() ? best_of(row, n_vocab) : best_of_blocks(row, n_vocab, batch.head_blocks);
  }
  return Ok{};
}

Status BestTokens::run_drawn(const Batch& batch, Outputs outputs) {
  SamplingParams greedy;
  greedy.temperature = 0;
  const SamplerState nothing_said;
  const std::vector<Draw> draws(best_.size(), {&greedy, &nothing_said, {}, 0});
  std::vector<Result<Sampled>> drawn(best_.size(), Sampled{});
  outputs.draws = draws;
  outputs.drawn = drawn;
  TRY(model_.executable().run(batch, outputs));
  for (size_t i = 0; i < best_.size(); ++i) {
    if (!drawn[i]) return drawn[i].error();
    best_[i] = drawn[i]->id;
  }
  return Ok{};
}

}  // namespace chimere::engine
