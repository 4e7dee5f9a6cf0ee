// conversation_fields.cpp  Conversations and tools, checked.
#include "server/protocols/shared/conversation_fields.h"

#include <map>
#include <set>

#include "chat/tool_schema.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::ToolChoice;

namespace {

// {"function": {"name"}} in chat completions, {"name"} in responses; null: neither.
Json name_of(const Json& tool) {
  if (!tool.is_object()) return {};
  const Json function = tool.value("function", Json());
  return function.is_object() ? function.value("name", Json()) : tool.value("name", Json());
}

// {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}; in responses both stand beside the type.
void read_allowed(JsonFields& fields, const Json& choice, ChatRequest& request, AllowedTools& allowed) {
  const Json nested = choice.value("allowed_tools", Json());
  const std::string path = nested.is_object() ? "tool_choice.allowed_tools." : "tool_choice.";
  const Json& form = nested.is_object() ? nested : choice;
  const Json mode = form.value("mode", Json("auto")), tools = form.value("tools", Json());
  if (mode == "required") {
    request.tool_choice = ToolChoice::required;
  } else if (mode != "auto") {
    return fields.fail(path + "mode", "expected auto or required, found " + to_text(mode));
  }
  if (!tools.is_array() || tools.empty() || tools.size() > kMaxTools) {
    return fields.fail(path + "tools", "expected a list of 1 to " + std::to_string(kMaxTools) + " tools");
  }
  for (size_t i = 0; i < tools.size(); ++i) {
    const Json name = name_of(tools[i]);
    const Json type = tools[i].is_object() ? tools[i].value("type", Json("function")) : Json();
    if (name.is_string()) {
      allowed.names.push_back(name.get<std::string>());
    } else if (type.is_string() && type != "function" && type != "custom") {
      allowed.ignored.push_back(path + "tools[" + std::to_string(i) + "]");
    } else {
      return fields.fail(path + "tools", "expected names of tools, found " + to_text(tools[i]));
    }
  }
  if (!allowed.names.empty()) return;
  // Of tools that this server does not have, none can be called.
  if (mode == "required") return fields.fail(path + "tools", "expected functions among the tools, found none");
  request.tool_choice = ToolChoice::none;
}

// "auto", "none", "required", {"type": "function", "function": {"name": ...}} or the tools that are allowed.
void read_choice(JsonFields& fields, ChatRequest& request, AllowedTools& allowed) {
  const Json* choice = fields.find("tool_choice");
  if (!choice || *choice == "auto") return;
  if (*choice == "none") {
    request.tool_choice = ToolChoice::none;
  } else if (*choice == "required") {
    request.tool_choice = ToolChoice::required;
  } else if (choice->is_object() && choice->value("type", Json()) == "allowed_tools") {
    read_allowed(fields, *choice, request, allowed);
  } else if (choice->is_object()) {
    const Json name = name_of(*choice);
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

std::vector<chat::Tool> read_functions(JsonFields& request) {
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
  const auto is_blank = [](const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; };
  if (is_blank(chat::text_of(last))) {
    request.goes_on = !is_blank(last.reasoning_content.value_or(""));  // with the thought
    if (request.goes_on) return;
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

AllowedTools read_tool_choice(JsonFields& fields, ChatRequest& request) {
  AllowedTools allowed;
  read_choice(fields, request, allowed);
  fields.boolean("parallel_tool_calls", request.parallel_tool_calls);
  return allowed;
}

void check_tool_choice(JsonFields& fields, const std::vector<std::string>& allowed, ChatRequest& request) {
  const bool wants_call = request.tool_choice == ToolChoice::required || request.tool_choice == ToolChoice::named;
  if (wants_call && request.tools.empty()) fields.fail("tool_choice", "expected tools to choose from, found none");
  std::vector<std::string> wanted = allowed;
  if (request.tool_choice == ToolChoice::named) wanted.push_back(request.tool_name);
  if (wanted.empty() || !fields.ok()) return;
  std::map<std::string, size_t> declared;  // to their places
  for (size_t i = 0; i < request.tools.size(); ++i) {
    for (const auto& entry : chat::declared_parameters({request.tools[i]})) declared[entry.first] = i;
  }
  std::set<size_t> kept;
  for (const std::string& name : wanted) {
    const auto found = declared.find(name);
    if (found == declared.end()) return fields.fail("tool_choice", "expected one of the tools, found '" + name + "'");
    kept.insert(found->second);
  }
  if (allowed.empty()) return;
  request.only_declared_tools = true;
  std::vector<chat::Tool> tools;
  for (const size_t i : kept) tools.push_back(std::move(request.tools[i]));
  request.tools = std::move(tools);
}

}  // namespace chimere::server
