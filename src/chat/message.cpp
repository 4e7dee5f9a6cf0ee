// message.cpp  What a message says, whichever form its content has.
#include "chat/message.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace chimere::chat {

std::string text_of(const Message& message) {
  if (message.content_parts_json.empty()) return message.content.value_or("");
  const auto parts = nlohmann::json::parse(message.content_parts_json, nullptr, /*allow_exceptions=*/false);
  std::string text;
  bool is_first = true;
  for (const auto& part : parts) {
    const auto found = part.is_object() ? part.find("text") : part.end();
    if (found == part.end() || !found->is_string()) continue;
    if (!std::exchange(is_first, false)) text += '\n';
    text += found->get<std::string>();
  }
  return text;
}

}  // namespace chimere::chat
