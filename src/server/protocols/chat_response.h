// chat_response.h  The JSON of OpenAI's chat completions, whole or as server-sent events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/protocols/response_writer.h"

namespace chimere::server {

// What all texts of one answer repeat.
struct ResponseHead {
  std::string id;     // "chatcmpl-..."
  std::string model;  // as the request named it
  int64_t created = 0;
  bool logprobs = false;
  bool include_usage = false;  // at the end of a stream
  bool token_stats = false;
  std::string system_fingerprint = {};  // "fp_...": of the model and the program; empty: not said
};

std::unique_ptr<ResponseWriter> chat_writer(ResponseHead head);

}  // namespace chimere::server
