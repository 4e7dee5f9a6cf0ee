// openai_responses_request.h  The body of POST /v1/responses. A request brings its conversation, or goes on with one
// that is kept.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "orchestrator/chat_request.h"
#include "server/http/api_error.h"
#include "server/protocols/kept_responses.h"
#include "server/protocols/openai_responses_tools.h"
#include "server/protocols/shared/generate_fields.h"

namespace chimere::server {

struct ResponsesCall : CallOptions {
  orchestrator::ChatRequest request;
  ResponseTools tools;                     // those that are no plain functions
  bool is_kept = false;                    // the answer may be asked for again
  std::vector<KeptResponses::Item> items;  // if so: what the conversation has before the answer
  std::string echo;                        // a JSON object: settings that the answer repeats
};

// `kept` are the answers that `owner` may refer to; null: none.
std::variant<ResponsesCall, ApiError> parse_responses_call(std::string_view body,
                                                           const orchestrator::Defaults& defaults,
                                                           const KeptResponses* kept = nullptr,
                                                           const std::string& owner = {});

}  // namespace chimere::server
