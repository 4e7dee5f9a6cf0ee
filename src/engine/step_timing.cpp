#include "engine/step_timing.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "cache/sequence.h"
#include "engine/block_pass.h"
#include "engine/draft_pass.h"
#include "engine/work_clock.h"

namespace chimere::engine {
namespace {

using speculative::StepCosts;
using TimingClock = std::chrono::steady_clock;

constexpr int kRowsTimed[] = {1, 2, 4, 8, 16};
// The fastest of so many counts: what is slower was interrupted. On a busy machine five rounds were too few: two rows
// were timed as 1.1 to 1.7 times one, and that alone decided whether anything was drafted. Small models have more.
constexpr int kRounds = 5, kMostRounds = 48;
// After this no more rounds are begun, and of a round that is not the first no more steps; of more than kRounds after that.
constexpr double kEnoughSeconds = 0.25, kMoreSeconds = 0.15;

int most_rows(models::Model& model) { return std::min(kDecodeTokens, model.executable().max_rows()); }

double elapsed_since(TimingClock::time_point begin) {
  return std::chrono::duration<double>(TimingClock::now() - begin).count();
}

// Seconds of `run` for each number of rows, or of what else there are `most` of.
template <class Run>
Result<std::vector<StepCosts::Point>> time_points(int most, Run&& run) {
  std::vector<StepCosts::Point> points;
  for (const int rows : kRowsTimed) {
    if (rows <= most) points.push_back({rows, std::numeric_limits<double>::infinity()});
  }
  const auto begin = TimingClock::now();
  TRY(run(1));  // the first one also touches memory
  for (int round = 0; round < kMostRounds; ++round) {
    const double limit = round < kRounds ? kEnoughSeconds : kMoreSeconds;
    if (round > 0 && elapsed_since(begin) >= limit) break;
    for (StepCosts::Point& point : points) {
      if (round > 0 && elapsed_since(begin) > kEnoughSeconds) break;
      TRY_ASSIGN(const double seconds, run(point.rows));
      point.seconds = std::min(point.seconds, seconds);
    }
  }
  return Result<std::vector<StepCosts::Point>>{std::move(points)};
}

class StepTimer {
 public:
  StepTimer(models::Model& model, Sequence sequence, bool draws)
      : model_(model), clock_(model), sequence_(std::move(sequence)), draws_(draws) {}

  Result<StepCosts> run() {
    TRY_ASSIGN(auto points, time_points(most_rows(model_), [this](int rows) { return step(rows); }));
    return StepCosts(std::move(points), open_, back_);
  }

 private:
  // Every draft is taken back but for its first token, as one that failed at once.
  Result<double> step(int rows) {
    const size_t v = model_.n_vocab();
    Batch batch;
    for (int i = 0; i < rows; ++i) {
      batch.tokens.push_back(static_cast<int32_t>((next_ = next_ * 48271 % 2147483647) % v));
      batch.logit_rows.push_back(i);
    }
    logits_.resize(draws_ ? 0 : v * static_cast<size_t>(rows));
    const std::vector<Draw> draws(draws_ ? static_cast<size_t>(rows) : 0, {&usual_, &nothing_said_, {}, 0});
    std::vector<Result<Sampled>> drawn(draws.size(), Sampled{});
    const double begin = clock_.seconds();
    TRY_ASSIGN(Slice slice, rows > 1 ? sequence_.begin_draft(rows) : sequence_.begin(rows));
    const double begun = clock_.seconds();
    batch.slices.push_back(slice);
    Outputs outputs;
    if (!draws_) outputs.logits = logits_.data();
    outputs.draws = draws;
    outputs.drawn = drawn;
    TRY(model_.executable().run(batch, outputs));
    TRY(sequence_.commit(rows));
    const double seconds = std::max(clock_.since(begun), 1e-9);
    if (rows == 1) return seconds;
    const double end = clock_.seconds();
    TRY(sequence_.rollback(rows - 1));
    back_ = std::min(back_, clock_.since(end));
    open_ = std::min(open_, begun - begin);
    return seconds;
  }

  models::Model& model_;
  const WorkClock clock_;
  Sequence sequence_;
  const bool draws_;
  const SamplingParams usual_;
  const SamplerState nothing_said_;
  std::vector<float> logits_;
  uint64_t next_ = 20;
  // None costs as much as this.
  double open_ = 1, back_ = 1;
};

}  // namespace

Result<StepCosts> time_steps(models::Model& model, bool draws) {
  TRY(model.require_logits());
  TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
  return StepTimer(model, std::move(sequence), draws).run();
}

Result<StepCosts> time_draft_passes(models::Model& model, std::span<const int32_t> candidates) {
  TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
  const WorkClock clock(model);
  DraftPass pass(model);
  pass.set_candidates(candidates);
  const std::vector<float> hidden(static_cast<size_t>(model.d_model()) * kDecodeTokens, 0.5f);
  std::vector<int32_t> tokens;
  for (int i = 0; i < kDecodeTokens; ++i) tokens.push_back(i * 7919 % model.n_vocab());
  const auto run = [&](int rows) -> Result<double> {
    const auto n = static_cast<size_t>(rows);
    const auto states = std::span(hidden).first(n * static_cast<size_t>(model.d_model()));
    const DraftPass::Part part{&sequence, 0, std::span(tokens).first(n), states, rows};
    const double begin = clock.seconds();
    TRY(pass.run({&part, 1}));
    return std::max(clock.since(begin), 1e-9);
  };
  TRY_ASSIGN(auto points, time_points(most_rows(model), run));
  return StepCosts(std::move(points));
}

Result<BlockCosts> time_block_passes(models::Model& model) {
  constexpr int kBlocks = 4;
  const int n_rows = model.draft_blocks()->n_rows;
  const int most = std::min(kBlocks, model.executable().max_rows() / n_rows);
  const WorkClock clock(model);
  BlockPass pass(model);
  std::vector<Sequence> sequences;
  std::vector<BlockPass::Part> parts;
  sequences.reserve(kBlocks);
  for (int i = 0; i < most; ++i) {
    TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
    sequences.push_back(std::move(sequence));
    parts.push_back({&sequences.back(), i * 7919 % model.n_vocab(), 1});
  }
  const auto run = [&](int blocks) -> Result<double> {
    const double begin = clock.seconds();
    TRY(pass.run(std::span(parts).first(static_cast<size_t>(blocks))));
    return std::max(clock.since(begin), 1e-9);
  };
  TRY_ASSIGN(auto points, time_points(most, run));
  if (n_rows == 2) return BlockCosts{StepCosts(std::move(points)), 0};
  const double with_one = points.front().seconds;
  parts.front().n_guesses = n_rows - 1;
  TRY_ASSIGN(const auto all, time_points(1, run));
  const double guess = std::max(0.0, all.front().seconds - with_one) / (n_rows - 2);
  return BlockCosts{StepCosts(std::move(points)), guess};
}

}  // namespace chimere::engine
