// responses_schema.cpp  Input items to messages.
#include "server/responses_schema.h"

#include <utility>

#include "server/message_schema.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::ToolChoice;

namespace {

constexpr size_t kMaxItems = 8192;
constexpr size_t kMaxTools = 512;

std::string at(const std::string& name, size_t index) { return name + "[" + std::to_string(index) + "]"; }

// A string, or an array of parts with text.
bool read_texts(JsonFields& fields, const std::string& name, const Json& json, std::vector<std::string>& texts) {
  if (json.is_string()) {
    texts.push_back(json.get<std::string>());
    return true;
  }
  if (!json.is_array()) {
    fields.fail_type(name, "a string or an array of text parts", json);
    return false;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    const Json part = json[i].is_object() ? json[i].value("text", Json()) : Json();
    if (!part.is_string()) {
      fields.fail(at(name, i), "expected a part with text: this server reads text only");
      return false;
    }
    fields.check_keys(at(name, i), json[i], {"type", "text", "annotations", "logprobs"});
    texts.push_back(part.get<std::string>());
  }
  return true;
}

// Items of one turn of the assistant (a thought, a text, calls) become one message.
class ItemReader {
 public:
  ItemReader(JsonFields& fields, std::vector<chat::Message>& messages) : fields_(fields), messages_(messages) {}

  void read(const std::string& name, const Json& item) {
    if (!item.is_object()) return fields_.fail_type(name, "an object", item);
    const Json type = item.value("type", Json("message"));
    if (type == "message") {
      read_message(name, item);
    } else if (type == "function_call") {
      read_call(name, item);
    } else if (type == "function_call_output") {
      read_output(name, item);
    } else if (type == "reasoning") {
      read_reasoning(name, item);
    } else {
      fields_.fail(name + ".type", "expected message, function_call, function_call_output or reasoning, found " +
                                       to_text(type) + (type == "item_reference" ? ": nothing is stored here" : ""));
    }
  }

 private:
  std::string string_of(const std::string& name, const Json& item, const char* field) {
    const Json value = item.value(field, Json());
    if (!value.is_string()) fields_.fail(name + "." + field, "expected a string");
    return value.is_string() ? value.get<std::string>() : std::string();
  }

  chat::Message& add(const char* role) {
    messages_.emplace_back();
    messages_.back().role = role;
    return messages_.back();
  }

  // The assistant's turn that is being read.
  chat::Message& assistant() {
    if (messages_.empty() || messages_.back().role != "assistant") add("assistant");
    return messages_.back();
  }

  void read_message(const std::string& name, const Json& item) {
    const std::string role = string_of(name, item, "role");
    const auto content = item.find("content");
    std::vector<std::string> texts;
    if (content == item.end()) return fields_.fail(name + ".content", "expected a string or an array, found none");
    if (!read_texts(fields_, name + ".content", *content, texts)) return;
    fields_.check_keys(name, item, {"type", "role", "content", "id", "status"});
    if (role == "assistant") {
      chat::Message& turn = assistant();
      const bool has_text = turn.content || !turn.content_parts_json.empty();
      if (has_text || !turn.tool_calls.empty()) add("assistant");
      set_text(messages_.back(), texts);
    } else if (role == "user" || role == "system" || role == "developer") {
      set_text(add(role.c_str()), texts);
    } else {
      fields_.fail(name + ".role", "expected user, system, developer or assistant, found '" + role + "'");
    }
  }

  void read_call(const std::string& name, const Json& item) {
    chat::ToolCall call{string_of(name, item, "call_id"), string_of(name, item, "name"),
                        string_of(name, item, "arguments")};
    fields_.check_keys(name, item, {"type", "id", "call_id", "name", "namespace", "arguments", "status"});
    assistant().tool_calls.push_back(std::move(call));
  }

  void read_output(const std::string& name, const Json& item) {
    chat::Message result;
    result.role = "tool";
    result.tool_call_id = string_of(name, item, "call_id");
    std::vector<std::string> texts;
    if (!read_texts(fields_, name + ".output", item.value("output", Json()), texts)) return;
    fields_.check_keys(name, item, {"type", "call_id", "output", "id", "status"});
    set_text(result, texts);
    messages_.push_back(std::move(result));
  }

  void read_reasoning(const std::string& name, const Json& item) {
    std::vector<std::string> texts;
    for (const char* field : {"content", "summary"}) {
      const Json parts = item.value(field, Json());
      if (parts.is_null() || !texts.empty()) continue;
      if (!read_texts(fields_, name + "." + field, parts, texts)) return;
    }
    fields_.check_keys(name, item, {"type", "id", "content", "summary", "status", "encrypted_content"});
    chat::Message thought;
    set_text(thought, texts);
    const std::string text = chat::text_of(thought);
    if (!text.empty()) add("assistant").reasoning_content = text;
  }

  JsonFields& fields_;
  std::vector<chat::Message>& messages_;
};

// Developer and system texts that follow each other at the start are one: templates accept one system message.
void join_system(std::vector<chat::Message>& messages) {
  const auto is_system = [](const chat::Message& m) { return m.role == "system" || m.role == "developer"; };
  while (messages.size() > 1 && is_system(messages[0]) && is_system(messages[1])) {
    messages[0].content = chat::text_of(messages[0]) + "\n\n" + chat::text_of(messages[1]);
    messages[0].content_parts_json.clear();
    messages.erase(messages.begin() + 1);
  }
}

void read_input(JsonFields& fields, ChatRequest& request) {
  std::string instructions;
  fields.string("instructions", instructions);
  if (!instructions.empty()) {
    request.messages.emplace_back();
    request.messages.back().role = "system";
    request.messages.back().content = instructions;
  }
  const Json* input = fields.find("input");
  if (!input) return fields.fail("input", "expected a string or an array of items, found none");
  if (input->is_string()) {
    request.messages.emplace_back();
    request.messages.back().role = "user";
    request.messages.back().content = input->get<std::string>();
    return;
  }
  if (!input->is_array()) return fields.fail_type("input", "a string or an array of items", *input);
  if (input->empty() || input->size() > kMaxItems) {
    return fields.fail("input",
                       "expected 1 to " + std::to_string(kMaxItems) + " items, found " + std::to_string(input->size()));
  }
  ItemReader reader(fields, request.messages);
  for (size_t i = 0; i < input->size() && fields.ok(); ++i) reader.read(at("input", i), (*input)[i]);
  join_system(request.messages);
}

void read_response_tools(JsonFields& fields, ResponsesCall& call) {
  const Json* list = fields.array("tools");
  if (list && list->size() > kMaxTools) {
    return fields.fail("tools",
                       "expected at most " + std::to_string(kMaxTools) + ", found " + std::to_string(list->size()));
  }
  for (size_t i = 0; list && i < list->size(); ++i) {
    const Json& tool = (*list)[i];
    const std::string name = at("tools", i);
    if (!tool.is_object()) return fields.fail_type(name, "an object", tool);
    if (tool.value("type", Json()) != "function") {
      call.ignored.push_back(name);  // tools that OpenAI's own machines run
      continue;
    }
    if (!tool.value("name", Json()).is_string()) return fields.fail(name + ".name", "expected a string");
    fields.check_keys(name, tool, {"type", "name", "description", "parameters", "strict"});
    Json function;
    function["name"] = tool["name"];
    if (tool.value("description", Json()).is_string()) function["description"] = tool["description"];
    const Json parameters = tool.value("parameters", Json());
    function["parameters"] =
        parameters.is_object() ? parameters : Json{{"type", "object"}, {"properties", Json::object()}};
    call.request.tools.push_back({to_text(Json{{"type", "function"}, {"function", std::move(function)}})});
  }
  read_tool_choice(fields, call.request);
}

void read_text_settings(JsonFields& fields, ResponsesCall& call) {
  const Json* text = fields.object("text");
  if (!text) return;
  JsonFields inner(*text, "text.");
  if (const Json* format = inner.object("format")) read_format(inner, "format", *format, call.request.form);
  fields.take_error(inner);
  for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
}

void read_reasoning_settings(JsonFields& fields, ResponsesCall& call) {
  const Json* reasoning = fields.object("reasoning");
  if (!reasoning) return;
  JsonFields inner(*reasoning, "reasoning.");
  if (const Json* effort = inner.find("effort")) read_effort(inner, "effort", *effort, call.request);
  fields.take_error(inner);
  for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
}

// What would need a memory of earlier requests.
void refuse_state(JsonFields& fields, std::vector<std::string>& ignored) {
  for (const char* name : {"previous_response_id", "conversation"}) {
    if (fields.find(name)) fields.fail(name, "expected none: this server stores nothing, send the whole input instead");
  }
  bool background = false, store = false;
  fields.boolean("background", background);
  if (background) fields.fail("background", "expected false: this server stores nothing");
  fields.boolean("store", store);
  if (store) ignored.push_back("store");
}

void read_include(JsonFields& fields, ResponsesCall& call) {
  const Json* include = fields.array("include");
  if (!include) return;
  for (const Json& what : *include) {
    if (what == "message.output_text.logprobs") {
      call.request.logprobs = true;
    } else if (what != "reasoning.encrypted_content") {  // reasoning comes in the open here
      call.ignored.push_back("include:" + to_text(what));
    }
  }
}

Json settings_echo(const Json& body, const ChatRequest& request) {
  Json echo;
  const auto copy = [&](const char* name, Json otherwise) {
    const auto found = body.find(name);
    echo[name] = found == body.end() ? std::move(otherwise) : *found;
  };
  copy("instructions", nullptr);
  copy("max_output_tokens", nullptr);
  copy("metadata", Json::object());
  copy("parallel_tool_calls", true);
  copy("reasoning", Json{{"effort", nullptr}, {"summary", nullptr}});
  echo["store"] = false;
  echo["temperature"] = request.sampling.temperature;
  copy("text", Json{{"format", Json{{"type", "text"}}}});
  copy("tool_choice", "auto");
  copy("tools", Json::array());
  echo["top_p"] = request.sampling.top_p;
  copy("truncation", "disabled");
  copy("user", nullptr);
  return echo;
}

}  // namespace

std::variant<ResponsesCall, ApiError> parse_responses_call(std::string_view body, const SamplingParams& defaults) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  const Json& json = std::get<Json>(parsed);
  ResponsesCall call;
  ChatRequest& request = call.request;
  request.sampling = defaults;
  JsonFields fields(json);
  read_call_options(fields, call);
  read_input(fields, request);
  read_response_tools(fields, call);
  read_text_settings(fields, call);
  read_reasoning_settings(fields, call);
  refuse_state(fields, call.ignored);
  read_generation(fields, request);
  read_stop(fields, "stop", request);
  read_template(fields, request);
  read_include(fields, call);
  fields.integer("max_output_tokens", request.max_tokens, 1, kMaxInt);
  fields.integer("top_logprobs", request.sampling.top_logprobs, 0, kMaxApiTopLogprobs);
  if (request.sampling.top_logprobs > 0) request.logprobs = true;
  fields.object("metadata");
  std::string truncation;
  fields.string("truncation", truncation);
  if (!truncation.empty() && truncation != "disabled") call.ignored.push_back("truncation");
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  call.echo = to_text(settings_echo(json, request));
  return call;
}

}  // namespace chimere::server
