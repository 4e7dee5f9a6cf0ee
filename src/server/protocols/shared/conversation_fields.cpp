// conversation_fields.cpp  Conversations and tools, checked.
#include "server/protocols/shared/conversation_fields.h"

#include "chat/tool_schema.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::ToolChoice;

namespace {

// "auto", "none", "required" or {"type": "function", "function": {"name": ...}}.
void read_choice(JsonFields& fields, ChatRequest& request) {
  const Json* choice = fields.find("tool_choice");
  if (!choice || *choice == "auto") return;
  if (*choice == "none") {
    request.tool_choice = ToolChoice::none;
  } else if (*choice == "required") {
    request.tool_choice = ToolChoice::required;
  } else if (choice->is_object()) {
    const Json function = choice->value("function", Json());
    const Json name = function.is_object() ? function.value("name", Json()) : choice->value("name", Json());
    if (!name.is_string()) return fields.fail("tool_choice.function.name", "expected a string");
    request.tool_choice = ToolChoice::named;
    request.tool_name = name.get<std::string>();
  } else {
    fields.fail("tool_choice", "expected auto, none, required or the name of a function, found " + to_text(*choice));
  }
}

}  // namespace

void set_text(chat::Message& message, const std::vector<std::string>& texts) {
  if (texts.size() < 2) {
    message.content = texts.empty() ? std::string() : texts[0];
    return;
  }
  Json parts = Json::array();
  for (const std::string& text : texts) parts.push_back(Json{{"type", "text"}, {"text", text}});
  message.content_parts_json = to_text(parts);
}

void read_open_turn(JsonFields& fields, std::optional<bool> wanted, ChatRequest& request) {
  if (!fields.ok()) return;
  const chat::Message& last = request.messages.back();
  if (last.role != "assistant") {
    if (wanted == true) {
      fields.fail("continue_final_message",
                  "expected the last message to be the assistant's, found the " + last.role + "'s");
    }
    return;
  }
  if (wanted == false) return;
  if (!last.tool_calls.empty()) {
    return fields.fail("messages",
                       "expected a text to go on with in the last message, found calls of tools: their "
                       "results come behind them");
  }
  if (chat::text_of(last).find_first_not_of(" \t\r\n") == std::string::npos) {
    const bool is_empty = wanted != true && !last.reasoning_content && request.messages.size() > 1;
    if (!is_empty) return fields.fail("messages", "expected a text to go on with in the last message, found none");
    request.messages.pop_back();
    return;
  }
  if (request.form.json_object || !request.form.json_schema.empty()) {
    return fields.fail("response_format",
                       "expected none beside an answer that the request begins: JSON that has begun "
                       "is not checked");
  }
  request.goes_on = true;
}

void read_tool_choice(JsonFields& fields, ChatRequest& request) {
  read_choice(fields, request);
  fields.boolean("parallel_tool_calls", request.parallel_tool_calls);
}

void check_tool_choice(JsonFields& fields, const ChatRequest& request) {
  const bool wants_call = request.tool_choice == ToolChoice::required || request.tool_choice == ToolChoice::named;
  if (wants_call && request.tools.empty()) fields.fail("tool_choice", "expected tools to choose from, found none");
  if (request.tool_choice != ToolChoice::named || !fields.ok()) return;
  for (const chat::Tool& tool : request.tools) {
    if (chat::declared_parameters({tool}).count(request.tool_name) > 0) return;
  }
  fields.fail("tool_choice", "expected one of the tools, found '" + request.tool_name + "'");
}

}  // namespace chimere::server
