#include "odo/model_turn.h"

#include <utility>

namespace chimere::odo {
namespace {

// How long a cancelled run may go unnoticed.
constexpr std::chrono::milliseconds kLook{20};

void add(ModelTurn& turn, const ChatChunk& chunk) {
  turn.reasoning += chunk.reasoning;
  turn.content += chunk.content;
  turn.tokens.insert(turn.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
  for (const orchestrator::ToolCallDelta& delta : chunk.tool_calls) {
    const auto index = static_cast<size_t>(delta.index);
    if (turn.calls.size() <= index) turn.calls.resize(index + 1);
    chat::ToolCall& call = turn.calls[index];
    if (!delta.id.empty()) call.id = delta.id;
    call.name += delta.name;
    call.arguments_json += delta.arguments;
  }
}

}  // namespace

ModelTurn ask_model(orchestrator::ChatService& chat, orchestrator::ChatRequest request, RunTeller& teller, int step,
                    const std::function<bool(const ChatChunk&)>& on_delta) {
  ModelTurn turn;
  const std::unique_ptr<orchestrator::ChatStream> stream = chat.start(std::move(request));
  bool cancel_sent = false;
  for (;;) {
    if (!cancel_sent && teller.is_cancelled()) {
      stream->cancel();
      cancel_sent = true;
    }
    if (teller.wants_answer_now()) stream->stop_thinking();
    std::optional<ChatChunk> chunk = stream->wait(kLook);
    if (!chunk) continue;
    teller.works_on(stream->engine_id());
    if (chunk->is_terminal()) {
      teller.add_tokens(step, chunk->usage);
      turn.last = std::move(*chunk);
      return turn;
    }
    if (chunk->kind != ChatChunk::Kind::delta) continue;
    add(turn, *chunk);
    if (on_delta && !cancel_sent && !on_delta(*chunk)) {
      stream->cancel();
      cancel_sent = true;
    }
  }
}

}  // namespace chimere::odo
