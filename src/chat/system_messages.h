// system_messages.h  System texts for templates that do not take them where they stand. Many templates want one system
// message at the start and raise or pass over any other, while agents add some in the middle of a conversation.
#pragma once

#include <vector>

#include "chat/message.h"

namespace chimere::chat {

// Of the role `system` or `developer`.
bool is_system(const Message& message);

// Where system texts may go, the nearest to the request first.
enum class SystemPlace {
  among_users,    // those at the start are one; a later one stands in its place, tagged, as words of the user
  at_start,       // all are one, before everything else
  in_first_user,  // the same, as the first words of the user: for templates that have no system message
};

std::vector<Message> with_system(const std::vector<Message>& messages, SystemPlace place);

}  // namespace chimere::chat
