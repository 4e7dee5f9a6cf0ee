// anthropic_response.cpp  Blocks open and close one after the other: thinking, text, calls.
#include "server/protocols/anthropic_response.h"

#include <utility>

#include "server/http/json.h"
#include "server/protocols/shared/answer_json.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::ToolCallDelta;

namespace {

const char* anthropic_type(const ApiError& error) {
  switch (error.status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    default: return error.status >= 500 ? "api_error" : "invalid_request_error";
  }
}

const char* stop_reason(const ChatChunk& chunk) {
  switch (chunk.finish) {
    case Finish::stop: return chunk.stop_text.empty() ? "end_turn" : "stop_sequence";
    case Finish::tool_calls: return "tool_use";
    case Finish::length:
    case Finish::loop:
    case Finish::cancelled: return "max_tokens";
  }
  return "end_turn";
}

// Tokens read from the cache are not counted as input.
Json anthropic_usage(const engine::Usage& usage) {
  Json json;
  json["input_tokens"] = usage.prompt_tokens - usage.cached_tokens;
  json["cache_creation_input_tokens"] = 0;
  json["cache_read_input_tokens"] = usage.cached_tokens;
  json["output_tokens"] = usage.completion_tokens;
  return json;
}

class AnthropicWriter : public ResponseWriter {
 public:
  AnthropicWriter(std::string model, bool token_stats)
      : model_(std::move(model)), id_(new_object_id("msg_")), token_stats_(token_stats) {}

  std::string events(size_t, const ChatChunk& chunk) override {
    std::string out;
    if (chunk.kind == ChatChunk::Kind::started) {
      Json message = message_json(chunk, Json::array());
      message["stop_reason"] = nullptr;
      emit(out, "message_start", Json{{"message", std::move(message)}});
    }
    if (token_stats_) stats_ = token_stats_json(chunk.tokens);
    if (!chunk.reasoning.empty()) add_delta(out, Block::thinking, "thinking_delta", "thinking", chunk.reasoning);
    if (!chunk.content.empty()) add_delta(out, Block::text, "text_delta", "text", chunk.content);
    for (const ToolCallDelta& call : chunk.tool_calls) {
      if (!call.id.empty()) open(out, Block::call, call_block(call, Json::object()));
      if (!call.arguments.empty()) delta(out, Json{{"type", "input_json_delta"}, {"partial_json", call.arguments}});
    }
    if (chunk.kind == ChatChunk::Kind::finished) finish(out, chunk);
    return out;
  }

  std::string end(const engine::Usage&) override {
    std::string out;
    emit(out, "message_stop", Json::object());
    return out;
  }

  std::string error_event(const ApiError& error) override { return sse(anthropic_error_body(error), "error"); }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage&) override {
    const ChatChunk& sum = choices.front();
    Json content = Json::array();
    if (!sum.reasoning.empty()) {
      content.push_back(Json{{"type", "thinking"}, {"thinking", sum.reasoning}, {"signature", ""}});
    }
    if (!sum.content.empty()) content.push_back(Json{{"type", "text"}, {"text", sum.content}});
    for (const ToolCallDelta& call : sum.tool_calls)
      content.push_back(call_block(call, arguments_object(call.arguments)));
    Json message = message_json(sum, std::move(content));
    if (token_stats_) message["token_stats"] = token_stats_json(sum.tokens);
    return to_text(message);
  }

  HttpResponse error(const ApiError& error) override { return anthropic_error_response(error); }

 private:
  enum class Block { none, thinking, text, call };

  static Json call_block(const ToolCallDelta& call, Json input) {
    return Json{{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", std::move(input)}};
  }

  static void emit(std::string& out, const char* type, Json rest) {
    Json json;
    json["type"] = type;
    json.update(rest);
    out += sse(to_text(json), type);
  }

  Json message_json(const ChatChunk& chunk, Json content) const {
    Json json;
    json["id"] = id_;
    json["type"] = "message";
    json["role"] = "assistant";
    json["model"] = model_;
    json["content"] = std::move(content);
    json["stop_reason"] = stop_reason(chunk);
    json["stop_sequence"] = chunk.stop_text.empty() ? Json(nullptr) : Json(chunk.stop_text);
    json["usage"] = anthropic_usage(chunk.usage);
    add_passages(json, chunk.passages);
    return json;
  }

  void open(std::string& out, Block kind, Json block) {
    close(out);
    open_ = kind;
    emit(out, "content_block_start", Json{{"index", index_}, {"content_block", std::move(block)}});
  }

  void close(std::string& out) {
    if (open_ == Block::none) return;
    if (open_ == Block::thinking) delta(out, Json{{"type", "signature_delta"}, {"signature", ""}});
    emit(out, "content_block_stop", Json{{"index", index_++}});
    open_ = Block::none;
  }

  void delta(std::string& out, Json json) {
    emit(out, "content_block_delta", Json{{"index", index_}, {"delta", std::move(json)}});
  }

  void add_delta(std::string& out, Block kind, const char* type, const char* field, const std::string& text) {
    if (open_ != kind) {
      Json block{{"type", field}, {field, ""}};
      if (kind == Block::thinking) block["signature"] = "";
      open(out, kind, std::move(block));
    }
    Json rest{{"index", index_}, {"delta", Json{{"type", type}, {field, text}}}};
    // Of all tokens of the chunk, on the first event of text that it makes.
    if (token_stats_) rest["token_stats"] = std::exchange(stats_, Json::array());
    emit(out, "content_block_delta", std::move(rest));
  }

  void finish(std::string& out, const ChatChunk& chunk) {
    close(out);
    Json delta;
    delta["stop_reason"] = stop_reason(chunk);
    delta["stop_sequence"] = chunk.stop_text.empty() ? Json(nullptr) : Json(chunk.stop_text);
    Json rest{{"delta", std::move(delta)}, {"usage", anthropic_usage(chunk.usage)}};
    add_passages(rest, chunk.passages);
    emit(out, "message_delta", std::move(rest));
  }

  const std::string model_;
  const std::string id_;
  const bool token_stats_;
  Json stats_ = Json::array();
  Block open_ = Block::none;
  int index_ = 0;
};

}  // namespace

std::unique_ptr<ResponseWriter> anthropic_writer(std::string model, bool token_stats) {
  return std::make_unique<AnthropicWriter>(std::move(model), token_stats);
}

std::string anthropic_error_body(const ApiError& error) {
  Json body;
  body["type"] = "error";
  body["error"]["type"] = anthropic_type(error);
  body["error"]["message"] = error.message;
  if (error.code == "thread_unsupported_request") {
    body["error"]["details"] = Json{{"error_code", error.code}, {"unsupported", Json::array({error.param})}};
  }
  if (error.n_ctx > 0) {
    // The words of Anthropic's own servers, which its programs look for.
    body["error"]["message"] = "prompt is too long: " + std::to_string(error.n_prompt_tokens) + " tokens > " +
                               std::to_string(error.n_ctx) + " maximum";
    body["error"]["n_prompt_tokens"] = error.n_prompt_tokens;
    body["error"]["n_ctx"] = error.n_ctx;
  }
  return to_text(body);
}

HttpResponse anthropic_error_response(const ApiError& error) {
  HttpResponse response = error_response(error);
  response.body = anthropic_error_body(error);
  return response;
}

}  // namespace chimere::server
