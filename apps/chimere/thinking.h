// thinking.h  Options of the command line that steer thoughts, for commands that answer.
#pragma once

#include <CLI/CLI.hpp>

#include "orchestrator/thinking_options.h"

namespace chimere::apps {

void add_thinking_options(CLI::App& command, orchestrator::ThinkingOptions& options);

}  // namespace chimere::apps
