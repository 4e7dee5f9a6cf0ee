// generate_fields.h  The fields that say how to generate, whatever the prompt is: the same in every protocol.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "orchestrator/chat_request.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {

inline constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();
inline constexpr int kMaxChoices = 16;
inline constexpr int kMaxApiTopLogprobs = 20;

// What a call is beside its request.
struct CallOptions {
  std::string model;  // as the client named it; empty when it did not
  std::string user;   // who asks, for lists and logs; empty when it did not say
  bool stream = false;
  std::vector<std::string> ignored;  // fields we do not know, in the order of the request
};

// The JSON object of a body, or the error that says why it is none.
std::variant<OwnedJson, ApiError> parse_body(std::string_view body);

// A string or an array of strings.
std::vector<std::string> read_strings(JsonFields& fields, const std::string& name, size_t max_count, size_t max_bytes);

// temperature, top_p, top_k, min_p, penalties, DRY, logit_bias, seed, grammar, regex, json_schema, timeout, engram,
// lora, thinking_control, speculation, token_stats.
void read_generation(JsonFields& fields, orchestrator::GenerateOptions& options);
void read_stop(JsonFields& fields, const std::string& name, orchestrator::GenerateOptions& options);
// thinking_budget, enable_thinking and chat_template_kwargs.
void read_template(JsonFields& fields, orchestrator::ChatRequest& request);
// chat_template_kwargs of requests that say nothing: the text of an object.
Status read_template_variables(const std::string& text, orchestrator::Defaults& defaults);
// What `effort` means for the thought; errors name `field`.
void read_effort(JsonFields& fields, const std::string& field, const Json& effort, orchestrator::ChatRequest& request);
// {"type": "text" | "json_object" | "json_schema", ...}. Chat completions wrap a schema, responses do not, and
// llama.cpp's clients put it beside json_object.
void read_format(JsonFields& fields, const std::string& field, const Json& format, orchestrator::AnswerForm& form);
// return_progress, of protocols that have events for it: without a stream it says nothing, and is named as unknown.
void read_progress(JsonFields& fields, bool is_stream, orchestrator::GenerateOptions& options);
// model, stream, user: every call has them.
void read_call_options(JsonFields& fields, CallOptions& options);

// The value of X-Chimere-Ignored: names joined by ", ", those of the request itself before those further in; of bounded
// length, and safe in a header whatever the client called its fields.
std::string ignored_header(const std::vector<std::string>& names);

}  // namespace chimere::server
