// conversation_fields.h  What the messages and tools of every protocol have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/message.h"
#include "orchestrator/chat_request.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

inline constexpr size_t kMaxMessages = 4096;
inline constexpr size_t kMaxTools = 512;

// One text as a string, several as parts for the template to join in its way.
void set_text(chat::Message& message, const std::vector<std::string>& texts);

// `tools` as OpenAI and Ollama declare them: [{"type": "function", "function": {"name", "description", "parameters"}}]
std::vector<chat::Tool> read_functions(JsonFields& request);
// `tool_calls` of a message that comes back: [{"id", "function": {"name", "arguments"}}], arguments as JSON or as text.
void read_tool_calls(JsonFields& fields, chat::Message& message);

// A conversation that ends with a text of the assistant, or his thought, is gone on with. `wanted`: what the request says about it;
// without a word it is so, and a last message that is empty counts as none.
void read_open_turn(JsonFields& fields, std::optional<bool> wanted, orchestrator::ChatRequest& request);

// OpenAI's `tool_choice` and `parallel_tool_calls`. Names of tools are not checked yet.
struct AllowedTools {
  std::vector<std::string> names;    // empty: all of them
  std::vector<std::string> ignored;  // by their path: tools that are no functions
};
AllowedTools read_tool_choice(JsonFields& fields, orchestrator::ChatRequest& request);
// A call that is demanded must be one of a declared tool; those that are not allowed are declared no longer.
void check_tool_choice(JsonFields& fields, const std::vector<std::string>& allowed, orchestrator::ChatRequest& request);

}  // namespace chimere::server
