// chat_commands.h  The lines of a conversation that begin with a slash.
#pragma once

#include <string>

#include "chat_options.h"
#include "chat_screen.h"
#include "chat_session.h"

namespace chimere::apps {

// What follows from a line.
struct ChatStep {
  enum class Kind { done, ask, edit, leave };
  Kind kind = Kind::done;
  std::string text;  // to ask, or to be changed first
};

// True for "/word" and "/word and more" in one line; a path such as /etc/hosts is none.
bool is_chat_command(const std::string& line);

ChatStep run_chat_command(const std::string& line, ChatSession& session, ChatOptions& options, ChatScreen& screen);

}  // namespace chimere::apps
