// tools_as_text.h  Tools for models whose chat template knows none: they are described in the system prompt, and calls
// and results become text of the conversation, in the form of Hermes.
#pragma once

#include <vector>

#include "chat/message.h"

namespace chimere::orchestrator {

// The same conversation without tools, calls and messages of the role `tool`.
std::vector<chat::Message> tools_as_text(std::vector<chat::Message> messages, const std::vector<chat::Tool>& tools);

}  // namespace chimere::orchestrator
