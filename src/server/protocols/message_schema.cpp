// message_schema.cpp  Messages and tools: JSON to structs.
#include "server/protocols/message_schema.h"

#include "chat/tool_schema.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::ToolChoice;

namespace {

bool is_role(const std::string& role) {
  return role == "system" || role == "developer" || role == "user" || role == "assistant" || role == "tool";
}

// A string, or an array of text parts, which goes to the template as it is: some treat parts in their own way.
void read_content(JsonFields& fields, chat::Message& message) {
  const Json* content = fields.find("content");
  if (!content) {
    if (message.role != "assistant") fields.fail("content", "expected a string or an array of text parts, found none");
    return;
  }
  if (content->is_string()) {
    message.content = content->get<std::string>();
    return;
  }
  if (!content->is_array()) return fields.fail_type("content", "a string or an array of text parts", *content);
  std::vector<std::string> texts;
  for (size_t i = 0; i < content->size(); ++i) {
    const Json& part = (*content)[i];
    const std::string name = path_at("content", i);
    if (!part.is_object()) return fields.fail_type(name, "an object", part);
    const auto type = part.find("type");
    if (type == part.end() || !type->is_string()) return fields.fail(name + ".type", "expected \"text\", found none");
    if (*type != "text") {
      return fields.fail(name + ".type",
                         "expected \"text\", found " + to_text(*type) + ": this server reads text only");
    }
    const auto text = part.find("text");
    if (text == part.end() || !text->is_string()) return fields.fail(name + ".text", "expected a string");
    fields.check_keys(name, part, {"type", "text"});
    texts.push_back(text->get<std::string>());
  }
  set_text(message, texts);
}

void read_tool_calls(JsonFields& fields, chat::Message& message) {
  const Json* calls = fields.array("tool_calls");
  if (!calls) return;
  for (size_t i = 0; i < calls->size(); ++i) {
    const Json& json = (*calls)[i];
    const std::string name = path_at("tool_calls", i);
    if (!json.is_object()) return fields.fail_type(name, "an object", json);
    const auto function = json.find("function");
    if (function == json.end() || !function->is_object()) return fields.fail(name + ".function", "expected an object");
    fields.check_keys(name, json, {"type", "id", "index", "function"});
    fields.check_keys(name + ".function", *function, {"name", "arguments"});
    chat::ToolCall call;
    if (const auto id = json.find("id"); id != json.end() && id->is_string()) call.id = id->get<std::string>();
    const auto called = function->find("name");
    if (called == function->end() || !called->is_string()) {
      return fields.fail(name + ".function.name", "expected a string");
    }
    call.name = called->get<std::string>();
    const auto arguments = function->find("arguments");
    if (arguments == function->end()) {
      call.arguments_json = "{}";
    } else if (arguments->is_string()) {
      call.arguments_json = arguments->get<std::string>();
    } else if (arguments->is_object()) {
      call.arguments_json = to_text(*arguments);
    } else {
      return fields.fail_type(name + ".function.arguments", "a string that holds JSON", *arguments);
    }
    message.tool_calls.push_back(std::move(call));
  }
}

chat::Message read_message(JsonFields& fields) {
  chat::Message message;
  fields.string("role", message.role);
  if (fields.ok() && !is_role(message.role)) {
    fields.fail("role", "expected system, developer, user, assistant or tool, found '" + message.role + "'");
  }
  read_content(fields, message);
  if (message.role == "assistant") {
    for (const char* name : {"reasoning", "reasoning_content"}) {  // two names are in use
      if (!fields.find(name)) continue;
      std::string reasoning;
      fields.string(name, reasoning);
      message.reasoning_content = std::move(reasoning);
    }
    read_tool_calls(fields, message);
    // Parts of OpenAI's own answers that come back with the history and say nothing here.
    for (const char* name : {"refusal", "annotations", "audio", "function_call"}) fields.find(name);
  }
  if (message.role == "tool") fields.string("tool_call_id", message.tool_call_id);
  fields.string("name", message.name);
  return message;
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

std::vector<chat::Message> read_messages(JsonFields& request, std::vector<std::string>& ignored) {
  std::vector<chat::Message> messages;
  const Json* list = request.array("messages");
  if (!request.ok()) return messages;
  if (!list || list->empty() || list->size() > kMaxMessages) {
    request.fail("messages", "expected 1 to " + std::to_string(kMaxMessages) + " messages, found " +
                                 std::to_string(list ? list->size() : 0));
    return messages;
  }
  for (size_t i = 0; i < list->size() && request.ok(); ++i) {
    const Json& json = (*list)[i];
    if (!json.is_object()) {
      request.fail_type(path_at("messages", i), "an object", json);
      break;
    }
    JsonFields fields(json, path_at("messages", i) + ".");
    messages.push_back(read_message(fields));
    request.take_error(fields);
    for (std::string& name : fields.unknown()) ignored.push_back(std::move(name));
  }
  return messages;
}

namespace {

std::vector<chat::Tool> read_declarations(JsonFields& request) {
  std::vector<chat::Tool> tools;
  if (const Json* list = request.array("tools")) {
    if (list->size() > kMaxTools) {
      request.fail("tools",
                   "expected at most " + std::to_string(kMaxTools) + ", found " + std::to_string(list->size()));
    }
    for (size_t i = 0; i < list->size() && request.ok(); ++i) {
      const Json& tool = (*list)[i];
      const std::string name = path_at("tools", i);
      if (!tool.is_object() || tool.value("type", Json()) != "function") {
        request.fail(name + ".type", "expected \"function\"");
        break;
      }
      const auto function = tool.find("function");
      if (function == tool.end() || !function->is_object() || !function->value("name", Json()).is_string()) {
        request.fail(name + ".function.name", "expected a string");
        break;
      }
      request.check_keys(name, tool, {"type", "function"});
      request.check_keys(name + ".function", *function, {"name", "description", "parameters", "strict"});
      tools.push_back({to_text(tool)});
    }
  }
  return tools;
}

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

void read_tools(JsonFields& fields, ChatRequest& request) {
  request.tools = read_declarations(fields);
  read_tool_choice(fields, request);
  check_tool_choice(fields, request);
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
