// responses_schema.h  The body of POST /v1/responses. This server keeps no conversations: every request brings its own.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "orchestrator/chat_request.h"
#include "server/api_error.h"
#include "server/generate_fields.h"

namespace chimere::server {

struct ResponsesCall : CallOptions {
  orchestrator::ChatRequest request;
  std::string echo;  // a JSON object: settings that the answer repeats
};

std::variant<ResponsesCall, ApiError> parse_responses_call(std::string_view body, const SamplingParams& defaults);

}  // namespace chimere::server
