#include "engine/step_timing.h"

#include <algorithm>
#include <utility>

#include "cache/sequence.h"
#include "engine/block_pass.h"
#include "engine/draft_pass.h"
#include "engine/work_clock.h"

namespace chimere::engine {
namespace {

using speculative::StepCosts;

constexpr int kRowsTimed[] = {1, 2, 4, 8, 16};
// Small models have more rounds: on a busy machine five are too few.
constexpr int kRounds = 5, kMostRounds = 8;
// Of the clock that steps are timed with. After this no more rounds are begun, and of a round that is not the first no
// more steps; of more than kRounds after that.
constexpr double kEnoughSeconds = 0.25, kMoreSeconds = 0.2;
// Steps of a number of rows come in a row, and the first ones do not count where they are short: a small model stays in
// the caches from one step of an answer to the next, but a step of 16 rows leaves other experts there than a step of one
// needs. One row behind sixteen took 1.6 times as long as one behind one, and two rows seemed to be almost free.
constexpr int kInARow = 8;
constexpr double kInARowSeconds = 2e-3;

int most_rows(models::Model& model) { return std::min(kDecodeTokens, model.executable().max_rows()); }

// What a quarter is shorter than: some are interrupted, by programs that take the caches.
double usual(std::vector<double>& seconds) {
  if (seconds.empty()) return 0;
  const auto at = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 4);
  std::nth_element(seconds.begin(), at, seconds.end());
  return *at;
}

// Seconds of `run` for each number of rows, or of what else there are `most` of.
template <class Run>
Result<std::vector<StepCosts::Point>> time_points(const WorkClock& clock, int most, const InAHurry& in_a_hurry,
                                                  Run&& run) {
  std::vector<int> rows_timed;
  for (const int rows : kRowsTimed) {
    if (rows <= most) rows_timed.push_back(rows);
  }
  std::vector<std::vector<double>> seconds(rows_timed.size());
  const double begin = clock.seconds();
  TRY(run(1));  // the first one also touches memory
  for (int round = 0; round < kMostRounds; ++round) {
    const double limit = round < kRounds ? kEnoughSeconds : kMoreSeconds;
    if (round > 0 && (clock.since(begin) >= limit || in_a_hurry())) break;
    for (size_t i = 0; i < rows_timed.size(); ++i) {
      if (round > 0 && (clock.since(begin) > kEnoughSeconds || in_a_hurry())) break;
      const auto in_a_row = [&](int least, std::vector<double>& to) -> Status {
        double sum = 0;
        for (int n = 0; n < least || (n < kInARow && sum < kInARowSeconds); ++n) {
          TRY_ASSIGN(const double taken, run(rows_timed[i]));
          to.push_back(taken);
          sum += taken;
        }
        return Ok{};
      };
      std::vector<double> first;
      TRY(in_a_row(1, first));
      if (first.front() >= kInARowSeconds) {
        seconds[i].push_back(first.front());
      } else {
        TRY(in_a_row(2, seconds[i]));
      }
    }
  }
  std::vector<StepCosts::Point> points;
  for (size_t i = 0; i < rows_timed.size(); ++i) points.push_back({rows_timed[i], usual(seconds[i])});
  return Result<std::vector<StepCosts::Point>>{std::move(points)};
}

// A step of the model before each pass that is timed, as passes happen between steps: its weights and states are in the
// caches, then, and those of the pass are where such a step leaves them. Nothing is kept of it.
class StepBefore {
 public:
  StepBefore(models::Model& model, Sequence sequence) : model_(model), sequence_(std::move(sequence)) {
    logits_.resize(static_cast<size_t>(model.n_vocab()));
  }

  Status run() {
    Batch batch;
    batch.tokens = {0};
    batch.logit_rows = {0};
    TRY_ASSIGN(const Slice slice, sequence_.begin(1));
    batch.slices = {slice};
    Outputs outputs;
    outputs.logits = logits_.data();
    return model_.executable().run(batch, outputs);
  }

 private:
  models::Model& model_;
  Sequence sequence_;
  std::vector<float> logits_;
};

Result<StepBefore> step_before(models::Model& model) {
  TRY(model.require_logits());
  TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
  return StepBefore(model, std::move(sequence));
}

class StepTimer {
 public:
  StepTimer(models::Model& model, Sequence sequence, bool draws)
      : model_(model), clock_(model), sequence_(std::move(sequence)), draws_(draws) {}

  Result<StepCosts> run(const InAHurry& in_a_hurry) {
    const auto timed = [this](int rows) { return step(rows); };
    TRY_ASSIGN(auto points, time_points(clock_, most_rows(model_), in_a_hurry, timed));
    return StepCosts(std::move(points), usual(open_), usual(back_));
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
    TRY_ASSIGN(Slice slice, rows > 1 ? sequence_.begin_draft(rows, true) : sequence_.begin(rows));
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
    back_.push_back(clock_.since(end));
    open_.push_back(begun - begin);
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
  std::vector<double> open_, back_;
};

}  // namespace

Result<StepCosts> time_steps(models::Model& model, bool draws, const InAHurry& in_a_hurry) {
  TRY(model.require_logits());
  TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
  return StepTimer(model, std::move(sequence), draws).run(in_a_hurry);
}

Result<StepCosts> time_draft_passes(models::Model& model, std::span<const int32_t> candidates,
                                    const InAHurry& in_a_hurry) {
  TRY_ASSIGN(Sequence sequence, Sequence::create(model.executable()));
  TRY_ASSIGN(StepBefore before, step_before(model));
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
    TRY(before.run());
    const double begin = clock.seconds();
    TRY(pass.run({&part, 1}));
    return std::max(clock.since(begin), 1e-9);
  };
  TRY_ASSIGN(auto points, time_points(clock, most_rows(model), in_a_hurry, run));
  return StepCosts(std::move(points));
}

Result<BlockCosts> time_block_passes(models::Model& model, const InAHurry& in_a_hurry) {
  constexpr int kBlocks = 4;
  const int n_rows = model.draft_blocks()->n_rows;
  const int most = std::min(kBlocks, model.executable().max_rows() / n_rows);
  TRY_ASSIGN(StepBefore before, step_before(model));
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
    TRY(before.run());
    const double begin = clock.seconds();
    TRY(pass.run(std::span(parts).first(static_cast<size_t>(blocks))));
    return std::max(clock.since(begin), 1e-9);
  };
  TRY_ASSIGN(auto points, time_points(clock, most, in_a_hurry, run));
  if (n_rows == 2) return BlockCosts{StepCosts(std::move(points)), 0};
  const double with_one = points.front().seconds;
  parts.front().n_guesses = n_rows - 1;
  TRY_ASSIGN(const auto all, time_points(clock, 1, in_a_hurry, run));
  const double guess = std::max(0.0, all.front().seconds - with_one) / (n_rows - 2);
  return BlockCosts{StepCosts(std::move(points)), guess};
}

}  // namespace chimere::engine
