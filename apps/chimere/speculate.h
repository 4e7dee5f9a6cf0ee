// speculate.h  Options of the command line about drafts, for commands that answer.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/engine.h"

namespace chimere::apps {

struct SpeculateOptions {
  speculative::Mode mode = speculative::Mode::automatic;
  int draft_max = kDecodeTokens - 1;

  void apply_to(engine::EngineConfig& config) const {
    config.speculate = mode;
    config.draft_max = draft_max;
  }
};

void add_speculate_options(CLI::App& command, SpeculateOptions& options);

}  // namespace chimere::apps
