// chat_schema.cpp  The fields of a chat request.
#include "server/protocols/chat_schema.h"

#include "server/protocols/message_schema.h"

namespace chimere::server {
namespace {

using orchestrator::ChatRequest;

void read_lengths(JsonFields& fields, ChatRequest& request) {
  fields.integer("max_tokens", request.max_tokens, 1, kMaxInt);
  fields.integer("max_completion_tokens", request.max_tokens, 1, kMaxInt);  // the newer name wins
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

std::variant<ChatCall, ApiError> parse_chat_call(std::string_view body, const SamplingParams& defaults) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  ChatCall call;
  call.request.sampling = defaults;
  JsonFields fields(std::get<Json>(parsed));
  read_call_options(fields, call);
  call.request.messages = read_messages(fields, call.ignored);
  read_tools(fields, call.request);
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
  fields.integer("n", call.n, 1, kMaxChoices);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  return call;
}

}  // namespace chimere::server
