// response_writer.h  One protocol's words for an answer: server-sent events or one JSON object.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/chat_chunk.h"
#include "server/http/api_error.h"

namespace chimere::server {

// Chunks of a choice joined to one: all its text, its calls whole, how it finished.
void append(orchestrator::ChatChunk& sum, orchestrator::ChatChunk chunk);

// What all choices of one answer cost together: prompts that choices share are counted once.
engine::Usage total_usage(const std::vector<engine::Usage>& choices, size_t choices_per_prompt);

// Told of the chunks of one answer in the order they come. Choices are numbered from 0.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  virtual const char* stream_type() const { return "text/event-stream"; }
  // A streamed answer: what is sent for a chunk that did not fail, and behind the last one.
  virtual std::string events(size_t choice, const orchestrator::ChatChunk& chunk) = 0;
  virtual std::string end(const engine::Usage& total) = 0;
  // Of a stream that has nothing to say yet: a comment, which readers of server-sent events pass over.
  virtual std::string pause() const { return ": waiting\n\n"; }
  // Instead of the rest of a stream.
  virtual std::string error_event(const ApiError& error) = 0;

  // Whether an error that comes before anything was sent is an event all the same, and not a status.
  virtual bool streams(const ApiError&) const { return false; }

  // An answer that is sent whole.
  virtual std::string body(const std::vector<orchestrator::ChatChunk>& choices, const engine::Usage& total) = 0;
  virtual HttpResponse error(const ApiError& error) = 0;
};

// "chatcmpl-1a2b3c4d-17": unlike those of other runs of the server.
std::string new_object_id(const char* prefix);

// "data: {json}\n\n", with "event: name\n" before it when there is a name.
std::string sse(const std::string& json, const char* name = nullptr);
inline constexpr const char* kSseDone = "data: [DONE]\n\n";

}  // namespace chimere::server
