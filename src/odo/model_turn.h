// model_turn.h  The model asked once, inside a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "odo/run_stream.h"
#include "orchestrator/chat_service.h"

namespace chimere::odo {

// All of one answer of the model.
struct ModelTurn {
  std::string reasoning, content;
  std::vector<chat::ToolCall> calls;
  std::vector<orchestrator::TokenInfo> tokens;  // where the request asks for them
  ChatChunk last;                               // its terminal chunk

  bool has_failed() const { return last.kind == ChatChunk::Kind::failed; }
  bool is_cancelled() const { return !has_failed() && last.finish == orchestrator::Finish::cancelled; }
};

// Waits for it. `on_delta` sees each piece as it comes and ends the turn by false; `step` is charged for the tokens. A run
// that is cancelled ends the turn as well, and a run whose reader wants the answer now ends its thought.
ModelTurn ask_model(orchestrator::ChatService& chat, orchestrator::ChatRequest request, RunTeller& teller, int step,
                    const std::function<bool(const ChatChunk&)>& on_delta = {});

}  // namespace chimere::odo
