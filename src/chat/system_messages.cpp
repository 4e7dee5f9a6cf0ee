// system_messages.cpp  Messages are joined, never dropped.
#include "chat/system_messages.h"

#include <algorithm>
#include <utility>

namespace chimere::chat {
namespace {

void set_content(Message& message, std::string text) {
  message.content = std::move(text);
  message.content_parts_json.clear();
}

void append(Message& message, const std::string& text) {
  const std::string before = text_of(message);
  set_content(message, before.empty() ? text : before + "\n\n" + text);
}

Message of_user(std::string text) {
  Message message;
  message.role = "user";
  message.content = std::move(text);
  return message;
}

// Turns of the user that a system text stands between, or beside, are one: some templates want turns to alternate.
std::vector<Message> among_users(const std::vector<Message>& messages) {
  std::vector<Message> result;
  bool has_system = false;  // whether the last message is the user's and has such a text
  for (const Message& message : messages) {
    const bool is_start = result.empty() || (result.size() == 1 && is_system(result[0]));
    const bool follows_user = !result.empty() && result.back().role == "user";
    if (!is_system(message)) {
      if (message.role == "user" && has_system) {
        append(result.back(), text_of(message));
      } else {
        result.push_back(message);
        has_system = false;
      }
    } else if (is_start) {
      if (result.empty()) {
        result.push_back(message);
      } else {
        append(result[0], text_of(message));
      }
    } else {
      const std::string text = "<system>\n" + text_of(message) + "\n</system>";
      if (follows_user) {
        append(result.back(), text);
      } else {
        result.push_back(of_user(text));
      }
      has_system = true;
    }
  }
  return result;
}

std::vector<Message> at_start(const std::vector<Message>& messages) {
  Message system;
  system.role = "system";
  std::vector<Message> result(1);
  for (const Message& message : messages) {
    if (is_system(message)) {
      append(system, text_of(message));
    } else {
      result.push_back(message);
    }
  }
  result[0] = std::move(system);
  return result;
}

std::vector<Message> in_first_user(const std::vector<Message>& messages) {
  std::vector<Message> result = at_start(messages);
  const std::string text = text_of(result[0]);
  result.erase(result.begin());
  const auto user = std::find_if(result.begin(), result.end(), [](const Message& m) { return m.role == "user"; });
  if (user == result.end()) {
    result.insert(result.begin(), of_user(text));
  } else {
    const std::string words = text_of(*user);
    set_content(*user, words.empty() ? text : text + "\n\n" + words);
  }
  return result;
}

}  // namespace

bool is_system(const Message& message) { return message.role == "system" || message.role == "developer"; }

std::vector<Message> with_system(const std::vector<Message>& messages, SystemPlace place) {
  switch (place) {
    case SystemPlace::among_users: return among_users(messages);
    case SystemPlace::at_start: return at_start(messages);
    case SystemPlace::in_first_user: break;
  }
  return in_first_user(messages);
}

}  // namespace chimere::chat
