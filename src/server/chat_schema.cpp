// chat_schema.cpp  The fields of a chat request, one reader for each group.
#include "server/chat_schema.h"

#include <cmath>
#include <limits>

#include "server/json_fields.h"
#include "server/message_schema.h"

namespace chimere::server {
namespace {

using orchestrator::ChatRequest;

constexpr int kMaxApiTopLogprobs = 20;
constexpr size_t kMaxStops = 4;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxBreakers = 16;
constexpr size_t kMaxBreakerBytes = 64;
constexpr size_t kMaxBiases = 1024;
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

// A string or an array of strings.
std::vector<std::string> read_strings(JsonFields& fields, const std::string& name, size_t max_count, size_t max_bytes) {
  const Json* json = fields.find(name);
  if (!json) return {};
  const Json list = json->is_array() ? *json : Json::array({*json});
  std::vector<std::string> strings;
  if (list.size() > max_count) {
    fields.fail(name,
                "expected at most " + std::to_string(max_count) + " strings, found " + std::to_string(list.size()));
    return {};
  }
  for (const Json& item : list) {
    if (!item.is_string()) {
      fields.fail_type(name, "a string or an array of strings", item);
      return {};
    }
    strings.push_back(item.get<std::string>());
    if (strings.back().empty() || strings.back().size() > max_bytes) {
      fields.fail(name, "expected strings of 1 to " + std::to_string(max_bytes) + " bytes, found one of " +
                            std::to_string(strings.back().size()));
      return {};
    }
  }
  return strings;
}

// {"1234": -100, ...}: token ids as keys.
void read_logit_bias(JsonFields& fields, std::vector<TokenBias>& biases) {
  const Json* map = fields.object("logit_bias");
  if (!map) return;
  if (map->size() > kMaxBiases) {
    return fields.fail("logit_bias", "expected at most " + std::to_string(kMaxBiases) + " entries, found " +
                                         std::to_string(map->size()));
  }
  for (const auto& [key, value] : map->items()) {
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) return fields.fail("logit_bias", "expected token ids as keys, found '" + key + "'");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) {
      return fields.fail("logit_bias", "expected numbers from -100 to 100, found " + to_text(value));
    }
    biases.push_back({static_cast<int32_t>(std::stol(key)), value.get<float>()});
  }
}

void read_sampling(JsonFields& fields, ChatRequest& request) {
  SamplingParams& s = request.sampling;
  fields.number("temperature", s.temperature, 0, 2);
  fields.number("top_p", s.top_p, 0, 1);
  fields.integer("top_k", s.top_k, -1, kMaxInt);
  fields.number("min_p", s.min_p, 0, 1);
  fields.number("presence_penalty", s.presence_penalty, -2, 2);
  fields.number("frequency_penalty", s.frequency_penalty, -2, 2);
  fields.number("repetition_penalty", s.repetition_penalty, 0.01, 100);
  fields.number("dry_multiplier", s.dry_multiplier, 0, 100);
  fields.number("dry_base", s.dry_base, 1, 100);
  fields.integer("dry_allowed_length", s.dry_allowed_length, 1, kMaxInt);
  fields.integer("dry_penalty_last_n", s.dry_penalty_last_n, -1, kMaxInt);
  if (fields.find("dry_sequence_breakers")) {
    request.dry_sequence_breakers = read_strings(fields, "dry_sequence_breakers", kMaxBreakers, kMaxBreakerBytes);
  }
  read_logit_bias(fields, s.logit_bias);
  if (fields.find("seed")) {
    int64_t seed = 0;
    fields.integer("seed", seed, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    request.seed = static_cast<uint64_t>(seed);
  }
}

void read_lengths(JsonFields& fields, ChatRequest& request) {
  fields.integer("max_tokens", request.max_tokens, 1, kMaxInt);
  fields.integer("max_completion_tokens", request.max_tokens, 1, kMaxInt);  // the newer name wins
  request.stop = read_strings(fields, "stop", kMaxStops, kMaxStopBytes);
}

void read_logprobs(JsonFields& fields, ChatRequest& request) {
  fields.boolean("logprobs", request.logprobs);
  fields.integer("top_logprobs", request.sampling.top_logprobs, 0, kMaxApiTopLogprobs);
  if (request.sampling.top_logprobs > 0 && !request.logprobs) {
    fields.fail("top_logprobs", "expected logprobs to be true as well");
  }
  request.sampling.stats = request.logprobs;
}

void read_template(JsonFields& fields, ChatRequest& request) {
  if (fields.find("enable_thinking")) {
    bool enabled = true;
    fields.boolean("enable_thinking", enabled);
    request.enable_thinking = enabled;
  }
  fields.integer("thinking_budget", request.thinking_budget, 0, kMaxInt);
  const Json* kwargs = fields.object("chat_template_kwargs");
  if (!kwargs) return;
  for (const char* reserved : {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}) {
    if (kwargs->contains(reserved)) {
      fields.fail("chat_template_kwargs",
                  std::string("expected none of the template's own variables, found '") + reserved + "'");
    }
  }
  Json rest = *kwargs;
  if (const auto thinking = rest.find("enable_thinking"); thinking != rest.end()) {
    if (!thinking->is_boolean()) {
      fields.fail_type("chat_template_kwargs.enable_thinking", "a boolean", *thinking);
    } else if (!request.enable_thinking) {
      request.enable_thinking = thinking->get<bool>();
    }
    rest.erase("enable_thinking");
  }
  if (!rest.empty()) request.template_kwargs = to_text(rest);
}

// Fields whose only value we can honour is the default one.
void check_unsupported(JsonFields& fields) {
  int64_t n = 1;
  fields.integer("n", n, 1, kMaxInt);
  if (n > 1) fields.fail("n", "expected 1, found " + std::to_string(n) + ": this server gives one answer a request");
  if (const Json* format = fields.object("response_format")) {
    const Json type = format->value("type", Json());
    if (type != "text") {
      fields.fail("response_format",
                  "expected type \"text\", found " + to_text(type) + ": this server can not constrain its answers yet");
    }
  }
}

}  // namespace

std::variant<ChatCall, ApiError> parse_chat_call(std::string_view body, const SamplingParams& defaults) {
  auto json = parse_json(body);
  if (!json) return ApiError{400, json.error().message, "invalid_request_error", "", "invalid_json"};
  if (!json->is_object()) {
    return ApiError{400, std::string("request body: expected a JSON object, found ") + describe(*json),
                    "invalid_request_error", "", "invalid_json"};
  }
  ChatCall call;
  call.request.sampling = defaults;
  JsonFields fields(*json);
  fields.string("model", call.model);
  call.request.messages = read_messages(fields, call.ignored);
  call.request.tools = read_tools(fields);
  fields.boolean("stream", call.stream);
  if (const Json* options = fields.object("stream_options")) {
    JsonFields inner(*options, "stream_options.");
    inner.boolean("include_usage", call.include_usage);
    fields.take_error(inner);
    for (std::string& name : inner.unknown()) call.ignored.push_back(std::move(name));
  }
  read_sampling(fields, call.request);
  read_lengths(fields, call.request);
  read_logprobs(fields, call.request);
  read_template(fields, call.request);
  check_unsupported(fields);
  if (!fields.ok()) return fields.error();
  for (std::string& name : fields.unknown()) call.ignored.push_back(std::move(name));
  return call;
}

std::string ignored_header(const std::vector<std::string>& names) {
  constexpr size_t kLongestName = 64;
  constexpr size_t kLongest = 1024;
  std::string value;
  for (const std::string& name : names) {
    if (value.size() > kLongest) return value + ", ...";
    if (!value.empty()) value += ", ";
    for (const char c : std::string_view(name).substr(0, kLongestName))
      value += c > ' ' && c <= '~' && c != ',' ? c : '?';
  }
  return value;
}

}  // namespace chimere::server
