// mezo.cpp  Learning from pairs of forward passes (SPSA).
//
// z has a sign for each value, from Philox(seed, step): its variance is the least that a direction can have, 128 of them
// are one call, and every machine draws the same. With signs, Adam's division by the root of the mean square is one number
// for all values: a step is  theta -= rate * reach * m / rms(g),  m the momentum of g z,  g the slope along z.
// `reach` brings A (small) and B (which begins at zero) to their scales.
#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/philox.h"
#include "improve/mezo/adapter_values.h"
#include "improve/mezo/checkpoint.h"
#include "improve/mezo/rows.h"
#include "improve/mezo/run_state.h"

namespace chimere::improve {
namespace {

constexpr int kMaxSkippedInARow = 20;
constexpr double kSquareMemory = 0.95;  // of the mean square of slopes
constexpr double kLargestSlope = 3;     // beside its root: one outlier is no direction

// sign(i) of z for the i-th value.
class Signs {
 public:
  Signs(uint64_t seed, uint64_t step) : seed_(hash_mix(seed + 0x5a)), step_(step) {}
  template <class F>
  void each(size_t n, F&& visit) const {
    for (size_t i = 0; i < n; i += 128) {
      const PhiloxWords words = philox(seed_, step_, i / 128);
      const size_t end = std::min(n, i + 128);
      for (size_t j = i; j < end; ++j) visit(j, (words[(j - i) / 32] >> ((j - i) % 32) & 1) != 0 ? 1.0f : -1.0f);
    }
  }

 private:
  uint64_t seed_, step_;
};

// Values, their momentum and the mean square of slopes: a function of the records so far and nothing else.
class Walk {
 public:
  Walk(const AdapterValues& start, const TrainOptions& options)
      : values(start.values), options_(options), momentum_(start.values.size(), 0.0f), reach_(start.values.size()) {
    for (const TrainedPart& p : start.parts) std::fill_n(reach_.begin() + static_cast<int64_t>(p.first), p.n, p.reach);
  }

  void move_away(uint64_t pair, float by, std::vector<float>& to) const {
    to.resize(values.size());
    Signs(options_.seed, pair).each(values.size(), [&](size_t i, float sign) {
      to[i] = values[i] + by * sign * reach_[i];
    });
  }

  // Takes one record; after the last of a step it moves. False: its losses are no numbers, it counts as no slope.
  bool take(const StepRecord& record) {
    const auto pair = static_cast<uint64_t>(n_records_++);
    const double slope = (record.plus - record.minus) / (2.0 * options_.eps);
    const bool is_number = std::isfinite(slope);
    if (is_number) {
      square_ = n_slopes_++ == 0 ? slope * slope : kSquareMemory * square_ + (1 - kSquareMemory) * slope * slope;
      const double root = std::sqrt(square_) + 1e-12;
      const double share = std::clamp(slope / root, -kLargestSlope, kLargestSlope) / options_.directions;
      const auto gain = static_cast<float>((1 - options_.momentum) * share);
      Signs(options_.seed, pair).each(values.size(), [&](size_t i, float sign) { momentum_[i] += gain * sign; });
    }
    if (n_records_ % options_.directions == 0) {
      const int step = n_records_ / options_.directions - 1;
      const auto rate = static_cast<float>(options_.learning_rate * scheduled(options_.schedule, step, options_.steps));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] -= rate * reach_[i] * momentum_[i];
        momentum_[i] *= options_.momentum;
      }
    }
    return is_number;
  }

  std::vector<float> values;

 private:
  const TrainOptions& options_;
  std::vector<float> momentum_, reach_;
  double square_ = 0;
  int n_slopes_ = 0, n_records_ = 0;
};

// Weighted mean losses of the two ends of a pair, on the examples of a step.
class PairLoss {
 public:
  PairLoss(models::Model& model, std::span<const Example> examples, const TrainOptions& options)
      : model_(model), examples_(examples), options_(options), kept_(examples.size()) {}

  // What the model says today where it shall stay so.
  Result<uint64_t> remember() {
    std::vector<Reading> readings;
    std::vector<size_t> which;
    uint64_t rows = 0;
    for (size_t i = 0; i < examples_.size(); ++i) {
      if (!examples_[i].is_kept) continue;
      readings.push_back({&examples_[i]});
      which.push_back(i);
      rows += examples_[i].tokens.size() - static_cast<size_t>(examples_[i].answer_from);
    }
    if (rows * static_cast<uint64_t>(model_.n_vocab()) * sizeof(float) > kMaxCachedBytes) {
      return Error{Code::exhausted, "examples that are kept have " + std::to_string(rows) +
                                        " answer tokens, whose logits would take more than 2 GiB: keep fewer"};
    }
    if (readings.empty()) return uint64_t{0};
    return read_examples(model_, readings, false, [&](const AnswerRow& row) {
      std::vector<float>& to = kept_[which[row.reading]];
      to.insert(to.end(), row.logits.begin(), row.logits.end());
    });
  }

  struct Ends {
    double plus, minus;
    uint64_t tokens;
  };
  Result<Ends> measure(std::span<const size_t> chosen, const AdapterSet& plus, const AdapterSet& minus) {
    std::vector<Reading> readings;
    for (const size_t i : chosen) {
      readings.push_back({&examples_[i], &plus});
      readings.push_back({&examples_[i], &minus});
    }
    double sums[2] = {}, weights = 0;
    const auto n_vocab = static_cast<size_t>(model_.n_vocab());
    TRY_ASSIGN(const uint64_t tokens, read_examples(model_, readings, false, [&](const AnswerRow& row) {
                 const size_t i = chosen[row.reading / 2];
                 const Example& e = *readings[row.reading].example;
                 double loss;
                 if (e.is_kept) {
                   const size_t at = row.at - static_cast<size_t>(e.answer_from);
                   loss = options_.keep * divergence(std::span(kept_[i]).subspan(at * n_vocab, n_vocab), row.logits);
                 } else {
                   loss = log_sum(row.logits) - row.logits[static_cast<size_t>(e.tokens[row.at])];
                 }
                 sums[row.reading % 2] += e.weight * loss;
                 if (row.reading % 2 == 0) weights += e.weight;
               }));
    return Ends{sums[0] / weights, sums[1] / weights, tokens};
  }

 private:
  models::Model& model_;
  std::span<const Example> examples_;
  const TrainOptions& options_;
  std::vector<std::vector<float>> kept_;  // [examples][answer tokens, n_vocab]
};

// An adapter that moves, where the backend reads it.
struct Moving {
  std::shared_ptr<Adapter> adapter;
  AdapterSet set;

  static Result<Moving> create(models::Model& model, const Adapter& like) {
    Moving made;
    made.adapter = std::make_shared<Adapter>(like);
    TRY(hold(model, *made.adapter));
    made.set.uses.push_back({made.adapter, 1.0f});
    return Result<Moving>{std::move(made)};
  }
};

}  // namespace

Result<Trained> train_mezo(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                           uint64_t identity, const TrainProgress& progress) {
  TRY_ASSIGN(const AdapterValues start, begin_values(model, options, options.targets, options.train_a, true));
  TRY_ASSIGN(StepLog log, StepLog::open(options.checkpoint, identity));
  Trained trained;
  TrainReport& report = trained.report;
  report.parameters = start.values.size();
  Walk walk(start, options);
  const auto told = [&](size_t i, double loss) {
    const StepRecord& r = log.records()[i];
    report.curve.push_back({static_cast<int>(i + 1) / options.directions, options.steps, loss, r.seconds, r.tokens});
  };
  int skipped_in_a_row = 0;
  double loss = 0;
  const auto take = [&](size_t i) -> Status {
    const StepRecord& r = log.records()[i];
    if (i % static_cast<size_t>(options.directions) == 0) loss = 0;
    loss += (r.plus + r.minus) / 2 / options.directions;
    const bool is_number = walk.take(r);
    report.skipped += is_number ? 0 : 1;
    skipped_in_a_row = is_number ? 0 : skipped_in_a_row + 1;
    if (skipped_in_a_row >= kMaxSkippedInARow) {
      return Error{Code::invalid_argument, "the loss was no number in " + std::to_string(kMaxSkippedInARow) +
                                               " pairs in a row: learning rate " +
                                               std::to_string(options.learning_rate) + " or eps " +
                                               std::to_string(options.eps) + " is too large"};
    }
    if ((i + 1) % static_cast<size_t>(options.directions) == 0) told(i, loss);
    return Ok{};
  };
  const size_t n_before = log.records().size();
  for (size_t i = 0; i < n_before; ++i) TRY(take(i));
  report.resumed_at = static_cast<int>(n_before) / options.directions;

  PairLoss losses(model, examples, options);
  TRY_ASSIGN(const uint64_t remembered, losses.remember());
  TRY_ASSIGN(Moving plus, Moving::create(model, *start.adapter));
  TRY_ASSIGN(Moving minus, Moving::create(model, *start.adapter));
  const RunClock clock(n_before ? log.records().back().seconds : 0);
  uint64_t tokens = n_before ? log.records().back().tokens : remembered;
  Shuffle shuffle(options.seed, examples.size());
  std::vector<float> moved;
  std::vector<size_t> chosen;
  for (size_t pair = n_before; pair < static_cast<size_t>(options.steps) * options.directions; ++pair) {
    const size_t step = pair / static_cast<size_t>(options.directions);
    if (options.seconds > 0 && clock.seconds() >= options.seconds && pair % options.directions == 0) {
      report.ran_out_of_time = true;
      break;
    }
    chosen.clear();
    for (int i = 0; i < options.batch; ++i) chosen.push_back(shuffle(step * options.batch + i));
    walk.move_away(pair, options.eps, moved);
    start.fill(moved, *plus.adapter);
    walk.move_away(pair, -options.eps, moved);
    start.fill(moved, *minus.adapter);
    TRY(model.executable().refresh_adapter(*plus.adapter));
    TRY(model.executable().refresh_adapter(*minus.adapter));
    TRY_ASSIGN(const PairLoss::Ends ends, losses.measure(chosen, plus.set, minus.set));
    tokens += ends.tokens;
    TRY(log.append({ends.plus, ends.minus, clock.seconds(), tokens, 0}));
    TRY(take(pair));
    if ((pair + 1) % options.directions == 0 && progress && !progress(report.curve.back())) {
      report.seconds = clock.seconds();
      report.tokens = tokens;
      return Result<Trained>{std::move(trained)};
    }
  }
  start.fill(walk.values, *start.adapter);
  trained.adapter = start.adapter;
  report.is_finished = true;
  report.seconds = clock.seconds();
  report.tokens = tokens;
  return Result<Trained>{std::move(trained)};
}

}  // namespace chimere::improve
