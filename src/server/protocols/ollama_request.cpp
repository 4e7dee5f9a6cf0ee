// ollama_request.cpp  Ollama's words for conversations and options.
#include "server/protocols/ollama_request.h"

#include <utility>

#include "server/protocols/shared/conversation_fields.h"

namespace chimere::server {

using orchestrator::ChatRequest;
using orchestrator::CompletionRequest;
using orchestrator::GenerateOptions;

namespace {

constexpr const char* kLatest = ":latest";

void read_model(JsonFields& fields, CallOptions& call, std::string& named) {
  fields.string("model", named);
  call.model = without_tag(named);
}

void refuse_images(JsonFields& fields) {
  const Json* images = fields.array("images");
  if (images && !images->empty()) fields.fail("images", "expected none: this server reads text only");
}

// {"num_predict", "temperature", ...}. How Ollama holds a model (num_ctx, num_gpu, ...) is not known here.
void read_options(JsonFields& fields, GenerateOptions& to, std::vector<std::string>& ignored) {
  const Json* options = fields.object("options");
  if (!options) return;
  JsonFields inner(*options, "options.");
  SamplingParams& s = to.sampling;
  int n_predict = -1;
  inner.integer("num_predict", n_predict, -2, kMaxInt);
  if (n_predict > 0) to.max_tokens = n_predict;  // -1: without end, -2: until the context is full
  inner.number("temperature", s.temperature, 0, 10);
  inner.integer("top_k", s.top_k, -1, kMaxInt);
  inner.number("top_p", s.top_p, 0, 1);
  inner.number("min_p", s.min_p, 0, 1);
  inner.number("repeat_penalty", s.repetition_penalty, 0.01, 100);
  inner.integer("repeat_last_n", s.penalty_last_n, -1, kMaxInt);
  inner.number("presence_penalty", s.presence_penalty, -2, 2);
  inner.number("frequency_penalty", s.frequency_penalty, -2, 2);
  int64_t seed = -1;
  inner.integer("seed", seed, -1, std::numeric_limits<int64_t>::max());
  if (seed >= 0) to.seed = static_cast<uint64_t>(seed);
  read_stop(inner, "stop", to);
  fields.take_error(inner);
  for (std::string& name : inner.unknown()) ignored.push_back(std::move(name));
  for (std::string& name : inner.given()) to.given.push_back(std::move(name));
}

// "json", or a schema.
void read_ollama_format(JsonFields& fields, orchestrator::AnswerForm& form) {
  const Json* format = fields.find("format");
  if (!format || *format == "") return;
  if (*format == "json") {
    form.json_object = true;
  } else if (format->is_object()) {
    form.json_schema = to_text(*format);
  } else {
    fields.fail("format", "expected \"json\" or a JSON schema, found " + to_text(*format));
  }
}

// A boolean, or how much.
void read_think(JsonFields& fields, OllamaCall& call, ChatRequest& request) {
  const Json* think = fields.find("think");
  if (!think) return;
  if (think->is_boolean()) {
    request.enable_thinking = think->get<bool>();
  } else if (*think == "low" || *think == "medium" || *think == "high") {
    read_effort(fields, "think", *think, request);
  } else {
    return fields.fail("think", "expected a boolean, \"low\", \"medium\" or \"high\", found " + to_text(*think));
  }
  call.wants_thought = request.enable_thinking == true;
  request.given.emplace_back("think");
}

void read_ollama_logprobs(JsonFields& fields, GenerateOptions& options) {
  fields.boolean("logprobs", options.logprobs);
  fields.integer("top_logprobs", options.sampling.top_logprobs, 0, kMaxApiTopLogprobs);
  if (options.sampling.top_logprobs > 0) options.logprobs = true;
}

chat::Message read_ollama_message(JsonFields& fields) {
  chat::Message message;
  fields.string("role", message.role);
  if (message.role != "system" && message.role != "user" && message.role != "assistant" && message.role != "tool") {
    fields.fail("role", "expected system, user, assistant or tool, found '" + message.role + "'");
  }
  std::string content;
  fields.string("content", content);
  message.content = std::move(content);
  refuse_images(fields);
  if (message.role == "assistant") {
    std::string thinking;
    fields.string("thinking", thinking);
    if (!thinking.empty()) message.reasoning_content = std::move(thinking);
    read_tool_calls(fields, message);
  }
  if (message.role == "tool") {
    fields.string("tool_call_id", message.tool_call_id);
    fields.string("tool_name", message.name);
  }
  return message;
}

void read_ollama_messages(JsonFields& fields, OllamaCall& call, ChatRequest& request) {
  const Json* list = fields.array("messages");
  if (!list || !fields.ok()) return;
  if (list->size() > kMaxMessages) {
    return fields.fail("messages", "expected at most " + std::to_string(kMaxMessages) + " messages, found " +
                                       std::to_string(list->size()));
  }
  for (size_t i = 0; i < list->size() && fields.ok(); ++i) {
    const Json& json = (*list)[i];
    if (!json.is_object()) return fields.fail_type(path_at("messages", i), "an object", json);
    JsonFields inner(json, path_at("messages", i) + ".");
    request.messages.push_back(read_ollama_message(inner));
    fields.take_error(inner);
    for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
  }
}

void add_message(ChatRequest& request, const char* role, std::string text) {
  chat::Message& message = request.messages.emplace_back();
  message.role = role;
  message.content = std::move(text);
}

}  // namespace

std::string without_tag(std::string_view name) {
  if (name.ends_with(kLatest)) name.remove_suffix(std::string_view(kLatest).size());
  return std::string(name);
}

std::variant<OllamaCall, ApiError> parse_ollama_chat(std::string_view body, const orchestrator::Defaults& defaults) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  OllamaCall call;
  ChatRequest request;
  defaults.apply_to(request);
  JsonFields fields(std::get<OwnedJson>(parsed));
  call.is_chat = true;
  call.stream = true;
  read_model(fields, call, call.named);
  fields.boolean("stream", call.stream);
  read_ollama_messages(fields, call, request);
  call.only_loads = request.messages.empty();
  request.tools = read_functions(fields);
  read_think(fields, call, request);
  read_ollama_format(fields, request.form);
  read_options(fields, request, call.ignored);
  read_ollama_logprobs(fields, request);
  if (!call.only_loads) read_open_turn(fields, std::nullopt, request);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  call.request = std::move(request);
  return call;
}

std::variant<OllamaCall, ApiError> parse_ollama_generate(std::string_view body, const orchestrator::Defaults& defaults,
                                                         const Tokenizer* tokenizer) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  OllamaCall call;
  ChatRequest request;
  defaults.apply_to(request);
  JsonFields fields(std::get<OwnedJson>(parsed));
  call.stream = true;
  read_model(fields, call, call.named);
  fields.boolean("stream", call.stream);
  std::string prompt, system, suffix;
  fields.string("prompt", prompt);
  fields.string("system", system);
  fields.string("suffix", suffix);
  refuse_images(fields);
  bool raw = false;
  fields.boolean("raw", raw);
  call.only_loads = prompt.empty();
  read_think(fields, call, request);
  read_ollama_format(fields, request.form);
  read_options(fields, request, call.ignored);
  read_ollama_logprobs(fields, request);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  if (raw || !suffix.empty()) {  // a gap is filled without the template
    CompletionRequest plain;
    if (!suffix.empty()) plain.gap = orchestrator::FillIn{std::move(suffix)};
    static_cast<GenerateOptions&>(plain) = std::move(static_cast<GenerateOptions&>(request));
    // Whoever sends it raw has put it into the template.
    if (raw && !plain.gap && tokenizer) plain.prompt_ids = tokenizer->encode(prompt, EncodeMode::special, true);
    plain.prompt = std::move(prompt);
    call.request = std::move(plain);
    return call;
  }
  if (!system.empty()) add_message(request, "system", std::move(system));
  add_message(request, "user", std::move(prompt));
  call.request = std::move(request);
  return call;
}

std::variant<OllamaEmbedCall, ApiError> parse_ollama_embed(std::string_view body, const EmbeddingShapeOf& shape_of,
                                                           bool is_legacy) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  Json& json = std::get<OwnedJson>(parsed);
  if (is_legacy && json.contains("prompt")) {
    json["input"] = std::move(json["prompt"]);
    json.erase("prompt");
  }
  // Texts among token ids are OpenAI's alone.
  const auto shape = [&shape_of](const std::string& model) -> EmbeddingShape {
    return {shape_of(without_tag(model)).dimensions};
  };
  OllamaEmbedCall call;
  JsonFields fields(json);
  fields.boolean("truncate", call.cuts);
  if (!fields.ok()) return fields.error();
  json.erase("truncate");
  auto usual = parse_embedding_call(to_text(json), shape);
  if (ApiError* error = std::get_if<ApiError>(&usual)) return std::move(*error);
  static_cast<EmbeddingCall&>(call) = std::move(std::get<EmbeddingCall>(usual));
  call.named = call.model;
  call.model = without_tag(call.named);
  call.is_legacy = is_legacy;
  return call;
}

std::variant<OllamaShowCall, ApiError> parse_ollama_show(std::string_view body) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<OwnedJson>(parsed));
  std::string named;
  fields.string("name", named);
  fields.string("model", named);
  if (named.empty()) fields.fail("model", "expected the name of a model, found none");
  if (!fields.ok()) return fields.error();
  return OllamaShowCall{without_tag(named)};
}

}  // namespace chimere::server
