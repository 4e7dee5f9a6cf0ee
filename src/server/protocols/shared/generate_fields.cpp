// generate_fields.cpp  Reading of the fields that all protocols share.
#include "server/protocols/shared/generate_fields.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "server/protocols/shared/engram_field.h"
#include "server/protocols/shared/lora_field.h"
#include "server/protocols/shared/thinking_field.h"

namespace chimere::server {

using orchestrator::AnswerForm;
using orchestrator::ChatRequest;
using orchestrator::GenerateOptions;

namespace {

constexpr size_t kMaxStops = 4;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxBreakers = 16;
constexpr size_t kMaxBreakerBytes = 64;
constexpr size_t kMaxBiases = 1024;
constexpr size_t kMaxBiasedBytes = 256;
constexpr double kMaxTimeoutSeconds = 24 * 3600;

// What `reasoning_effort` stands for: the most tokens of a thought.
struct Effort {
  std::string_view name;
  int32_t limit;
  const char* in_template;
};
constexpr std::array<Effort, 6> kEfforts = {{{"minimal", 64, "low"},
                                             {"low", 256, "low"},
                                             {"medium", 1024, "medium"},
                                             {"high", 4096, "high"},
                                             {"xhigh", kMaxInt, "high"},
                                             {"max", kMaxInt, "high"}}};

// -100 to 100, or false: never. Nullopt when it is neither.
std::optional<float> bias_of(JsonFields& fields, const Json& json) {
  if (json == false) return -std::numeric_limits<float>::infinity();
  if (json.is_number() && std::abs(json.get<double>()) <= 100) return json.get<float>();
  fields.fail("logit_bias", "expected numbers from -100 to 100 or false, found " + to_text(json));
  return std::nullopt;
}

void read_text_bias(JsonFields& fields, const std::string& text, float bias, GenerateOptions& options) {
  if (text.empty() || text.size() > kMaxBiasedBytes) {
    return fields.fail("logit_bias", "expected texts of 1 to " + std::to_string(kMaxBiasedBytes) +
                                         " bytes, found one of " + std::to_string(text.size()));
  }
  options.text_biases.push_back({text, bias});
}

// [[id or text, bias]], as llama.cpp also takes it.
void read_bias_list(JsonFields& fields, const Json& list, GenerateOptions& options) {
  for (const Json& pair : list) {
    if (!pair.is_array() || pair.size() != 2 || !(is_token_id(pair[0]) || pair[0].is_string())) {
      return fields.fail("logit_bias", "expected pairs of a token id or a text and a number, found " + to_text(pair));
    }
    const std::optional<float> bias = bias_of(fields, pair[1]);
    if (!bias) return;
    if (pair[0].is_string()) {
      read_text_bias(fields, pair[0].get<std::string>(), *bias, options);
    } else {
      options.sampling.logit_bias.push_back({pair[0].get<int32_t>(), *bias});
    }
  }
}

// {"1234": -100, ...}: token ids as keys; what is no number is a text, as llama.cpp has it.
void read_logit_bias(JsonFields& fields, GenerateOptions& options) {
  const Json* given = fields.find("logit_bias");
  if (given && given->is_array() && given->size() <= kMaxBiases) return read_bias_list(fields, *given, options);
  const Json* map = fields.object("logit_bias");
  if (!map) return;
  if (map->size() > kMaxBiases) {
    return fields.fail("logit_bias", "expected at most " + std::to_string(kMaxBiases) + " entries, found " +
                                         std::to_string(map->size()));
  }
  for (const auto& [key, value] : map->items()) {
    const std::optional<float> bias = bias_of(fields, value);
    if (!bias) return;
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits && key.find_first_not_of("-0123456789") == std::string::npos) {
      return fields.fail("logit_bias", "expected token ids or texts as keys, found '" + key + "'");
    }
    if (digits) {
      options.sampling.logit_bias.push_back({static_cast<int32_t>(std::stol(key)), *bias});
    } else {
      read_text_bias(fields, key, *bias, options);
    }
  }
}

void read_schema(JsonFields& fields, const std::string& name, const Json& schema, AnswerForm& form) {
  if (!schema.is_object() && !schema.is_boolean()) return fields.fail_type(name, "a JSON schema", schema);
  if (!form.json_schema.empty()) return fields.fail(name, "expected one schema of the answer, found two");
  form.json_schema = to_text(schema);
}

void read_speculation(JsonFields& fields, std::optional<speculative::Mode>& mode) {
  const Json* json = fields.find("speculation");
  if (!json) return;
  if (json->is_boolean()) {
    mode = json->get<bool>() ? speculative::Mode::automatic : speculative::Mode::off;
  } else if (json->is_string()) {
    auto named = speculative::mode_from_text(json->get<std::string>());
    if (!named) return fields.fail("speculation", named.error().message);
    mode = *named;
  } else {
    const std::string expected = "a boolean or the name of a mode: " + speculative::mode_names();
    fields.fail_type("speculation", expected.c_str(), *json);
  }
}

}  // namespace

std::variant<OwnedJson, ApiError> parse_body(std::string_view body) {
  auto json = parse_json(body);
  if (!json) return ApiError{400, json.error().message, "invalid_request_error", "", "invalid_json"};
  OwnedJson owned(std::move(*json));
  if (!owned.is_object()) {
    return ApiError{400, std::string("request body: expected a JSON object, found ") + describe(owned),
                    "invalid_request_error", "", "invalid_json"};
  }
  return owned;
}

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

void read_generation(JsonFields& fields, GenerateOptions& options) {
  read_engram(fields, options.memory);
  read_lora(fields, options.adapters);
  read_thinking_control(fields, options.thinking);
  fields.boolean("token_stats", options.token_stats);
  read_speculation(fields, options.speculation);
  SamplingParams& s = options.sampling;
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
    options.dry_sequence_breakers = read_strings(fields, "dry_sequence_breakers", kMaxBreakers, kMaxBreakerBytes);
  }
  read_logit_bias(fields, options);
  if (fields.find("seed")) {
    int64_t seed = 0;
    fields.integer("seed", seed, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    options.seed = static_cast<uint64_t>(seed);
  }
  fields.string("grammar", options.form.grammar);
  fields.string("regex", options.form.regex);
  if (const Json* schema = fields.find("json_schema")) {
    // As llama.cpp takes it. Some put OpenAI's frame around it.
    const bool is_framed = schema->is_object() && schema->contains("schema") && !schema->contains("type");
    read_schema(fields, is_framed ? "json_schema.schema" : "json_schema", is_framed ? (*schema)["schema"] : *schema,
                options.form);
  }
  if (fields.find("timeout")) {
    float seconds = 0;
    fields.number("timeout", seconds, 0.001, kMaxTimeoutSeconds);
    const auto wanted = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
    options.deadline = std::chrono::steady_clock::now() + wanted;
  }
}

void read_stop(JsonFields& fields, const std::string& name, GenerateOptions& options) {
  options.stop = read_strings(fields, name, kMaxStops, kMaxStopBytes);
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
    } else if (!fields.find("enable_thinking")) {
      request.enable_thinking = thinking->get<bool>();
    }
    rest.erase("enable_thinking");
  }
  if (rest.empty()) return;
  // Those of the server's start hold where the request names no other.
  auto all = parse_json(request.template_kwargs.empty() ? "{}" : request.template_kwargs);
  if (all) all->update(rest);
  request.template_kwargs = to_text(all ? *all : rest);
}

namespace {

// Whether the request itself says if there is a thought, beside its effort. Without that, what the server was started
// with yields to the effort.
bool says_thinking(JsonFields& fields) {
  const std::vector<std::string> given = fields.given();
  const auto is_given = [&](const char* name) { return std::find(given.begin(), given.end(), name) != given.end(); };
  if (is_given("enable_thinking")) return true;
  return is_given("chat_template_kwargs") && fields.find("chat_template_kwargs")->contains("enable_thinking");
}

}  // namespace

void read_effort(JsonFields& fields, const std::string& field, const Json& effort, ChatRequest& request) {
  const std::string name = effort.is_string() ? effort.get<std::string>() : std::string();
  if (name == "none") {
    if (!says_thinking(fields)) request.enable_thinking = false;
    return;
  }
  const auto found = std::find_if(kEfforts.begin(), kEfforts.end(), [&](const Effort& e) { return e.name == name; });
  if (found == kEfforts.end()) {
    return fields.fail(field, "expected none, minimal, low, medium, high, xhigh or max, found " + to_text(effort));
  }
  if (!says_thinking(fields)) request.enable_thinking = true;
  request.thinking_limit = found->limit;
  // Some templates tell the model; what they know is low, medium and high.
  auto kwargs = parse_json(request.template_kwargs.empty() ? "{}" : request.template_kwargs);
  if (!kwargs || kwargs->contains("reasoning_effort")) return;
  (*kwargs)["reasoning_effort"] = found->in_template;
  request.template_kwargs = to_text(*kwargs);
}

Status read_template_variables(const std::string& text, orchestrator::Defaults& defaults) {
  auto kwargs = parse_json(text);
  if (!kwargs || !kwargs->is_object()) {
    return Error{Code::invalid_argument, "expected a JSON object as in {\"enable_thinking\": false}, found " + text};
  }
  const Json object = {{"chat_template_kwargs", *kwargs}};
  JsonFields fields(object);
  ChatRequest request;
  read_template(fields, request);
  if (!fields.ok()) return Error{Code::invalid_argument, fields.error().message};
  if (request.enable_thinking) defaults.enable_thinking = request.enable_thinking;
  defaults.template_kwargs = request.template_kwargs;
  return Ok{};
}

void read_format(JsonFields& fields, const std::string& field, const Json& format, AnswerForm& form) {
  const Json type = format.value("type", Json());
  const auto schema_beside = format.find("schema");
  const bool has_schema = schema_beside != format.end() && !schema_beside->is_null();
  if (type == "text") return fields.check_keys(field, format, {"type"});
  if (type == "json_object") {
    fields.check_keys(field, format, {"type", "schema"});
    if (has_schema) return read_schema(fields, field + ".schema", *schema_beside, form);
    form.json_object = form.json_schema.empty();  // a schema beside it says more
    return;
  }
  if (type != "json_schema") {
    return fields.fail(field + ".type", "expected text, json_object or json_schema, found " + to_text(type));
  }
  const auto wrapped = format.find("json_schema");
  const Json& holder = wrapped != format.end() && wrapped->is_object() ? *wrapped : format;
  const auto schema = holder.find("schema");
  const std::string name = field + (&holder == &format ? ".schema" : ".json_schema.schema");
  if (schema == holder.end()) return fields.fail(name, "expected a JSON schema, found none");
  if (&holder == &format) {
    fields.check_keys(field, format, {"type", "name", "schema", "strict", "description"});
  } else {
    fields.check_keys(field, format, {"type", "json_schema"});
    fields.check_keys(field + ".json_schema", holder, {"name", "schema", "strict", "description"});
  }
  read_schema(fields, name, *schema, form);
}

void read_progress(JsonFields& fields, bool is_stream, GenerateOptions& options) {
  if (is_stream) fields.boolean("return_progress", options.tells_progress);
}

void read_call_options(JsonFields& fields, CallOptions& options) {
  fields.string("model", options.model);
  fields.string("user", options.user);
  fields.boolean("stream", options.stream);
}

std::string ignored_header(const std::vector<std::string>& names) {
  constexpr size_t kLongestName = 64;
  constexpr size_t kLongest = 1024;
  std::vector<std::string_view> ordered(names.begin(), names.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](std::string_view name) { return name.find_first_of(".[") == std::string_view::npos; });
  std::string value;
  for (const std::string_view name : ordered) {
    if (value.size() > kLongest) return value + ", ...";
    if (!value.empty()) value += ", ";
    for (const char c : name.substr(0, kLongestName)) value += c > ' ' && c <= '~' && c != ',' ? c : '?';
  }
  return value;
}

}  // namespace chimere::server
