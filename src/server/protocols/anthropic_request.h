// anthropic_request.h  The body of POST /v1/messages and of /v1/messages/count_tokens, as Anthropic's clients send it.
#pragma once

#include <string_view>
#include <variant>

#include "orchestrator/chat_request.h"
#include "server/http/api_error.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {

struct AnthropicCall : CallOptions {
  orchestrator::ChatRequest request;
};

// Without `is_count` max_tokens is required. A request that says nothing about thinking does not think.
std::variant<AnthropicCall, ApiError> parse_anthropic_call(std::string_view body,
                                                           const orchestrator::Defaults& defaults, bool is_count);

}  // namespace chimere::server
