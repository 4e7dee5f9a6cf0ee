// chat_response.h  ChatChunks as the JSON of OpenAI's chat completions, whole or as server-sent events.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "orchestrator/chat_chunk.h"

namespace chimere::server {

// What all texts of one answer repeat.
struct ResponseHead {
  std::string id;     // "chatcmpl-..."
  std::string model;  // as the request named it
  int64_t created = 0;
  bool logprobs = false;
};

const char* finish_name(orchestrator::Finish finish);

// "data: {json}\n\n"
std::string sse(const std::string& json);
inline constexpr const char* kSseDone = "data: [DONE]\n\n";

// The events of one chunk of a stream: the role for `started`, deltas, the finish reason and, if wanted, the usage.
// A failed chunk becomes an error event. [DONE] is not included.
std::string stream_events(const ResponseHead& head, const orchestrator::ChatChunk& chunk, bool include_usage);

// Collects the chunks of an answer that is sent whole.
class WholeResponse {
 public:
  explicit WholeResponse(ResponseHead head);
  ~WholeResponse();

  void add(orchestrator::ChatChunk chunk);
  // REQUIRES: the finished chunk was added.
  std::string body() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chimere::server
