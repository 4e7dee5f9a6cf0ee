// ollama_response.cpp  Lines of JSON. A call of a tool is told whole, when its arguments are.
#include "server/protocols/ollama_response.h"

#include <cstdio>
#include <ctime>
#include <utility>

#include "server/http/json.h"
#include "server/protocols/shared/answer_json.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::ToolCallDelta;

namespace {

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

Json call_json(const ToolCallDelta& call) {
  Json function;
  function["index"] = call.index;
  function["name"] = call.name;
  function["arguments"] = arguments_object(call.arguments);
  return Json{{"id", call.id}, {"function", std::move(function)}};
}

class OllamaWriter : public ResponseWriter {
 public:
  explicit OllamaWriter(OllamaHead head) : head_(std::move(head)) {}

  const char* stream_type() const override { return "application/x-ndjson"; }
  std::string pause() const override { return {}; }  // lines of JSON have no comments

  std::string events(size_t, const ChatChunk& chunk) override {
    Json calls = Json::array();
    for (const ToolCallDelta& delta : chunk.tool_calls) {
      if (!delta.id.empty()) {
        take_call(calls);
        open_call_ = delta;
      } else if (open_call_) {
        open_call_->arguments += delta.arguments;
      }
    }
    const bool is_last = chunk.kind == ChatChunk::Kind::finished;
    if (is_last) take_call(calls);
    std::string out;
    if (!chunk.content.empty() || !chunk.reasoning.empty() || !calls.empty() || !chunk.tokens.empty()) {
      out = line(text_json(chunk, std::move(calls), false));
    }
    if (is_last) out += line(finished(text_json(ChatChunk{}, Json::array(), true), chunk));
    return out;
  }

  std::string end(const engine::Usage&) override { return {}; }
  std::string error_event(const ApiError& error) override { return ollama_error_body(error) + "\n"; }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage&) override {
    const ChatChunk& sum = choices.front();
    Json calls = Json::array();
    for (const ToolCallDelta& call : sum.tool_calls) calls.push_back(call_json(call));
    return to_text(finished(text_json(sum, std::move(calls), true), sum));
  }

  HttpResponse error(const ApiError& error) override { return ollama_error_response(error); }

  Json text_json(const ChatChunk& chunk, Json calls, bool done) const {
    Json json;
    json["model"] = head_.model;
    json["created_at"] = ollama_time(std::chrono::system_clock::now());
    Json& text = head_.is_chat ? json["message"] : json;
    if (head_.is_chat) text["role"] = "assistant";
    text[head_.is_chat ? "content" : "response"] = chunk.content;
    if (!chunk.reasoning.empty()) text["thinking"] = chunk.reasoning;
    if (!calls.empty()) text["tool_calls"] = std::move(calls);
    if (head_.logprobs && !chunk.tokens.empty()) json["logprobs"] = logprobs_json(chunk.tokens);
    json["done"] = done;
    return json;
  }

 private:
  static std::string line(const Json& json) { return to_text(json) + "\n"; }

  void take_call(Json& calls) {
    if (open_call_) calls.push_back(call_json(*open_call_));
    open_call_.reset();
  }

  Json finished(Json json, const ChatChunk& chunk) const {
    const bool is_cut = chunk.finish == Finish::length || chunk.finish == Finish::loop;
    json["done_reason"] = is_cut ? "length" : "stop";
    const std::chrono::duration<double> total = std::chrono::steady_clock::now() - head_.began;
    json["total_duration"] = nanoseconds(total.count());
    json["load_duration"] = nanoseconds(chunk.usage.queue_seconds);
    json["prompt_eval_count"] = chunk.usage.prompt_tokens;
    json["prompt_eval_duration"] = nanoseconds(chunk.usage.prefill_seconds);
    json["eval_count"] = chunk.usage.completion_tokens;
    json["eval_duration"] = nanoseconds(chunk.usage.decode_seconds);
    add_passages(json, chunk.passages);
    return json;
  }

  const OllamaHead head_;
  std::optional<ToolCallDelta> open_call_;
};

}  // namespace

std::string ollama_time(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  const auto rest = time - std::chrono::system_clock::from_time_t(seconds);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char date[32], text[64];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%09ldZ", date,
                static_cast<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(rest).count()));
  return text;
}

std::unique_ptr<ResponseWriter> ollama_writer(OllamaHead head) {
  return std::make_unique<OllamaWriter>(std::move(head));
}

std::string ollama_loaded(const OllamaHead& head) {
  Json json = OllamaWriter(head).text_json(ChatChunk{}, Json::array(), true);
  json["done_reason"] = "load";
  return to_text(json);
}

std::string ollama_error_body(const ApiError& error) { return to_text(Json{{"error", error.message}}); }

HttpResponse ollama_error_response(const ApiError& error) {
  HttpResponse response = error_response(error);
  response.body = ollama_error_body(error);
  return response;
}

}  // namespace chimere::server
