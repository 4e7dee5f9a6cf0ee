// answer_stream.h  The answer to one request, as it comes: the model's own (chat_stream.h), or that of a run in which
// the model is asked several times (odo/). Read by one thread at a time.
#pragma once

#include <chrono>
#include <optional>

#include "engine/event.h"
#include "engine/request.h"
#include "orchestrator/chat_chunk.h"

namespace chimere::orchestrator {

class AnswerStream {
 public:
  // Cancels what still runs.
  virtual ~AnswerStream() = default;

  // What has come since the last call, as one chunk; nullopt when there is nothing, and after the terminal chunk.
  virtual std::optional<ChatChunk> poll() = 0;
  // The terminal chunk follows within a step: finished, cancelled.
  virtual void cancel() = 0;
  // The thought ends before the next token, if one is open.
  virtual void stop_thinking() = 0;

  // What the engine works on for it now; 0: nothing.
  virtual engine::RequestId engine_id() const = 0;
  // What it has cost so far: tokens of the prompt once the engine has it, and of the answer as far as they were read.
  virtual engine::Usage seen() const = 0;
  // When poll() first saw a token.
  virtual std::optional<std::chrono::steady_clock::time_point> first_token_time() const = 0;
};

}  // namespace chimere::orchestrator
