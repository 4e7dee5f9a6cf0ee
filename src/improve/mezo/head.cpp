// head.cpp  Learning a low-rank change of the output head: logits = W h + B A h, with W h and h computed once.
//
// For a row with weight w, p = softmax(logits) and the row that it shall come to, t (one word, or what the model said
// before):  d logits = w (p - t),  dB = d logits (A h)^T,  dA = B^T d logits h^T.  Adam, in float32, on one thread, in one
// order: the same run gives the same bits.
#include <algorithm>
#include <cmath>

#include "improve/mezo/adapter_values.h"
#include "improve/mezo/checkpoint.h"
#include "improve/mezo/rows.h"
#include "improve/mezo/run_state.h"

namespace chimere::improve {
namespace {

constexpr int kSaveEvery = 500;  // steps; a step is a millisecond or few
constexpr float kBeta1 = 0.9f, kBeta2 = 0.99f, kTiny = 1e-8f;

// The rows of all answer tokens.
struct HeadData {
  size_t n = 0, d = 0, v = 0;
  std::vector<float> hidden, logits;  // [n, d], [n, v]
  std::vector<int32_t> target;        // [n]; kNone: it stays as it is
  std::vector<float> weight;          // [n]
  uint64_t tokens = 0;
};

Result<HeadData> compute_data(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                              const Adapter* start) {
  HeadData data;
  data.d = static_cast<size_t>(model.d_model());
  data.v = static_cast<size_t>(model.n_vocab());
  uint64_t n = 0;
  for (const Example& e : examples) n += e.tokens.size() - static_cast<size_t>(e.answer_from);
  const uint64_t bytes = n * (data.v + data.d) * sizeof(float);
  if (bytes > kMaxCachedBytes) {
    return Error{Code::exhausted, "the examples have " + std::to_string(n) +
                                      " answer tokens, whose logits would take " + std::to_string(bytes >> 20) +
                                      " MiB; expected at most " + std::to_string(kMaxCachedBytes >> 20)};
  }
  data.hidden.reserve(n * data.d);
  data.logits.reserve(n * data.v);
  AdapterSet set;
  if (start) set.uses.push_back({std::shared_ptr<const Adapter>(std::shared_ptr<void>(), start), 1.0f});
  std::vector<Reading> readings;
  for (const Example& e : examples) readings.push_back({&e, start ? &set : nullptr});
  TRY_ASSIGN(data.tokens, read_examples(model, readings, true, [&](const AnswerRow& row) {
               const Example& e = *readings[row.reading].example;
               data.hidden.insert(data.hidden.end(), row.hidden.begin(), row.hidden.end());
               data.logits.insert(data.logits.end(), row.logits.begin(), row.logits.end());
               data.target.push_back(e.is_kept ? kNone : e.tokens[row.at]);
               data.weight.push_back(e.weight * (e.is_kept ? options.keep : 1.0f));
             }));
  data.n = data.target.size();
  return Result<HeadData>{std::move(data)};
}

// Four chains, which the compiler may turn into vectors.
float dot(const float* a, const float* b, size_t n) {
  float sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  }
  float total = 0;
  for (; i < n; ++i) total += a[i] * b[i];
  for (const float s : sums) total += s;
  return total;
}

// to += f x
void add(float f, const float* x, size_t n, float* to) {
  for (size_t i = 0; i < n; ++i) to[i] += f * x[i];
}

// To softmax in place; returns log of the sum.
double softmax(std::vector<float>& row) {
  const float top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float& l : row) {
    l = std::exp(l - top);
    sum += l;
  }
  const auto factor = static_cast<float>(1 / sum);
  for (float& l : row) l *= factor;
  return std::log(sum) + top;
}

// A [rank, d] and B [rank, v], one behind the other, with the moments of Adam.
class HeadState {
 public:
  HeadState(const HeadData& data, const LowRank& start, const TrainOptions& options)
      : data_(data), options_(options), rank_(static_cast<size_t>(start.rank)), n_a_(start.a.size()) {
    values = start.a;
    values.insert(values.end(), start.b.begin(), start.b.end());
    first.resize(values.size());
    second.resize(values.size());
    gradient_.resize(values.size());
    // The logits that were computed have the start in them: what is learned is beside it.
    base_ = values;
    low_.resize(rank_);
    base_low_.resize(rank_);
    back_.resize(rank_);
  }

  // Logits of row i as the values are now.
  void logits_of(size_t i, std::vector<float>& to) {
    const float* h = data_.hidden.data() + i * data_.d;
    to.assign(data_.logits.begin() + static_cast<int64_t>(i * data_.v),
              data_.logits.begin() + static_cast<int64_t>((i + 1) * data_.v));
    for (size_t r = 0; r < rank_; ++r) {
      low_[r] = dot(values.data() + r * data_.d, h, data_.d);
      add(low_[r], values.data() + n_a_ + r * data_.v, data_.v, to.data());
    }
    if (!starts_somewhere_) return;
    for (size_t r = 0; r < rank_; ++r) {
      const float low = dot(base_.data() + r * data_.d, h, data_.d);
      add(-low, base_.data() + n_a_ + r * data_.v, data_.v, to.data());
    }
  }
  void starts_somewhere() { starts_somewhere_ = true; }

  // One step on these rows; returns their mean loss. When that is no number nothing changes.
  double step(std::span<const size_t> rows, double rate, int n_steps) {
    std::fill(gradient_.begin(), gradient_.end(), 0.0f);
    double loss = 0, weights = 0;
    for (const size_t i : rows) weights += data_.weight[i];
    for (const size_t i : rows) {
      logits_of(i, row_);
      const double total = softmax(row_);
      const float w = static_cast<float>(data_.weight[i] / weights);
      const float* before = data_.logits.data() + i * data_.v;
      if (data_.target[i] == kNone) {
        then_.assign(before, before + data_.v);
        softmax(then_);
        for (size_t k = 0; k < data_.v; ++k) {
          if (then_[k] > 1e-12f) loss += w * then_[k] * (std::log(then_[k]) - std::log(std::max(row_[k], 1e-30f)));
          row_[k] -= then_[k];
        }
      } else {
        const auto t = static_cast<size_t>(data_.target[i]);
        loss -= w * std::log(std::max<double>(row_[t], 1e-45));
        row_[t] -= 1;
        static_cast<void>(total);
      }
      const float* h = data_.hidden.data() + i * data_.d;
      for (size_t r = 0; r < rank_; ++r) {
        const float* b = values.data() + n_a_ + r * data_.v;
        back_[r] = w * dot(b, row_.data(), data_.v);
        add(w * low_[r], row_.data(), data_.v, gradient_.data() + n_a_ + r * data_.v);
        add(back_[r], h, data_.d, gradient_.data() + r * data_.d);
      }
    }
    if (!std::isfinite(loss)) return loss;
    const float fix1 = 1 - std::pow(kBeta1, static_cast<float>(n_steps)),
                fix2 = 1 - std::pow(kBeta2, static_cast<float>(n_steps));
    const auto size = static_cast<float>(rate);
    for (size_t k = 0; k < values.size(); ++k) {
      first[k] = kBeta1 * first[k] + (1 - kBeta1) * gradient_[k];
      second[k] = kBeta2 * second[k] + (1 - kBeta2) * gradient_[k] * gradient_[k];
      values[k] -= size * (first[k] / fix1 / (std::sqrt(second[k] / fix2) + kTiny) + options_.decay * values[k]);
    }
    return loss;
  }

  std::vector<float> values, first, second;

 private:
  const HeadData& data_;
  const TrainOptions& options_;
  const size_t rank_, n_a_;
  std::vector<float> gradient_, base_, low_, base_low_, back_, row_, then_;
  bool starts_somewhere_ = false;
};

MatrixId head_matrix(const Program& program) {
  for (const Op& any : program.trunk()) {
    if (const auto* o = std::get_if<op::LmHead>(&any)) return o->weight;
  }
  return kNone;
}

}  // namespace

Result<Trained> train_head(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                           uint64_t identity, const TrainProgress& progress) {
  TRY_ASSIGN(AdapterValues start, begin_values(model, options, "^output\\.weight$", true, true));
  const bool starts_somewhere = !options.start.empty();
  if (starts_somewhere) TRY(hold(model, *start.adapter));
  TRY_ASSIGN(const HeadData data,
             compute_data(model, examples, options, starts_somewhere ? start.adapter.get() : nullptr));
  LowRank& change = start.adapter->by_matrix[static_cast<size_t>(head_matrix(model.executable().program()))];
  HeadState state(data, change, options);
  if (starts_somewhere) state.starts_somewhere();

  Trained trained;
  TrainReport& report = trained.report;
  report.parameters = state.values.size();
  const size_t n = state.values.size();
  int done = 0;
  double seconds_before = 0;
  if (!options.checkpoint.empty()) {
    TRY_ASSIGN(const auto saved, load_state(options.checkpoint, identity, 3 * n));
    if (saved) {
      const auto from = saved->values.begin();
      state.values.assign(from, from + static_cast<int64_t>(n));
      state.first.assign(from + static_cast<int64_t>(n), from + static_cast<int64_t>(2 * n));
      state.second.assign(from + static_cast<int64_t>(2 * n), saved->values.end());
      done = report.resumed_at = saved->step;
      seconds_before = saved->seconds;
    }
  }
  const RunClock clock(seconds_before);
  const auto save = [&]() -> Status {
    if (options.checkpoint.empty()) return Ok{};
    SavedState saved{done, clock.seconds(), state.values};
    saved.values.insert(saved.values.end(), state.first.begin(), state.first.end());
    saved.values.insert(saved.values.end(), state.second.begin(), state.second.end());
    return save_state(options.checkpoint, identity, saved);
  };
  const auto finish = [&](bool is_finished) {
    report.is_finished = is_finished;
    report.seconds = clock.seconds();
    report.tokens = data.tokens;
  };

  Shuffle shuffle(options.seed, data.n);
  std::vector<size_t> rows;
  int skipped_in_a_row = 0;
  while (done < options.steps) {
    if (options.seconds > 0 && clock.seconds() >= options.seconds) {
      report.ran_out_of_time = true;
      break;
    }
    rows.clear();
    for (int i = 0; i < options.batch; ++i) {
      rows.push_back(shuffle(static_cast<uint64_t>(done) * options.batch + static_cast<uint64_t>(i)));
    }
    const double rate = options.learning_rate * scheduled(options.schedule, done, options.steps);
    const double loss = state.step(rows, rate, done + 1);
    ++done;
    skipped_in_a_row = std::isfinite(loss) ? 0 : skipped_in_a_row + 1;
    report.skipped += std::isfinite(loss) ? 0 : 1;
    if (skipped_in_a_row >= 20) {
      return Error{Code::invalid_argument, "the loss was no number in 20 steps in a row: learning rate " +
                                               std::to_string(options.learning_rate) + " is too large"};
    }
    report.curve.push_back({done, options.steps, loss, clock.seconds(), data.tokens});
    if (done % kSaveEvery == 0) TRY(save());
    if (progress && !progress(report.curve.back())) {
      TRY(save());
      finish(false);
      return Result<Trained>{std::move(trained)};
    }
  }
  std::copy_n(state.values.begin(), change.a.size(), change.a.begin());
  std::copy(state.values.begin() + static_cast<int64_t>(change.a.size()), state.values.end(), change.b.begin());
  trained.adapter = start.adapter;
  finish(true);
  return Result<Trained>{std::move(trained)};
}

}  // namespace chimere::improve
