#include "improve/mezo/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "backend/adapter.h"
#include "improve/mezo/adapter_values.h"
#include "improve/mezo/own_text.h"
#include "improve/mezo/rows.h"
#include "improve/mezo/run_state.h"
#include "models/adapter_file.h"

namespace chimere::improve {
namespace {

constexpr int kMaxSteps = 1'000'000;
constexpr int kMaxDirections = 64;

// What the last block adds to the residual. The fewer values there are, the more a pair of passes says of each: of all
// projections of chimere-nano, pairs learn four times as slowly.
std::string last_block_targets(const Program& program) {
  const std::vector<bool> adaptable = adaptable_matrices(program);
  std::string targets = "attn|ssm|ffn";
  for (size_t i = 0, last = 0; i < program.trunk_matrices().size(); ++i) {
    const std::string name = adapted_name(program, static_cast<MatrixId>(i));
    if (!adaptable[i] || name.rfind("blk.", 0) != 0) continue;
    const bool adds =
        name.ends_with("attn_output.weight") || name.ends_with("ssm_out.weight") || name.ends_with("ffn_down.weight");
    const size_t block = std::strtoul(name.c_str() + 4, nullptr, 10);
    if (!adds || block < last) continue;
    last = block;
    targets = "^blk\\." + std::to_string(block) + "\\.(attn_output|ssm_out|ffn_down)\\.weight$";
  }
  return targets;
}

// What was found to learn fastest on chimere-nano (docs/improve-lora.md).
TrainOptions with_defaults(TrainOptions o, const Program& program) {
  const bool is_head = o.method == TrainMethod::head;
  if (o.steps == 0) o.steps = is_head ? 400 : 600;
  if (o.batch == 0) o.batch = is_head ? 64 : 8;
  if (o.learning_rate == 0) o.learning_rate = is_head ? 5e-3f : 3e-2f;
  if (o.eps == 0) o.eps = 3e-2f;
  if (o.own_text < 0) o.own_text = is_head ? 3072 : 0;
  if (o.targets.empty()) o.targets = last_block_targets(program);
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
  if (o.own_text > kMaxOwnText) return wrong("own text", "at most 65536 tokens", o.own_text);
  if (!(o.seconds >= 0)) return wrong("seconds", "0 or more", o.seconds);
  return Ok{};
}

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
  const TrainOptions complete = with_defaults(options, model.executable().program());
  TRY(check_options(complete));
  TRY(check_examples(model, examples));
  const uint64_t identity = run_identity(model, examples, complete);
  TRY_ASSIGN(std::vector<Example> all, write_own_text(model, complete.own_text, complete.seed));
  all.insert(all.begin(), examples.begin(), examples.end());
  const auto train = complete.method == TrainMethod::head ? train_head : train_mezo;
  TRY_ASSIGN(Trained trained, train(model, all, complete, identity, progress));
  if (!trained.adapter) return Result<TrainReport>{std::move(trained.report)};
  trained.adapter->name = complete.method == TrainMethod::head ? "head" : "mezo";
  TRY(compare(model, all, *trained.adapter, trained.report));
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
  std::vector<bool> is_exact(examples.size(), true);
  TRY_ASSIGN(const uint64_t read, read_examples(model, readings, false, [&](const AnswerRow& row) {
               const auto target = static_cast<size_t>(examples[row.reading].tokens[row.at]);
               score.loss += log_sum(row.logits) - row.logits[target];
               const auto best = std::max_element(row.logits.begin(), row.logits.end()) - row.logits.begin();
               score.accuracy += static_cast<size_t>(best) == target ? 1 : 0;
               if (static_cast<size_t>(best) != target) is_exact[row.reading] = false;
               ++score.tokens;
             }));
  static_cast<void>(read);
  score.loss /= static_cast<double>(score.tokens);
  score.accuracy /= static_cast<double>(score.tokens);
  score.exact =
      static_cast<double>(std::count(is_exact.begin(), is_exact.end(), true)) / static_cast<double>(is_exact.size());
  return score;
}

}  // namespace chimere::improve
