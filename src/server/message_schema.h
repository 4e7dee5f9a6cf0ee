// message_schema.h  The `messages` and `tools` of a chat request.
#pragma once

#include <string>
#include <vector>

#include "chat/message.h"
#include "server/json_fields.h"

namespace chimere::server {

// Reads request["messages"]; errors go to `request`, names of unknown fields to `ignored`.
std::vector<chat::Message> read_messages(JsonFields& request, std::vector<std::string>& ignored);

// The `tools`; none when `tool_choice` forbids them.
std::vector<chat::Tool> read_tools(JsonFields& request);

}  // namespace chimere::server
