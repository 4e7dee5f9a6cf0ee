// speculate.h  Options of the command line about drafts, for commands that answer.
#pragma once

#include <CLI/CLI.hpp>

#include "common.h"
#include "engine/engine.h"
#include "orchestrator/chat_model.h"

namespace chimere::apps {

struct SpeculateOptions {
  speculative::Mode mode = speculative::Mode::automatic;
  int draft_max = kDecodeTokens - 1;
  std::string draft_model;  // a file; empty: none

  void apply_to(engine::EngineConfig& config) const {
    config.speculate = mode;
    config.draft_max = draft_max;
  }
};

void add_speculate_options(CLI::App& command, SpeculateOptions& options);
void add_draft_model_option(CLI::App& command, std::string& path);
void add_drafter_option(CLI::App& command, ModelOptions& options);

// Loads the draft model, before the model, which takes what memory a card has left; null when none was given. Where both
// share a card with a limit (--vram), its part is taken from that of `options`, which are the model's.
Result<std::unique_ptr<models::Model>> load_draft_model(const std::string& path, ModelOptions& options);

// Gives it to the model it guesses for. `draft` may be null.
Status add_draft_model(orchestrator::ChatModel& model, std::unique_ptr<models::Model> draft);

}  // namespace chimere::apps
