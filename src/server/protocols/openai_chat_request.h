// openai_chat_request.h  The body of POST /v1/chat/completions: every field checked, none silently dropped.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "odo/odo.h"
#include "orchestrator/chat_request.h"
#include "server/http/api_error.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {

struct ChatCall : CallOptions {
  orchestrator::ChatRequest request;
  int n = 1;  // answers
  bool include_usage = false;
  bool verbose = false;               // the answer has `__verbose`
  odo::Ask odo;                       // for the orchestrator, where its name is asked for
  std::vector<std::string> for_runs;  // of `ignored`, the fields that a run of the orchestrator reads
};

// `defaults`: the sampling of a request that says nothing about it.
std::variant<ChatCall, ApiError> parse_chat_call(std::string_view body, const orchestrator::Defaults& defaults);

}  // namespace chimere::server
