// openai_chat_response.cpp  chat.completion and chat.completion.chunk.
#include "server/protocols/openai_chat_response.h"

#include <utility>

#include "server/odo/odo_json.h"
#include "server/protocols/shared/answer_json.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::ToolCallDelta;

namespace {

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

// [{"type": "url_citation", "url_citation": {...}}], as OpenAI has them.
void add_annotations(Json& json, const std::vector<orchestrator::Citation>& citations) {
  for (const orchestrator::Citation& citation : citations) {
    const char* const type = citation.url.empty() ? "file_citation" : "url_citation";
    Json place = {{"start_index", citation.begin}, {"end_index", citation.end}, {"title", citation.title}};
    if (citation.url.empty()) {
      place["filename"] = citation.document;
    } else {
      place["url"] = citation.url;
    }
    json["annotations"].push_back(Json{{"type", type}, {type, std::move(place)}});
  }
}

Json message_json(const ChatChunk& sum) {
  Json message;
  message["role"] = "assistant";
  message["content"] = sum.content.empty() && !sum.tool_calls.empty() ? Json(nullptr) : Json(sum.content);
  if (!sum.reasoning.empty()) message["reasoning_content"] = sum.reasoning;
  for (const ToolCallDelta& call : sum.tool_calls) message["tool_calls"].push_back(call_json(call, false));
  add_annotations(message, sum.citations);
  return message;
}

class ChatWriter : public ResponseWriter {
 public:
  explicit ChatWriter(ResponseHead head) : head_(std::move(head)) {}

  std::string events(size_t choice, const ChatChunk& chunk) override {
    switch (chunk.kind) {
      case ChatChunk::Kind::started:
        return sse(to_text(with_run(
            choice_chunk(choice, Json{{"role", "assistant"}, {"content", head_.llama_words ? Json(nullptr) : Json("")}},
                         nullptr, nullptr),
            chunk)));
      case ChatChunk::Kind::delta: {
        Json logprobs = head_.logprobs && !chunk.tokens.empty() ? tokens_json(chunk) : Json(nullptr);
        Json json = choice_chunk(choice, delta_json(chunk), std::move(logprobs), nullptr);
        if (head_.token_stats && !chunk.tokens.empty()) {
          json["choices"][0]["token_stats"] = token_stats_json(chunk.tokens);
        }
        add_progress(json, chunk);
        add_run(json, chunk);
        return sse(to_text(json));
      }
      case ChatChunk::Kind::finished: {
        Json last = Json::object();
        add_annotations(last, chunk.citations);
        Json json = choice_chunk(choice, std::move(last), nullptr, finish_name(chunk.finish));
        json["timings"] = timings_json(chunk.usage);
        add_passages(json, chunk.passages);
        add_run(json, chunk);
        add_verbose(json, chunk);
        return sse(to_text(json));
      }
      case ChatChunk::Kind::failed: break;
    }
    return {};
  }

  std::string end(const engine::Usage& total) override {
    if (!head_.include_usage) return kSseDone;
    Json json = head_json("chat.completion.chunk");
    json["choices"] = Json::array();
    add_usage(json, total);
    return sse(to_text(json)) + kSseDone;
  }

  std::string error_event(const ApiError& error) override { return sse(error_body(worded(error))) + kSseDone; }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage& total) override {
    Json json = head_json("chat.completion");
    json["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i) {
      Json choice;
      choice["index"] = i;
      choice["message"] = message_json(choices[i]);
      choice["logprobs"] = head_.logprobs ? tokens_json(choices[i]) : Json(nullptr);
      if (head_.token_stats) choice["token_stats"] = token_stats_json(choices[i].tokens);
      choice["finish_reason"] = finish_name(choices[i].finish);
      json["choices"].push_back(std::move(choice));
    }
    add_usage(json, total);
    if (!choices.empty()) {
      add_passages(json, choices.front().passages);
      add_run(json, choices.front());
      add_verbose(json, choices.front());
    }
    return to_text(json);
  }

  HttpResponse error(const ApiError& error) override { return error_response(worded(error)); }

 private:
  ApiError worded(const ApiError& error) const { return head_.llama_words ? in_llama_words(error) : error; }

  void add_verbose(Json& json, const ChatChunk& chunk) const {
    if (head_.verbose) json["__verbose"] = Json{{"prompt", chunk.prompt}, {"content", chunk.content}};
  }

  static Json with_run(Json json, const ChatChunk& chunk) {
    add_run(json, chunk);
    return json;
  }

  static Json tokens_json(const ChatChunk& chunk) { return Json{{"content", logprobs_json(chunk.tokens)}}; }

  Json head_json(const char* object) const {
    Json json;
    json["id"] = head_.id;
    json["object"] = object;
    json["created"] = head_.created;
    json["model"] = head_.model;
    if (!head_.system_fingerprint.empty()) json["system_fingerprint"] = head_.system_fingerprint;
    return json;
  }

  Json choice_chunk(size_t index, Json delta, Json logprobs, Json finish_reason) const {
    Json choice;
    choice["index"] = index;
    choice["delta"] = std::move(delta);
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(finish_reason);
    Json json = head_json("chat.completion.chunk");
    json["choices"] = Json::array({std::move(choice)});
    return json;
  }

  const ResponseHead head_;
};

}  // namespace

std::unique_ptr<ResponseWriter> chat_writer(ResponseHead head) { return std::make_unique<ChatWriter>(std::move(head)); }

}  // namespace chimere::server
