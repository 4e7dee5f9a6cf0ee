// openai_responses_request.cpp  Input items to messages.
#include "server/protocols/openai_responses_request.h"

#include <algorithm>
#include <utility>

#include "server/protocols/shared/conversation_fields.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::ToolChoice;

namespace {

constexpr size_t kMaxItems = 8192;

// A string, or an array of parts with text.
bool read_text_parts(JsonFields& fields, const std::string& name, const Json& json, std::vector<std::string>& texts) {
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
      fields.fail(path_at(name, i), "expected a part with text: this server reads text only");
      return false;
    }
    fields.check_keys(path_at(name, i), json[i], {"type", "text", "annotations", "logprobs"});
    texts.push_back(part.get<std::string>());
  }
  return true;
}

// Items of one turn of the assistant (a thought, a text, calls) become one message.
class ItemReader {
 public:
  ItemReader(JsonFields& fields, ResponsesCall& call)
      : fields_(fields), call_(call), messages_(call.request.messages) {}

  void read(const std::string& name, const Json& item) {
    if (!item.is_object()) return fields_.fail_type(name, "an object", item);
    const Json type = item.value("type", Json("message"));
    if (type == "message") {
      read_message(name, item);
    } else if (type == "function_call") {
      read_call(name, item);
    } else if (type == "custom_tool_call") {
      read_custom_call(name, item);
    } else if (type == "function_call_output" || type == "custom_tool_call_output") {
      read_output(name, item);
    } else if (type == "tool_search_call") {
      read_search(name, item);
    } else if (type == "tool_search_output") {
      read_found_tools(name, item);
    } else if (type == "reasoning") {
      read_reasoning(name, item);
    } else if (type.is_string()) {
      call_.ignored.push_back(name);  // of tools that other servers run; there is nothing in it for this model
    } else {
      fields_.fail_type(name + ".type", "a string", type);
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
    if (!read_text_parts(fields_, name + ".content", *content, texts)) return;
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

  // The name of a tool that was called, as the model knows it.
  std::string called(const std::string& name, const Json& item) {
    const Json space = item.value("namespace", Json());
    return flat_name(space.is_string() ? space.get<std::string>() : std::string(), string_of(name, item, "name"));
  }

  void read_call(const std::string& name, const Json& item) {
    chat::ToolCall call{string_of(name, item, "call_id"), called(name, item), string_of(name, item, "arguments")};
    fields_.check_keys(name, item, {"type", "id", "call_id", "name", "namespace", "arguments", "status"});
    assistant().tool_calls.push_back(std::move(call));
  }

  void read_custom_call(const std::string& name, const Json& item) {
    const Json arguments{{"input", string_of(name, item, "input")}};
    chat::ToolCall call{string_of(name, item, "call_id"), called(name, item), to_text(arguments)};
    fields_.check_keys(name, item, {"type", "id", "call_id", "name", "namespace", "input", "status"});
    assistant().tool_calls.push_back(std::move(call));
  }

  void read_search(const std::string& name, const Json& item) {
    const Json id = item.value("call_id", Json());
    const Json arguments = item.value("arguments", Json::object());
    fields_.check_keys(name, item, {"type", "id", "call_id", "execution", "arguments", "status"});
    assistant().tool_calls.push_back({id.is_string() ? id.get<std::string>() : std::string(), "tool_search",
                                      arguments.is_string() ? arguments.get<std::string>() : to_text(arguments)});
  }

  // Tools that a search found can be called from here on.
  void read_found_tools(const std::string& name, const Json& item) {
    const Json id = item.value("call_id", Json());
    const Json tools = item.value("tools", Json::array());
    if (!tools.is_array()) return fields_.fail_type(name + ".tools", "an array", tools);
    fields_.check_keys(name, item, {"type", "id", "call_id", "execution", "tools", "status"});
    chat::Message& result = add("tool");
    if (id.is_string()) result.tool_call_id = id.get<std::string>();
    result.content = to_text(tools);
    read_response_tools(fields_, name + ".tools", tools, call_.request.tools, call_.tools, call_.ignored);
  }

  void read_output(const std::string& name, const Json& item) {
    chat::Message result;
    result.role = "tool";
    result.tool_call_id = string_of(name, item, "call_id");
    std::vector<std::string> texts;
    if (!read_text_parts(fields_, name + ".output", item.value("output", Json()), texts)) return;
    fields_.check_keys(name, item, {"type", "call_id", "output", "id", "status"});
    set_text(result, texts);
    messages_.push_back(std::move(result));
  }

  void read_reasoning(const std::string& name, const Json& item) {
    std::vector<std::string> texts;
    for (const char* field : {"content", "summary"}) {
      const Json parts = item.value(field, Json());
      if (parts.is_null() || !texts.empty()) continue;
      if (!read_text_parts(fields_, name + "." + field, parts, texts)) return;
    }
    fields_.check_keys(name, item, {"type", "id", "content", "summary", "status", "encrypted_content"});
    chat::Message thought;
    set_text(thought, texts);
    const std::string text = chat::text_of(thought);
    if (!text.empty()) add("assistant").reasoning_content = text;
  }

  JsonFields& fields_;
  ResponsesCall& call_;
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

// A part of an answer that is kept: {"type": "item_reference", "id": ...}, and the type may be left out.
bool is_reference(const Json& item) {
  if (!item.is_object()) return false;
  const Json type = item.value("type", Json());
  return type == "item_reference" || (type.is_null() && item.contains("id") && !item.contains("role"));
}

// What the conversation is made of: that of the response it goes on with, then the request's own, with parts that it
// names in place of their names.
Json read_items(JsonFields& fields, const KeptResponses* kept, const std::string& owner) {
  Json items = Json::array();
  std::string previous;
  fields.string("previous_response_id", previous);
  if (!previous.empty()) {
    const auto before = kept ? kept->conversation(owner, previous) : std::nullopt;
    if (!before) {
      fields.fail("previous_response_id", "expected the id of a response that is kept, found '" +
                                              previous.substr(0, 64) + "': send the whole input instead");
      return items;
    }
    for (const KeptResponses::Item& item : *before) {
      if (auto json = parse_json(item.json)) items.push_back(std::move(*json));
    }
  }
  const Json* input = fields.find("input");
  if (!input) {
    fields.fail("input", "expected a string or an array of items, found none");
  } else if (input->is_string()) {
    items.push_back(Json{{"type", "message"}, {"role", "user"}, {"content", *input}});
  } else if (!input->is_array()) {
    fields.fail_type("input", "a string or an array of items", *input);
  } else {
    for (size_t i = 0; i < input->size(); ++i) {
      const Json& item = (*input)[i];
      if (!is_reference(item)) {
        items.push_back(item);
        continue;
      }
      const Json id = item.value("id", Json());
      const auto found = kept && id.is_string() ? kept->item(owner, id.get<std::string>()) : std::nullopt;
      auto json = found ? parse_json(*found) : parse_json("null");
      if (!found || !json) {
        fields.fail(path_at("input", i),
                    "expected the id of an item that is kept, found " + to_text(id) + ": send the item itself instead");
        return items;
      }
      items.push_back(std::move(*json));
    }
  }
  if (fields.ok() && (items.empty() || items.size() > kMaxItems)) {
    fields.fail("input",
                "expected 1 to " + std::to_string(kMaxItems) + " items, found " + std::to_string(items.size()));
  }
  return items;
}

void read_input(JsonFields& fields, const Json& items, ResponsesCall& call) {
  std::vector<chat::Message>& messages = call.request.messages;
  std::string instructions;
  fields.string("instructions", instructions);
  if (!instructions.empty()) {
    messages.emplace_back();
    messages.back().role = "system";
    messages.back().content = instructions;
  }
  const Json* input = fields.find("input");
  const size_t n_own = input && input->is_array() ? input->size() : 1;
  const size_t n_before = items.size() - std::min(items.size(), n_own);
  ItemReader reader(fields, call);
  for (size_t i = 0; i < items.size() && fields.ok(); ++i) {
    reader.read(i < n_before ? "previous_response_id" : path_at("input", i - n_before), items[i]);
  }
  join_system(messages);
}

void read_declared_tools(JsonFields& fields, ResponsesCall& call) {
  if (const Json* list = fields.array("tools")) {
    read_response_tools(fields, "tools", *list, call.request.tools, call.tools, call.ignored);
  }
  AllowedTools allowed = read_tool_choice(fields, call.request);
  for (std::string& name : allowed.ignored) call.ignored.push_back(std::move(name));
  // A tool of a namespace is chosen by its own name.
  std::map<std::string, std::string> flat_names;
  for (const auto& [flat, tool] : call.tools) flat_names.try_emplace(tool.name, flat);
  const auto flatten = [&](std::string& name) {
    if (const auto flat = flat_names.find(name); flat != flat_names.end()) name = flat->second;
  };
  flatten(call.request.tool_name);
  for (std::string& name : allowed.names) flatten(name);
  check_tool_choice(fields, allowed.names, call.request);
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

// What this server remembers, and what it does not.
void read_state(JsonFields& fields, bool can_keep, const Json& items, ResponsesCall& call) {
  if (fields.find("conversation")) {
    fields.fail("conversation",
                "expected none: this server keeps responses and no conversations, use "
                "previous_response_id or send the whole input");
  }
  bool background = false, store = true;
  fields.boolean("background", background);
  if (background) fields.fail("background", "expected false: answers are made while their client waits");
  fields.boolean("store", store);
  call.is_kept = store && can_keep;
  call.request.stays_private = !store;
  if (fields.find("store") && store && !can_keep) call.ignored.push_back("store");
  if (!call.is_kept) return;
  for (const Json& item : items) {
    const Json id = item.is_object() ? item.value("id", Json()) : Json();
    call.items.push_back({id.is_string() ? id.get<std::string>() : std::string(), to_text(item)});
  }
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

Json settings_echo(const Json& body, const ResponsesCall& call) {
  const ChatRequest& request = call.request;
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
  copy("previous_response_id", nullptr);
  echo["store"] = call.is_kept;
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

std::variant<ResponsesCall, ApiError> parse_responses_call(std::string_view body,
                                                           const orchestrator::Defaults& defaults,
                                                           const KeptResponses* kept, const std::string& owner) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  const Json& json = std::get<OwnedJson>(parsed);
  ResponsesCall call;
  ChatRequest& request = call.request;
  defaults.apply_to(request);
  JsonFields fields(json);
  read_call_options(fields, call);
  const Json items = read_items(fields, kept, owner);
  read_input(fields, items, call);
  read_declared_tools(fields, call);
  read_text_settings(fields, call);
  read_reasoning_settings(fields, call);
  read_state(fields, kept && kept->is_on(), items, call);
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
  request.given = fields.given();
  call.echo = to_text(settings_echo(json, call));
  return call;
}

}  // namespace chimere::server
