// ollama_response.h  Answers of /api/chat and /api/generate: one JSON object, or one on each line of a stream.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/protocols/shared/response_writer.h"

namespace chimere::server {

// "2026-11-17T14:52:51.123456789Z"
std::string ollama_time(std::chrono::system_clock::time_point time);

struct OllamaHead {
  std::string model;     // as the request named it
  bool is_chat = false;  // "message" instead of "response"
  bool logprobs = false;
  std::chrono::steady_clock::time_point began;
};

std::unique_ptr<ResponseWriter> ollama_writer(OllamaHead head);
// The answer to a call that asks nothing: the model is there.
std::string ollama_loaded(const OllamaHead& head);

// {"error": "message"}
std::string ollama_error_body(const ApiError& error);
HttpResponse ollama_error_response(const ApiError& error);

}  // namespace chimere::server
