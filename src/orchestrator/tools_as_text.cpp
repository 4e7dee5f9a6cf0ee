// tools_as_text.cpp  Declarations, calls and results as words.
#include "orchestrator/tools_as_text.h"

#include <string>
#include <utility>

#include "chat/tool_schema.h"

namespace chimere::orchestrator {
namespace {

std::string declarations(const std::vector<chat::Tool>& tools) {
  std::string text = "You can call these functions:\n<tools>\n";
  for (const chat::Tool& tool : tools) text += tool.json + "\n";
  return text +
         "</tools>\nTo call one, write its name and arguments as JSON between two tags, and nothing after them:\n"
         "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {}}\n</tool_call>";
}

std::string call_text(const chat::ToolCall& call) {
  const std::string arguments = call.arguments_json.empty() ? "{}" : call.arguments_json;
  return "<tool_call>\n{\"name\": " + chat::json_quoted(call.name) + ", \"arguments\": " + arguments +
         "}\n</tool_call>";
}

// Puts text behind what a message says, whichever of its two forms that has. Parts stand on lines of their own.
void append_text(chat::Message& message, const std::string& text) {
  if (message.content_parts_json.empty()) {
    std::string& content = message.content ? *message.content : message.content.emplace();
    content += (content.empty() ? "" : "\n\n") + text;
  } else {
    message.content_parts_json.pop_back();
    message.content_parts_json += R"(,{"type":"text","text":)" + chat::json_quoted("\n" + text) + "}]";
  }
}

}  // namespace

std::vector<chat::Message> tools_as_text(std::vector<chat::Message> messages, const std::vector<chat::Tool>& tools) {
  const bool has_system = !messages.empty() && (messages[0].role == "system" || messages[0].role == "developer");
  if (!has_system) {
    messages.emplace(messages.begin());
    messages[0].role = "system";
  }
  append_text(messages[0], declarations(tools));
  std::vector<chat::Message> result;
  bool after_tool = false;  // results that follow each other are one turn of the user
  for (chat::Message& message : messages) {
    for (const chat::ToolCall& call : message.tool_calls) append_text(message, call_text(call));
    message.tool_calls.clear();
    const bool is_tool = message.role == "tool";
    if (is_tool) {
      const std::string text = "<tool_response>\n" + chat::text_of(message) + "\n</tool_response>";
      message = {};
      message.role = "user";
      if (after_tool) {
        append_text(result.back(), text);
        continue;
      }
      message.content = text;
    }
    after_tool = is_tool;
    result.push_back(std::move(message));
  }
  return result;
}

}  // namespace chimere::orchestrator
