// message_schema.h  The `messages` and `tools` of a chat request.
#pragma once

#include <string>
#include <vector>

#include "chat/message.h"
#include "orchestrator/chat_request.h"
#include "server/json_fields.h"

namespace chimere::server {

// Reads request["messages"]; errors go to `request`, names of unknown fields to `ignored`.
std::vector<chat::Message> read_messages(JsonFields& request, std::vector<std::string>& ignored);

// `tools`, `tool_choice` and `parallel_tool_calls`.
void read_tools(JsonFields& fields, orchestrator::ChatRequest& request);
// The last two alone, for requests that declare their tools in another way.
void read_tool_choice(JsonFields& fields, orchestrator::ChatRequest& request);
// A call that is demanded must be one of a declared tool.
void check_tool_choice(JsonFields& fields, const orchestrator::ChatRequest& request);

}  // namespace chimere::server
