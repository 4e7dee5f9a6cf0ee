// drawing_device_for_test.h  The CPU backend as a device that draws tokens itself and chains drafts, as a card does: the
// engine's side of that is then tested at the speed of the CPU.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "sampling/sampler.h"
#include "sampling/score_row.h"

namespace chimere::engine {

class DrawingDevice final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(Program program, const LoadOptions& options) {
    TRY_ASSIGN(auto inner, cpu::compile(std::move(program), options));
    return std::unique_ptr<Executable>(new DrawingDevice(std::move(inner)));
  }
  // Logit rows that were given away, of all devices: what a card would have to bring to the host.
  static inline std::atomic<int64_t> n_rows_given = 0;

  Status run(const Batch& batch, const Outputs& outputs) override {
    if (!batch.draft_depths.empty()) return run_chains(batch, outputs);
    if (outputs.draws.empty()) return inner_->run(batch, outputs);
    const auto v = static_cast<size_t>(program().n_vocab);
    std::vector<float> logits(batch.logit_rows.size() * v, kNoScore);
    Outputs of_inner = outputs;
    of_inner.logits = logits.data();
    of_inner.draws = {};
    of_inner.drawn = {};
    TRY(inner_->run(batch, of_inner));
    for (size_t i = 0; i < outputs.draws.size(); ++i) {
      const Draw& draw = outputs.draws[i];
      const auto row = std::span(logits).subspan(i * v, v);
      if (!draw.params) {
        ++n_rows_given;
        std::copy(row.begin(), row.end(), outputs.logits + i * v);
        continue;
      }
      SamplerState state = *draw.state;
      for (const int32_t id : draw.ahead) state.accept(id);
      outputs.drawn[i] = sampler_->sample(row, *draw.params, state, draw.inputs, draw.position);
    }
    return Ok{};
  }
  Result<bool> prepare_draws(std::span<const int32_t> suppressed) override {
    sampler_.emplace(program().n_vocab, suppressed);
    return true;
  }
  bool chains_drafts() const override { return sampler_.has_value(); }
  bool prepare_head_blocks(int n_blocks) override { return inner_->prepare_head_blocks(n_blocks); }

  Status replay(float* recurrent, const float* recorded, int n_tokens) override {
    return inner_->replay(recurrent, recorded, n_tokens);
  }
  bool has_adapters() const override { return inner_->has_adapters(); }
  Result<std::shared_ptr<const void>> hold_adapter(const Adapter& adapter) override {
    return inner_->hold_adapter(adapter);
  }
  const Program& program() const override { return inner_->program(); }
  const StateLayout& layout() const override { return inner_->layout(); }
  StateMemory& memory() override { return inner_->memory(); }
  int max_rows() const override { return inner_->max_rows(); }
  int prefill_rows() const override { return inner_->prefill_rows(); }
  uint64_t weight_bytes() const override { return inner_->weight_bytes(); }
  uint64_t scratch_bytes() const override { return inner_->scratch_bytes(); }

 private:
  explicit DrawingDevice(std::unique_ptr<Executable> inner) : inner_(std::move(inner)) {}

  Status run_chains(const Batch& batch, const Outputs& outputs) {
    const auto v = static_cast<size_t>(program().n_vocab), d = static_cast<size_t>(program().d_model);
    SamplingParams greedy;
    greedy.temperature = 0;
    Batch pass = batch;
    pass.draft_depths.clear();
    std::vector<float> states, hidden, logits;
    for (int32_t depth = 0; !pass.slices.empty(); ++depth) {
      const size_t n = pass.slices.size();
      hidden.resize(n * d);
      logits.assign(n * v, kNoScore);
      TRY(inner_->run(pass, {.logits = logits.data(), .hidden = hidden.data()}));
      states = hidden;
      Batch next;
      size_t to = 0;
      for (size_t i = 0; i < n; to += static_cast<size_t>(batch.draft_depths[i++])) {
        TRY_ASSIGN(const Sampled best, sampler_->sample(std::span(logits).subspan(i * v, v), greedy, {}, {}, 0));
        outputs.guesses[to + static_cast<size_t>(depth)] = best.id;
        if (depth + 1 >= batch.draft_depths[i]) continue;
        Slice slice = pass.slices[i];
        slice.pos += slice.n_tokens;
        slice.n_tokens = 1;
        slice.first_row = next.n_rows();
        next.logit_rows.push_back(next.n_rows());
        next.tokens.push_back(best.id);
        next.slices.push_back(slice);
      }
      next.draft_hidden = states.data();
      next.head_blocks = batch.head_blocks;
      pass = std::move(next);
    }
    return Ok{};
  }

  std::unique_ptr<Executable> inner_;
  std::optional<Sampler> sampler_;
};

}  // namespace chimere::engine
