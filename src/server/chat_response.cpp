// chat_response.cpp  The JSON of answers and of stream events.
#include "server/chat_response.h"

#include <utility>

#include "server/api_error.h"
#include "server/json.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::TokenChance;
using orchestrator::TokenInfo;
using orchestrator::ToolCallDelta;

namespace {

// Probabilities of 0 have no logarithm in JSON; this is what OpenAI sends for "very unlikely".
constexpr float kLowestLogprob = -9999.0f;

Json chance_json(const TokenChance& chance) {
  Json json;
  json["token"] = chance.bytes;
  json["logprob"] = chance.logprob >= kLowestLogprob ? chance.logprob : kLowestLogprob;
  Json bytes = Json::array();
  for (const char c : chance.bytes) bytes.push_back(static_cast<unsigned char>(c));
  json["bytes"] = std::move(bytes);
  return json;
}

Json logprobs_json(const std::vector<TokenInfo>& tokens) {
  Json content = Json::array();
  for (const TokenInfo& token : tokens) {
    Json entry = chance_json(token.token);
    entry["top_logprobs"] = Json::array();
    for (const TokenChance& other : token.top) entry["top_logprobs"].push_back(chance_json(other));
    content.push_back(std::move(entry));
  }
  return Json{{"content", std::move(content)}};
}

Json usage_json(const engine::Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  return json;
}

Json head_json(const ResponseHead& head, const char* object) {
  Json json;
  json["id"] = head.id;
  json["object"] = object;
  json["created"] = head.created;
  json["model"] = head.model;
  return json;
}

std::string choice_event(const ResponseHead& head, Json delta, Json logprobs, Json finish_reason) {
  Json choice;
  choice["index"] = 0;
  choice["delta"] = std::move(delta);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = std::move(finish_reason);
  Json json = head_json(head, "chat.completion.chunk");
  json["choices"] = Json::array({std::move(choice)});
  return sse(to_text(json));
}

Json call_json(const ToolCallDelta& call, bool with_index) {
  Json json;
  if (with_index) json["index"] = call.index;
  if (!call.id.empty()) {
    json["id"] = call.id;
    json["type"] = "function";
  }
  json["function"] = Json::object();
  if (!call.name.empty()) json["function"]["name"] = call.name;
  json["function"]["arguments"] = call.arguments;
  return json;
}

Json delta_json(const ChatChunk& chunk) {
  Json delta = Json::object();
  if (!chunk.reasoning.empty()) delta["reasoning_content"] = chunk.reasoning;
  if (!chunk.content.empty()) delta["content"] = chunk.content;
  for (const ToolCallDelta& call : chunk.tool_calls) delta["tool_calls"].push_back(call_json(call, true));
  return delta;
}

}  // namespace

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::stop: return "stop";
    case Finish::length: return "length";
    case Finish::tool_calls: return "tool_calls";
    case Finish::cancelled: return "cancelled";
  }
  return "stop";
}

std::string sse(const std::string& json) { return "data: " + json + "\n\n"; }

std::string stream_events(const ResponseHead& head, const ChatChunk& chunk, bool include_usage) {
  switch (chunk.kind) {
    case ChatChunk::Kind::started:
      return choice_event(head, Json{{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
    case ChatChunk::Kind::delta: {
      Json delta = delta_json(chunk);
      if (delta.empty() && chunk.tokens.empty()) return {};
      Json logprobs = head.logprobs && !chunk.tokens.empty() ? logprobs_json(chunk.tokens) : Json(nullptr);
      return choice_event(head, std::move(delta), std::move(logprobs), nullptr);
    }
    case ChatChunk::Kind::finished: {
      std::string events = choice_event(head, Json::object(), nullptr, finish_name(chunk.finish));
      if (include_usage) {
        Json json = head_json(head, "chat.completion.chunk");
        json["choices"] = Json::array();
        json["usage"] = usage_json(chunk.usage);
        events += sse(to_text(json));
      }
      return events;
    }
    case ChatChunk::Kind::failed: return sse(error_body(to_api_error(*chunk.error)));
  }
  return {};
}

struct WholeResponse::Impl {
  ResponseHead head;
  ChatChunk sum;
};

WholeResponse::WholeResponse(ResponseHead head) : impl_(std::make_unique<Impl>()) { impl_->head = std::move(head); }
WholeResponse::~WholeResponse() = default;

void WholeResponse::add(ChatChunk chunk) {
  ChatChunk& sum = impl_->sum;
  sum.reasoning += chunk.reasoning;
  sum.content += chunk.content;
  for (TokenInfo& token : chunk.tokens) sum.tokens.push_back(std::move(token));
  for (ToolCallDelta& delta : chunk.tool_calls) {
    // Calls come one after the other, numbered from 0.
    while (static_cast<int>(sum.tool_calls.size()) <= delta.index) {
      sum.tool_calls.push_back({static_cast<int>(sum.tool_calls.size()), {}, {}, {}});
    }
    ToolCallDelta& call = sum.tool_calls[static_cast<size_t>(delta.index)];
    if (!delta.id.empty()) call.id = std::move(delta.id);
    call.name += delta.name;
    call.arguments += delta.arguments;
  }
  if (chunk.kind == ChatChunk::Kind::finished) {
    sum.finish = chunk.finish;
    sum.usage = chunk.usage;
  }
}

std::string WholeResponse::body() const {
  const ChatChunk& sum = impl_->sum;
  Json message;
  message["role"] = "assistant";
  message["content"] = sum.content.empty() && !sum.tool_calls.empty() ? Json(nullptr) : Json(sum.content);
  if (!sum.reasoning.empty()) message["reasoning_content"] = sum.reasoning;
  for (const ToolCallDelta& call : sum.tool_calls) message["tool_calls"].push_back(call_json(call, false));
  Json choice;
  choice["index"] = 0;
  choice["message"] = std::move(message);
  choice["logprobs"] = impl_->head.logprobs ? logprobs_json(sum.tokens) : Json(nullptr);
  choice["finish_reason"] = finish_name(sum.finish);
  Json json = head_json(impl_->head, "chat.completion");
  json["choices"] = Json::array({std::move(choice)});
  json["usage"] = usage_json(sum.usage);
  return to_text(json);
}

}  // namespace chimere::server
