// lora_candidate.cpp  A LoRA adapter from accepted answers, learned inside the engine (mezo/trainer.h). What guards
// general ability is read, too, as what shall stay as it is.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "improve/content_hash.h"
#include "improve/job_state.h"
#include "improve/mezo/trainer.h"

namespace chimere::improve {
namespace {

constexpr size_t kMaxLearnedTokens = 1'024;  // of one example: longer ones are left out

Result<std::optional<Example>> tokens_of(Workbench& bench, const std::vector<chat::Message>& messages,
                                         const std::string& answer, const std::string& owner) {
  Example example;
  TRY_ASSIGN(example.tokens, bench.prompt_of(messages, owner, {}));
  example.answer_from = static_cast<int32_t>(example.tokens.size());
  const std::vector<int32_t> ids = bench.answer_ids(answer);
  example.tokens.insert(example.tokens.end(), ids.begin(), ids.end());
  if (ids.empty() || example.tokens.size() > kMaxLearnedTokens) return std::optional<Example>{};
  return std::optional<Example>{std::move(example)};
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Result<std::shared_ptr<const AdapterSet>> adapter_set(Workbench& bench, const std::string& path,
                                                      const std::string& name) {
  TRY(bench.adapters().load(name, path, 1));
  return bench.adapters().set_of({{name, std::nullopt}});
}

Result<Candidate> make_lora(JobState& state) {
  Workbench& bench = *state.bench;
  const std::string& owner = state.run.slot.owner;
  Candidate candidate;
  candidate.name = "lora";
  TRY_ASSIGN(candidate.before, arm_in_use(state.tools.store, bench, owner));
  std::vector<Example> examples;
  for (const TaughtAnswer& taught : state.examples.train) {
    TRY_ASSIGN(auto example, tokens_of(bench, taught.messages, taught.wanted, owner));
    if (example) examples.push_back(std::move(*example));
  }
  const size_t n_learned = examples.size();
  // Every second one: the others guard alone, so that what is kept by heart is not taken for ability.
  for (size_t i = 0; i < state.tools.guard.size(); i += 2) {
    chat::Message question;
    question.role = "user";
    question.content = state.tools.guard[i].question;
    TRY_ASSIGN(auto example, tokens_of(bench, {question}, state.tools.guard[i].answer, {}));
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
  candidate.bytes = bytes_of_file(out);
  TRY_ASSIGN(auto adapters, adapter_set(bench, out, "candidate"));
  candidate.after = candidate.before;
  candidate.after.adapters = std::move(adapters);
  char losses[64];
  std::snprintf(losses, sizeof losses, "%.3f to %.3f", report.loss_before, report.loss_after);
  candidate.about = "an adapter of " + std::to_string(report.parameters) + " numbers from " +
                    std::to_string(n_learned) + " accepted answers; their loss went from " + losses;
  std::error_code error;
  std::filesystem::remove(out, error);
  std::filesystem::remove(options.checkpoint, error);
  return Result<Candidate>{std::move(candidate)};
}

}  // namespace chimere::improve
