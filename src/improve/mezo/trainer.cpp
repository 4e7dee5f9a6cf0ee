#include "improve/mezo/trainer.h"

#include <cmath>
#include <cstdio>
#include <memory>

#include "backend/adapter.h"
#include "improve/mezo/adapter_values.h"
#include "improve/mezo/rows.h"
#include "improve/mezo/run_state.h"
#include "models/adapter_file.h"

namespace chimere::improve {
namespace {

constexpr int kMaxSteps = 1'000'000;
constexpr int kMaxDirections = 64;

// What was found to learn fastest on chimere-nano (docs/improve-lora.md).
TrainOptions with_defaults(TrainOptions o) {
  const bool is_head = o.method == TrainMethod::head;
  if (o.steps == 0) o.steps = is_head ? 400 : 600;
  if (o.batch == 0) o.batch = is_head ? 64 : 8;
  if (o.learning_rate == 0) o.learning_rate = is_head ? 5e-3f : 2e-2f;
  if (o.eps == 0) o.eps = 1e-2f;
  if (o.targets.empty()) o.targets = "attn|ssm|ffn";
  return o;
}

Status check_options(const TrainOptions& o) {
  const auto wrong = [](const char* name, const char* expected, double found) {
    return Error{Code::invalid_argument,
                 std::string(name) + ": expected " + expected + ", found " + std::to_string(found)};
  };
  if (o.steps < 1 || o.steps > kMaxSteps) return wrong("steps", "1 to 1000000", o.steps);
  if (o.batch < 1 || o.batch > 4096) return wrong("batch", "1 to 4096", o.batch);
  if (o.directions < 1 || o.directions > kMaxDirections) return wrong("directions", "1 to 64", o.directions);
  if (!(o.learning_rate > 0) || !(o.learning_rate <= 100)) return wrong("learning rate", "0 to 100", o.learning_rate);
  if (!(o.eps > 0) || !(o.eps <= 10)) return wrong("eps", "0 to 10", o.eps);
  if (!(o.alpha > 0) || !(o.alpha <= 4096)) return wrong("alpha", "0 to 4096", o.alpha);
  if (!(o.momentum >= 0) || !(o.momentum < 1)) return wrong("momentum", "0 to below 1", o.momentum);
  if (!(o.decay >= 0) || !(o.decay <= 1)) return wrong("decay", "0 to 1", o.decay);
  if (!(o.keep >= 0) || !(o.keep <= 1000)) return wrong("keep", "0 to 1000", o.keep);
  if (!(o.seconds >= 0)) return wrong("seconds", "0 or more", o.seconds);
  return Ok{};
}

struct Both {
  double learned = 0, kept = 0;
};

// Losses with and without the adapter, in one reading.
Status compare(models::Model& model, std::span<const Example> examples, Adapter& adapter, TrainReport& report) {
  TRY(hold(model, adapter));
  AdapterSet set;
  set.uses.push_back({std::shared_ptr<const Adapter>(std::shared_ptr<void>(), &adapter), 1.0f});
  double before = 0, after = 0, learned = 0, divergences = 0, kept = 0;
  for (const Example& e : examples) {
    const Reading two[] = {{&e, nullptr}, {&e, &set}};
    std::vector<float> plain;
    size_t next = 0;
    TRY_ASSIGN(const uint64_t tokens, read_examples(model, two, false, [&](const AnswerRow& row) {
                 const double loss = log_sum(row.logits) - row.logits[static_cast<size_t>(e.tokens[row.at])];
                 if (row.reading == 0) {
                   if (e.is_kept) plain.insert(plain.end(), row.logits.begin(), row.logits.end());
                   if (!e.is_kept) before += e.weight * loss;
                   return;
                 }
                 if (e.is_kept) {
                   divergences += divergence(std::span(plain).subspan(next, row.logits.size()), row.logits);
                   next += row.logits.size();
                   kept += 1;
                 } else {
                   after += e.weight * loss;
                   learned += e.weight;
                 }
               }));
    report.tokens += tokens;
  }
  report.loss_before = before / learned;
  report.loss_after = after / learned;
  report.kept_divergence = kept > 0 ? divergences / kept : 0;
  return Ok{};
}

}  // namespace

Result<TrainReport> train_adapter(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                                  const std::string& out, const TrainProgress& progress) {
  TRY(model.require_logits());
  const TrainOptions complete = with_defaults(options);
  TRY(check_options(complete));
  TRY(check_examples(model, examples));
  const uint64_t identity = run_identity(model, examples, complete);
  const auto train = complete.method == TrainMethod::head ? train_head : train_mezo;
  TRY_ASSIGN(Trained trained, train(model, examples, complete, identity, progress));
  if (!trained.adapter) return Result<TrainReport>{std::move(trained.report)};
  trained.adapter->name = complete.method == TrainMethod::head ? "head" : "mezo";
  TRY(compare(model, examples, *trained.adapter, trained.report));
  TRY(write_adapter(*trained.adapter, model, out));
  if (!complete.checkpoint.empty()) std::remove(complete.checkpoint.c_str());
  return Result<TrainReport>{std::move(trained.report)};
}

Result<ExampleScore> score_examples(models::Model& model, std::span<const Example> examples,
                                    const std::string& adapter) {
  TRY(check_examples(model, examples));
  AdapterSet set;
  if (!adapter.empty()) {
    TRY_ASSIGN(auto loaded, models::load_adapter(adapter, "scored", model));
    set.uses.push_back({std::move(loaded), 1.0f});
  }
  std::vector<Reading> readings;
  for (const Example& e : examples) readings.push_back({&e, set.uses.empty() ? nullptr : &set});
  ExampleScore score;
  TRY_ASSIGN(const uint64_t read, read_examples(model, readings, false, [&](const AnswerRow& row) {
               const auto target = static_cast<size_t>(examples[row.reading].tokens[row.at]);
               score.loss += log_sum(row.logits) - row.logits[target];
               const auto best = std::max_element(row.logits.begin(), row.logits.end()) - row.logits.begin();
               score.accuracy += static_cast<size_t>(best) == target ? 1 : 0;
               ++score.tokens;
             }));
  static_cast<void>(read);
  score.loss /= static_cast<double>(score.tokens);
  score.accuracy /= static_cast<double>(score.tokens);
  return score;
}

}  // namespace chimere::improve
