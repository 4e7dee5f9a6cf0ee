// message.cpp  What a message says, whichever form its content has.
#include "chat/message.h"

#include <utility>

#include "text/json.h"

namespace chimere::chat {

std::string text_of(const Message& message) {
  if (message.content_parts_json.empty()) return message.content.value_or("");
  const auto parts = parse_json(message.content_parts_json);
  if (!parts) return {};
  std::string text;
  bool is_first = true;
  for (const Json& part : *parts) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    if (found == part.end() || !found->is_string()) continue;
    if (!std::exchange(is_first, false)) text += '\n';
    text += found->get<std::string>();
  }
  return text;
}

}  // namespace chimere::chat
