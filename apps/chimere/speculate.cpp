#include "speculate.h"

namespace chimere::apps {
namespace {

constexpr const char* kSpeculationGroup = "Speculation (no guess changes an answer; docs/speculation.md)";

}  // namespace

void add_speculate_options(CLI::App& command, SpeculateOptions& o) {
  command
      .add_option_function<std::string>(
          "--speculate", [&o](const std::string& name) { o.mode = *speculative::mode_from_text(name); },
          "guess the next tokens and compute them together: auto, where it pays; off; ngram, from repeats of the text "
          "alone; engram, from Engram tables alone; mtp, from the model's MTP block alone; draft, from a draft model "
          "alone; dflash, from a DFlash drafter alone; always")
      ->check(CLI::IsMember({"auto", "off", "ngram", "engram", "mtp", "draft", "dflash", "always"}))
      ->default_str(speculative::name(o.mode))
      ->group(kSpeculationGroup);
  add_draft_model_option(command, o.draft_model);
  command.add_option("--draft-max", o.draft_max, "guesses of one answer in a step, at most")
      ->check(CLI::Range(1, kDecodeTokens - 1))
      ->capture_default_str()
      ->group(kSpeculationGroup);
}

void add_draft_model_option(CLI::App& command, std::string& path) {
  command
      .add_option("--draft-model", path,
                  "GGUF file of a small model with the same vocabulary that guesses the next tokens")
      ->group(kSpeculationGroup);
}

void add_drafter_option(CLI::App& command, ModelOptions& o) {
  command
      .add_option("--drafter", o.drafter,
                  "GGUF file of a DFlash drafter for the model, which guesses in place of its MTP block")
      ->check(CLI::ExistingFile)
      ->group(kSpeculationGroup);
}

Result<std::unique_ptr<models::Model>> load_draft_model(const std::string& path, ModelOptions& options) {
  if (path.empty()) {
    if (options.speculate != speculative::Mode::draft) return std::unique_ptr<models::Model>();
    return Error{Code::invalid_argument, "--speculate draft needs --draft-model FILE"};
  }
  ModelOptions small = options;
  small.path = path;
  small.speculate = speculative::Mode::off;  // nobody guesses for it
  small.drafter.clear();
  small.experts.clear();  // these were said of the other model
  small.cpu_moe = small.gpu_layers = "auto";
  small.context = 0;
  small.state_bytes = 0;
  small.vram_bytes = options.vram_bytes / 8;
  options.vram_bytes -= small.vram_bytes;
  auto model = load_model(small);
  if (!model) return Error{model.error().code, "--draft-model: " + model.error().message};
  return model;
}

Status add_draft_model(orchestrator::ChatModel& model, std::unique_ptr<models::Model> draft) {
  if (!draft) return Ok{};
  const Status added = model.add_draft_model(std::move(draft));
  if (!added) return Error{added.error().code, "--draft-model: " + added.error().message};
  return Ok{};
}

}  // namespace chimere::apps
