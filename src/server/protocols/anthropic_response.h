// anthropic_response.h  Answers of /v1/messages: a message of content blocks, whole or as events.
#pragma once

#include <memory>
#include <string>

#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

// `model` as the request named it.
std::unique_ptr<ResponseWriter> anthropic_writer(std::string model, bool token_stats = false);

// {"type": "error", "error": {"type", "message"}}
std::string anthropic_error_body(const ApiError& error);
HttpResponse anthropic_error_response(const ApiError& error);

}  // namespace chimere::server
