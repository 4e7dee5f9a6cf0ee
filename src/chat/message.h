// message.h  What a conversation is made of, as plain structs. JSON crosses this border as text, key order kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace chimere::chat {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments_json;  // an object
  bool operator==(const ToolCall&) const = default;
};

struct Message {
  std::string role;
  std::optional<std::string> content;  // none: null
  std::string content_parts_json;      // not empty: an array of parts, used instead of `content`
  std::optional<std::string> reasoning_content;
  std::vector<ToolCall> tool_calls;
  std::string tool_call_id;
  std::string name;
};

// Its text; of several parts, one on each line.
std::string text_of(const Message& message);

struct Tool {
  std::string json;  // {"type": "function", "function": {"name", "description", "parameters"}}
};

}  // namespace chimere::chat
