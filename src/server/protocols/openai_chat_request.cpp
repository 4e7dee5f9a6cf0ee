// openai_chat_request.cpp  The fields of a chat request.
#include "server/protocols/openai_chat_request.h"

#include "server/odo/odo_json.h"
#include "server/protocols/shared/conversation_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ChatRequest;

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

// Reads request["messages"]; errors go to `request`, names of unknown fields to `ignored`.
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

void read_lengths(JsonFields& fields, ChatRequest& request) {
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {  // the newer name wins
    // -1: until the context is full, as llama.cpp's page says it.
    const Json* given = fields.find(name);
    if (given && *given == -1) {
      request.max_tokens = -1;
    } else {
      fields.integer(name, request.max_tokens, 1, kMaxInt);
    }
  }
  read_stop(fields, "stop", request);
}

void read_logprobs(JsonFields& fields, ChatRequest& request) {
  fields.boolean("logprobs", request.logprobs);
  fields.integer("top_logprobs", request.sampling.top_logprobs, 0, kMaxApiTopLogprobs);
  if (request.sampling.top_logprobs > 0 && !request.logprobs) {
    fields.fail("top_logprobs", "expected logprobs to be true as well");
  }
}

void read_stream_options(JsonFields& fields, ChatCall& call) {
  const Json* options = fields.object("stream_options");
  if (!options) return;
  JsonFields inner(*options, "stream_options.");
  inner.boolean("include_usage", call.include_usage);
  fields.take_error(inner);
  for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
}

// vLLM's two words for a conversation that does not end with a question.
void read_turn(JsonFields& fields, ChatRequest& request) {
  std::optional<bool> wanted;
  bool value = false;
  fields.boolean("continue_final_message", value);
  if (fields.find("continue_final_message")) wanted = value;
  fields.boolean("add_generation_prompt", request.add_generation_prompt);
  if (wanted == true && fields.find("add_generation_prompt") && request.add_generation_prompt) {
    fields.fail("add_generation_prompt", "expected false beside continue_final_message: the answer has begun");
  }
  read_open_turn(fields, wanted, request);
}

}  // namespace

std::variant<ChatCall, ApiError> parse_chat_call(std::string_view body, const orchestrator::Defaults& defaults) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  ChatCall call;
  defaults.apply_to(call.request);
  JsonFields fields(std::get<OwnedJson>(parsed));
  read_call_options(fields, call);
  call.request.messages = read_messages(fields, call.ignored);
  call.request.tools = read_functions(fields);
  AllowedTools allowed = read_tool_choice(fields, call.request);
  for (std::string& name : allowed.ignored) call.ignored.push_back(std::move(name));
  check_tool_choice(fields, allowed.names, call.request);
  read_stream_options(fields, call);
  read_generation(fields, call.request);
  read_lengths(fields, call.request);
  read_logprobs(fields, call.request);
  read_template(fields, call.request);
  if (const Json* effort = fields.find("reasoning_effort")) {
    read_effort(fields, "reasoning_effort", *effort, call.request);
  }
  if (const Json* format = fields.object("response_format")) {
    read_format(fields, "response_format", *format, call.request.form);
  }
  read_turn(fields, call.request);
  fields.boolean("verbose", call.verbose);
  bool store = true;
  fields.boolean("store", store);
  call.request.stays_private = !store;
  read_progress(fields, call.stream, call.request);
  fields.integer("n", call.n, 1, kMaxChoices);
  read_odo(fields, call.odo, call.for_runs);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  call.ignored.insert(call.ignored.end(), call.for_runs.begin(), call.for_runs.end());
  call.request.given = fields.given();
  return call;
}

}  // namespace chimere::server
