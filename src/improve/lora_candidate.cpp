// lora_candidate.cpp  A LoRA adapter from accepted answers, learned inside the engine (mezo/trainer.h). What guards
// general ability is read, too, as what shall stay as it is.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "improve/content_hash.h"
#include "improve/job_state.h"
#include "improve/mezo/adapter_values.h"
#include "improve/mezo/own_text.h"
#include "improve/mezo/rows.h"
#include "improve/mezo/trainer.h"
#include "models/adapter_file.h"

namespace chimere::improve {
namespace {

constexpr size_t kMaxLearnedTokens = 1'024;  // of one example: longer ones are left out
constexpr std::array kStrengths = {1.0f, 0.8f, 0.65f, 0.5f, 0.35f, 0.2f};
constexpr int kTriedText = 1'024;  // tokens
constexpr double kShareOfMargin = 0.5;

Result<std::optional<Example>> learned_example(Workbench& bench, const Asked& asked, const Wanted& wanted,
                                               const std::string& owner) {
  Example example;
  TRY_ASSIGN(example.tokens, bench.prompt_of(asked, owner, {}));
  example.answer_from = static_cast<int32_t>(example.tokens.size());
  TRY_ASSIGN(const std::vector<int32_t> ids, bench.answer_ids(wanted, asked.tools));
  example.tokens.insert(example.tokens.end(), ids.begin(), ids.end());
  if (ids.empty() || example.tokens.size() > kMaxLearnedTokens) return std::optional<Example>{};
  return std::optional<Example>{std::move(example)};
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// What an adapter does to text that has nothing to do with what it learned, at several strengths.
struct Drift {
  float strength = 1;
  double divergence = 0;  // nats a token, from what the model says without it
};

// The strengths are tried on text of the model's own that no step has seen: what is kept by heart is no measure.
Result<std::vector<Drift>> drifts_of(Workbench& bench, const std::shared_ptr<const Adapter>& adapter, uint64_t seed) {
  TRY_ASSIGN(const std::vector<Example> texts, write_own_text(bench.model(), kTriedText, seed + 1));
  std::vector<Drift> drifts;
  std::vector<AdapterSet> sets;
  for (const float strength : kStrengths) {
    drifts.push_back({strength, 0});
    sets.emplace_back();
    sets.back().uses.push_back({adapter, strength});
  }
  double rows = 0;
  for (const Example& text : texts) {
    std::vector<Reading> readings{{&text, nullptr}};
    for (const AdapterSet& set : sets) readings.push_back({&text, &set});
    const auto v = static_cast<size_t>(bench.model().n_vocab());
    std::vector<std::vector<float>> logits(readings.size());
    TRY_ASSIGN(const uint64_t tokens, read_examples(bench.model(), readings, false, [&](const AnswerRow& row) {
                 std::vector<float>& mine = logits[row.reading];
                 mine.insert(mine.end(), row.logits.begin(), row.logits.end());
               }));
    static_cast<void>(tokens);
    for (size_t at = 0; at < logits[0].size(); at += v) {
      for (size_t i = 0; i < drifts.size(); ++i) {
        drifts[i].divergence +=
            divergence(std::span(logits[0]).subspan(at, v), std::span(logits[i + 1]).subspan(at, v));
      }
      rows += 1;
    }
  }
  for (Drift& drift : drifts) drift.divergence /= rows;
  return Result<std::vector<Drift>>{std::move(drifts)};
}

// The strongest that leaves the rest where it is, or else the weakest: the proof has the last word.
Drift chosen(const std::vector<Drift>& drifts, double margin) {
  for (const Drift& drift : drifts) {
    if (drift.divergence <= kShareOfMargin * margin) return drift;
  }
  return drifts.back();
}

Status write_scaled(const Adapter& adapter, float strength, models::Model& model, const std::string& path) {
  Adapter scaled = adapter;
  for (LowRank& change : scaled.by_matrix) {
    for (float& value : change.b) value *= strength;
  }
  return write_adapter(scaled, model, path);
}

}  // namespace

Result<std::shared_ptr<const AdapterSet>> adapter_set(Workbench& bench, const std::string& path,
                                                      const std::string& name) {
  auto set = std::make_shared<AdapterSet>();
  TRY_ASSIGN(auto adapter, models::load_adapter(path, name, bench.model()));
  set->uses.push_back({std::move(adapter), 1});
  return std::shared_ptr<const AdapterSet>(std::move(set));
}

Result<Candidate> make_lora(JobState& state) {
  Workbench& bench = *state.bench;
  const std::string& owner = state.run.slot.owner;
  Candidate candidate;
  candidate.name = "lora";
  TRY_ASSIGN(candidate.before, arm_in_use(state.tools.store, bench, owner));
  std::vector<Example> examples;
  for (const TaughtAnswer& taught : state.examples.train) {
    TRY_ASSIGN(auto example, learned_example(bench, taught.asked, taught.wanted, owner));
    if (example) examples.push_back(std::move(*example));
  }
  const size_t n_learned = examples.size();
  // Every second one: the others guard alone, so that what is kept by heart is not taken for ability.
  for (size_t i = 0; i < state.tools.guard.size(); i += 2) {
    const GuardPair& pair = state.tools.guard[i];
    TRY_ASSIGN(auto example, learned_example(bench, guard_question(pair), guard_answer(pair), {}));
    if (!example) continue;
    example->is_kept = true;
    examples.push_back(std::move(*example));
  }
  TrainOptions options;
  options.seed = state.tools.rules.seed;
  const std::string mine = content_hash(state.run.input).substr(0, 32);
  options.checkpoint = state.tools.store.work_file(mine + ".train");
  const std::string out = state.tools.store.work_file(mine + ".gguf");
  Status stopped = Ok{};
  const auto progress = [&](const TrainStep& step) {
    state.run.total =
        std::max<uint64_t>(state.run.total, state.run.done + static_cast<uint64_t>(step.steps - step.step));
    stopped = state.step();
    return static_cast<bool>(stopped);
  };
  TRY_ASSIGN(const TrainReport report, train_adapter(bench.model(), examples, options, out, progress));
  if (!report.is_finished && !stopped) return stopped.error();
  TRY_ASSIGN(const auto learned, models::load_adapter(out, "learned", bench.model()));
  TRY_ASSIGN(const auto drifts, drifts_of(bench, learned, options.seed));
  const Drift strength = chosen(drifts, state.tools.rules.guard_margin);
  TRY(write_scaled(*learned, strength.strength, bench.model(), out));
  candidate.bytes = bytes_of_file(out);
  TRY_ASSIGN(auto adapters, adapter_set(bench, out, "candidate"));
  candidate.after = candidate.before;
  candidate.after.adapters = std::move(adapters);
  char losses[160];
  std::snprintf(losses, sizeof losses, "%.3f to %.3f; at a strength of %.2f other text drifts by %.4f nats a token",
                report.loss_before, report.loss_after, static_cast<double>(strength.strength), strength.divergence);
  candidate.about = "an adapter of " + std::to_string(report.parameters) + " numbers from " +
                    std::to_string(n_learned) + " accepted answers; their loss went from " + losses;
  std::error_code error;
  std::filesystem::remove(out, error);
  std::filesystem::remove(options.checkpoint, error);
  return Result<Candidate>{std::move(candidate)};
}

}  // namespace chimere::improve
