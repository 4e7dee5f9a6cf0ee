// chat_options.h  What `chimere chat` was started with, and what /set and its like change while it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "orchestrator/chat_request.h"
#include "sampling_options.h"
#include "speculate.h"

namespace chimere::apps {

struct ChatOptions : SamplingOptions {
  ModelOptions model;
  std::string chat_template_file;
  int context = 0;
  std::string prompt;  // -p
  std::string system;
  std::optional<bool> think;  // what the template does by itself when absent
  int thinking_budget = -1;
  bool hide_thinking = false;
  std::vector<std::string> stop;
  std::vector<std::string> adapters;
  std::string engram;              // folder of tables
  orchestrator::MemoryUse memory;  // of those, what takes part
  orchestrator::ThinkingOptions thinking;
  SpeculateOptions speculate;
  bool talks = false;  // a conversation at a terminal, not one question
};

}  // namespace chimere::apps
