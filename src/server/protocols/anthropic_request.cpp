// anthropic_request.cpp  Content blocks to messages.
#include "server/protocols/anthropic_request.h"

#include <utility>

#include "server/protocols/shared/conversation_fields.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::ToolChoice;

namespace {

// A string or an array of text blocks.
bool read_text_blocks(JsonFields& fields, const std::string& name, const Json& json, std::vector<std::string>& texts) {
  if (json.is_string()) {
    texts.push_back(json.get<std::string>());
    return true;
  }
  if (!json.is_array()) {
    fields.fail_type(name, "a string or an array of text blocks", json);
    return false;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    const bool is_text = json[i].is_object() && json[i].value("type", Json()) == "text";
    const Json text = is_text ? json[i].value("text", Json()) : Json();
    if (!text.is_string()) {
      fields.fail(path_at(name, i), "expected a block of type text: this server reads text only");
      return false;
    }
    fields.check_keys(path_at(name, i), json[i], {"type", "text", "cache_control"});
    texts.push_back(text.get<std::string>());
  }
  return true;
}

// One message of the API becomes one of ours and, before it, one for each result of a tool.
class BlockReader {
 public:
  BlockReader(JsonFields& fields, std::string role, std::string name)
      : fields_(fields), name_(std::move(name)), is_assistant_(role == "assistant") {
    message_.role = std::move(role);
  }

  void read(const Json& content) {
    if (content.is_string()) {
      texts_.push_back(content.get<std::string>());
      return;
    }
    if (!content.is_array()) return fields_.fail_type(name_, "a string or an array of blocks", content);
    for (size_t i = 0; i < content.size() && fields_.ok(); ++i) {
      const std::string name = path_at(name_, i);
      if (content[i].is_object()) {
        read_block(name, content[i]);
      } else {
        fields_.fail_type(name, "an object", content[i]);
      }
    }
  }

  void add_to(std::vector<chat::Message>& messages) {
    for (chat::Message& result : results_) messages.push_back(std::move(result));
    if (texts_.empty() && !results_.empty()) return;
    set_text(message_, texts_);
    messages.push_back(std::move(message_));
  }

 private:
  void read_block(const std::string& name, const Json& block) {
    const Json type = block.value("type", Json());
    if (type == "text") {
      const Json text = block.value("text", Json());
      if (!text.is_string()) return fields_.fail(name + ".text", "expected a string");
      fields_.check_keys(name, block, {"type", "text", "cache_control"});
      texts_.push_back(text.get<std::string>());
    } else if (is_assistant_ && type == "thinking") {
      const Json thinking = block.value("thinking", Json());
      if (!thinking.is_string()) return fields_.fail(name + ".thinking", "expected a string");
      fields_.check_keys(name, block, {"type", "thinking", "signature"});
      message_.reasoning_content = message_.reasoning_content.value_or("") + thinking.get<std::string>();
    } else if (is_assistant_ && type == "redacted_thinking") {
      return;  // made by another server; there is nothing in it that this model could read
    } else if (is_assistant_ && type == "tool_use") {
      read_call(name, block);
    } else if (!is_assistant_ && type == "tool_result") {
      read_result(name, block);
    } else {
      fields_.fail(name + ".type", std::string("expected ") +
                                       (is_assistant_ ? "text, thinking or tool_use" : "text or tool_result") +
                                       ", found " + to_text(type) + ": this server reads text only");
    }
  }

  void read_call(const std::string& name, const Json& block) {
    const Json called = block.value("name", Json());
    const Json input = block.value("input", Json::object());
    const Json id = block.value("id", Json());
    if (!called.is_string()) return fields_.fail(name + ".name", "expected a string");
    if (!input.is_object()) return fields_.fail_type(name + ".input", "an object", input);
    fields_.check_keys(name, block, {"type", "id", "name", "input", "cache_control"});
    message_.tool_calls.push_back(
        {id.is_string() ? id.get<std::string>() : std::string(), called.get<std::string>(), to_text(input)});
  }

  void read_result(const std::string& name, const Json& block) {
    chat::Message result;
    result.role = "tool";
    const Json id = block.value("tool_use_id", Json());
    if (!id.is_string()) return fields_.fail(name + ".tool_use_id", "expected a string");
    fields_.check_keys(name, block, {"type", "tool_use_id", "content", "is_error", "cache_control"});
    result.tool_call_id = id.get<std::string>();
    std::vector<std::string> texts;
    if (const auto content = block.find("content"); content != block.end() && !content->is_null()) {
      if (!read_text_blocks(fields_, name + ".content", *content, texts)) return;
    }
    if (block.value("is_error", Json()) == true) texts.insert(texts.begin(), "Error:");
    set_text(result, texts);
    results_.push_back(std::move(result));
  }

  JsonFields& fields_;
  const std::string name_;
  const bool is_assistant_;
  chat::Message message_;
  std::vector<chat::Message> results_;
  std::vector<std::string> texts_;
};

void read_system(JsonFields& fields, ChatRequest& request) {
  const Json* system = fields.find("system");
  if (!system) return;
  std::vector<std::string> texts;
  if (!read_text_blocks(fields, "system", *system, texts)) return;
  chat::Message message;
  message.role = "system";
  set_text(message, texts);
  request.messages.push_back(std::move(message));
}

void read_conversation(JsonFields& fields, ChatRequest& request, std::vector<std::string>& ignored) {
  const Json* list = fields.array("messages");
  if (!fields.ok()) return;
  if (!list || list->empty() || list->size() > kMaxMessages) {
    return fields.fail("messages", "expected 1 to " + std::to_string(kMaxMessages) + " messages, found " +
                                       std::to_string(list ? list->size() : 0));
  }
  for (size_t i = 0; i < list->size() && fields.ok(); ++i) {
    const Json& json = (*list)[i];
    if (!json.is_object()) return fields.fail_type(path_at("messages", i), "an object", json);
    JsonFields inner(json, path_at("messages", i) + ".");
    std::string role;
    inner.string("role", role);
    if (role != "user" && role != "assistant" && role != "system") {
      inner.fail("role", "expected user, assistant or system, found '" + role + "'");
    }
    BlockReader reader(inner, role, "content");
    if (const Json* content = inner.find("content")) {
      reader.read(*content);
    } else {
      inner.fail("content", "expected a string or an array of blocks, found none");
    }
    fields.take_error(inner);
    for (std::string& name : inner.unknown()) ignored.push_back(std::move(name));
    reader.add_to(request.messages);
  }
}

void read_anthropic_tools(JsonFields& fields, AnthropicCall& call) {
  const Json* list = fields.array("tools");
  if (!list) return;
  if (list->size() > kMaxTools) {
    return fields.fail("tools",
                       "expected at most " + std::to_string(kMaxTools) + ", found " + std::to_string(list->size()));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& tool = (*list)[i];
    const std::string name = path_at("tools", i);
    if (!tool.is_object()) return fields.fail_type(name, "an object", tool);
    const Json type = tool.value("type", Json("custom"));
    if (type != "custom") {
      call.ignored.push_back(name);  // runs on Anthropic's machines
      continue;
    }
    const Json called = tool.value("name", Json());
    if (!called.is_string()) return fields.fail(name + ".name", "expected a string");
    // Prompts are cached and arguments streamed without being asked to.
    fields.check_keys(
        name, tool,
        {"type", "name", "description", "input_schema", "strict", "cache_control", "eager_input_streaming"});
    Json function;
    function["name"] = called;
    if (tool.value("description", Json()).is_string()) function["description"] = tool["description"];
    function["parameters"] = tool.value("input_schema", Json{{"type", "object"}, {"properties", Json::object()}});
    call.request.tools.push_back({to_text(Json{{"type", "function"}, {"function", std::move(function)}})});
  }
}

void read_anthropic_choice(JsonFields& fields, ChatRequest& request) {
  const Json* choice = fields.object("tool_choice");
  if (!choice) return;
  JsonFields inner(*choice, "tool_choice.");
  std::string type;
  inner.string("type", type);
  bool alone = false;
  inner.boolean("disable_parallel_tool_use", alone);
  request.parallel_tool_calls = !alone;
  if (type == "any") {
    request.tool_choice = ToolChoice::required;
  } else if (type == "none") {
    request.tool_choice = ToolChoice::none;
  } else if (type == "tool") {
    request.tool_choice = ToolChoice::named;
    inner.string("name", request.tool_name);
  } else if (type != "auto") {
    inner.fail("type", "expected auto, any, tool or none, found '" + type + "'");
  }
  fields.take_error(inner);
  check_tool_choice(fields, {}, request);
}

void read_anthropic_thinking(JsonFields& fields, AnthropicCall& call) {
  call.request.enable_thinking = false;
  const Json* thinking = fields.object("thinking");
  if (!thinking) return;
  JsonFields inner(*thinking, "thinking.");
  std::string type;
  inner.string("type", type);
  if (type == "enabled" || type == "adaptive") {
    call.request.enable_thinking = true;
    inner.integer("budget_tokens", call.request.thinking_budget, 0, kMaxInt);
  } else if (type != "disabled") {
    inner.fail("type", "expected enabled, adaptive or disabled, found '" + type + "'");
  }
  fields.take_error(inner);
  for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
}

// How hard to try. It says how long a thought may be and does not ask for one.
void read_output_config(JsonFields& fields, AnthropicCall& call) {
  const Json* config = fields.object("output_config");
  if (!config) return;
  JsonFields inner(*config, "output_config.");
  if (const Json* effort = inner.find("effort")) {
    const std::optional<bool> thinks = call.request.enable_thinking;
    read_effort(inner, "effort", *effort, call.request);
    call.request.enable_thinking = thinks;
  }
  if (const Json* format = inner.object("format")) read_format(inner, "format", *format, call.request.form);
  fields.take_error(inner);
  for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
}

}  // namespace

std::variant<AnthropicCall, ApiError> parse_anthropic_call(std::string_view body,
                                                           const orchestrator::Defaults& defaults, bool is_count) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  AnthropicCall call;
  ChatRequest& request = call.request;
  defaults.apply_to(request);
  JsonFields fields(std::get<OwnedJson>(parsed));
  if (fields.find("thread")) {
    // The code at which Anthropic's SDK sends the whole conversation instead.
    return ApiError{400, "thread: expected none: this server holds no conversations, send all messages",
                    "invalid_request_error", "thread", "thread_unsupported_request"};
  }
  fields.string("model", call.model);
  fields.boolean("stream", call.stream);
  read_system(fields, request);
  read_conversation(fields, request, call.ignored);
  read_anthropic_tools(fields, call);
  read_anthropic_choice(fields, request);
  read_anthropic_thinking(fields, call);
  read_output_config(fields, call);
  fields.integer("max_tokens", request.max_tokens, 1, kMaxInt);
  if (!is_count && request.max_tokens < 0) fields.fail("max_tokens", "expected an integer of at least 1, found none");
  read_stop(fields, "stop_sequences", request);
  read_generation(fields, request);
  read_open_turn(fields, std::nullopt, request);
  if (const Json* metadata = fields.object("metadata")) {
    JsonFields inner(*metadata, "metadata.");
    inner.string("user_id", call.user);
    fields.take_error(inner);
    for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
  }
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  request.given = fields.given();
  return call;
}

}  // namespace chimere::server
