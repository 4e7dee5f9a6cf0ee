#include "engine/best_tokens.h"

#include <algorithm>

namespace chimere::engine {

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
    const auto row = logits_.begin() + static_cast<std::ptrdiff_t>(i * v);
    best_[i] = static_cast<int32_t>(std::max_element(row, row + static_cast<std::ptrdiff_t>(v)) - row);
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
