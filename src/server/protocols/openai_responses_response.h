// openai_responses_response.h  Answers of /v1/responses: output items, whole or as numbered events.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/http/json.h"
#include "server/protocols/openai_responses_tools.h"
#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

struct ResponsesHead {
  std::string model;
  int64_t created = 0;
  std::string echo = "{}";  // see ResponsesCall
  ResponseTools tools = {};
  bool logprobs = false;
  bool token_stats = false;
  // Told of the whole response when it is there, before its last bytes are sent; null: nobody is.
  std::function<void(const Json& response)> keep = {};
};

std::unique_ptr<ResponseWriter> responses_writer(ResponsesHead head);

}  // namespace chimere::server
