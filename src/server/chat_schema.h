// chat_schema.h  The body of POST /v1/chat/completions: every field checked, none silently dropped.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/chat_request.h"
#include "server/api_error.h"

namespace chimere::server {

struct ChatCall {
  orchestrator::ChatRequest request;
  std::string model;  // as the client named it; empty when it did not
  bool stream = false;
  bool include_usage = false;
  std::vector<std::string> ignored;  // fields we do not know, in the order of the request
};

// `defaults`: the sampling of a request that says nothing about it.
std::variant<ChatCall, ApiError> parse_chat_call(std::string_view body, const SamplingParams& defaults);

// The value of X-Chimere-Ignored: names joined by ", ", safe in a header whatever the client called its fields.
std::string ignored_header(const std::vector<std::string>& names);

}  // namespace chimere::server
