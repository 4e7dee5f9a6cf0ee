// openai_completion_request.h  The body of POST /v1/completions: text that is continued as it is.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/chat_request.h"
#include "server/http/api_error.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {

struct CompletionCall : CallOptions {
  std::vector<orchestrator::CompletionRequest> prompts;  // alike but for the prompt
  int n = 1;                                             // answers to each
  bool echo = false;                                     // the prompt comes back before its answer
  bool include_usage = false;
  std::vector<std::string> echoes = {};  // of each prompt, when they are wanted: the server's business
};

std::variant<CompletionCall, ApiError> parse_completion_call(std::string_view body,
                                                             const orchestrator::Defaults& defaults);

}  // namespace chimere::server
