// openai_completion_request.cpp  The fields of a completion request.
#include "server/protocols/openai_completion_request.h"

#include <utility>

namespace chimere::server {

using orchestrator::CompletionRequest;

namespace {

constexpr size_t kMaxPrompts = 32;
constexpr int kMaxLegacyLogprobs = 20;
constexpr int kDefaultMaxTokens = 16;  // as OpenAI's own server

bool is_ids(const Json& json) {
  for (const Json& id : json) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > kMaxInt) return false;
  }
  return json.is_array() && !json.empty();
}

// A string, an array of strings, of token ids, or of arrays of token ids.
void read_prompts(JsonFields& fields, const CompletionRequest& model, std::vector<CompletionRequest>& prompts) {
  const Json* prompt = fields.find("prompt");
  if (!prompt) return fields.fail("prompt", "expected a string or an array, found none");
  auto add = [&](const Json& json) {
    CompletionRequest request = model;
    if (json.is_string()) {
      request.prompt = json.get<std::string>();
    } else if (is_ids(json)) {
      request.prompt_ids = json.get<std::vector<int32_t>>();
    } else {
      return fields.fail("prompt", "expected strings or arrays of token ids");
    }
    prompts.push_back(std::move(request));
  };
  if (!prompt->is_array() || is_ids(*prompt)) return add(*prompt);
  if (prompt->empty() || prompt->size() > kMaxPrompts) {
    return fields.fail(
        "prompt", "expected 1 to " + std::to_string(kMaxPrompts) + " prompts, found " + std::to_string(prompt->size()));
  }
  for (const Json& one : *prompt) add(one);
}

// `logprobs` is a number here: how many alternatives are wanted beside each token.
void read_legacy_logprobs(JsonFields& fields, CompletionRequest& request, bool echo) {
  if (!fields.find("logprobs")) return;
  fields.integer("logprobs", request.sampling.top_logprobs, 0, kMaxLegacyLogprobs);
  request.logprobs = true;
  if (echo) fields.fail("logprobs", "expected no echo beside it: this server knows logprobs of what it generates only");
}

}  // namespace

std::variant<CompletionCall, ApiError> parse_completion_call(std::string_view body,
                                                             const orchestrator::Defaults& defaults) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  CompletionCall call;
  CompletionRequest request;
  defaults.apply_to(request);
  if (request.max_tokens < 0) request.max_tokens = kDefaultMaxTokens;
  JsonFields fields(std::get<OwnedJson>(parsed));
  read_call_options(fields, call);
  if (const Json* options = fields.object("stream_options")) {
    JsonFields inner(*options, "stream_options.");
    inner.boolean("include_usage", call.include_usage);
    fields.take_error(inner);
    for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
  }
  fields.boolean("echo", call.echo);
  read_generation(fields, request);
  read_stop(fields, "stop", request);
  fields.integer("max_tokens", request.max_tokens, 1, kMaxInt);
  read_legacy_logprobs(fields, request, call.echo);
  if (const Json* format = fields.object("response_format")) {
    read_format(fields, "response_format", *format, request.form);
  }
  fields.integer("n", call.n, 1, kMaxChoices);
  int best_of = call.n;
  fields.integer("best_of", best_of, 1, kMaxChoices);
  if (best_of != call.n) {
    fields.fail("best_of", "expected the value of n (" + std::to_string(call.n) + "), found " +
                               std::to_string(best_of) + ": this server returns every answer it makes");
  }
  std::string suffix;
  fields.string("suffix", suffix);
  if (!suffix.empty()) request.gap = orchestrator::FillIn{std::move(suffix)};
  read_prompts(fields, request, call.prompts);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  return call;
}

}  // namespace chimere::server
