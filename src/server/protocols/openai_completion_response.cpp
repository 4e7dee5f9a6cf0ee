// openai_completion_response.cpp  text_completion, with logprobs in their older shape.
#include "server/protocols/openai_completion_response.h"

#include <utility>

#include "server/protocols/shared/answer_json.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::TokenChance;
using orchestrator::TokenInfo;

namespace {

class CompletionWriter : public ResponseWriter {
 public:
  CompletionWriter(ResponseHead head, std::vector<std::string> echoes)
      : head_(std::move(head)), echoes_(std::move(echoes)) {}

  std::string events(size_t choice, const ChatChunk& chunk) override {
    if (offsets_.size() <= choice) offsets_.resize(choice + 1);
    if (chunk.kind == ChatChunk::Kind::started) {
      return echo_of(choice).empty() ? std::string() : event(choice_json(choice, echo_of(choice), nullptr, nullptr));
    }
    const bool finished = chunk.kind == ChatChunk::Kind::finished;
    Json logprobs = head_.logprobs && !chunk.tokens.empty() ? legacy_logprobs(chunk, offsets_[choice]) : Json(nullptr);
    Json reason = finished ? Json(finish_name(chunk.finish)) : Json(nullptr);
    Json json = choice_json(choice, chunk.content, std::move(logprobs), std::move(reason));
    if (head_.token_stats && !chunk.tokens.empty()) json["token_stats"] = token_stats_json(chunk.tokens);
    return event(std::move(json), finished ? &chunk : nullptr);
  }

  std::string end(const engine::Usage& total) override {
    if (!head_.include_usage) return kSseDone;
    Json json = head_json();
    json["choices"] = Json::array();
    add_usage(json, total);
    return sse(to_text(json)) + kSseDone;
  }

  std::string error_event(const ApiError& error) override { return sse(error_body(error)) + kSseDone; }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage& total) override {
    Json json = head_json();
    json["choices"] = Json::array();
    for (size_t i = 0; i < choices.size(); ++i) {
      size_t offset = 0;
      Json logprobs = head_.logprobs ? legacy_logprobs(choices[i], offset) : Json(nullptr);
      json["choices"].push_back(
          choice_json(i, echo_of(i) + choices[i].content, std::move(logprobs), finish_name(choices[i].finish)));
      if (head_.token_stats) json["choices"].back()["token_stats"] = token_stats_json(choices[i].tokens);
    }
    add_usage(json, total);
    if (!choices.empty()) add_passages(json, choices.front().passages);
    return to_text(json);
  }

  HttpResponse error(const ApiError& error) override { return error_response(error); }

 private:
  // Four arrays, one entry a token each. `offset` counts bytes of tokens of this choice.
  static Json legacy_logprobs(const ChatChunk& chunk, size_t& offset) {
    Json json;
    for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) json[name] = Json::array();
    for (const TokenInfo& token : chunk.tokens) {
      json["tokens"].push_back(token.token.bytes);
      json["token_logprobs"].push_back(shown_logprob(token.token.logprob));
      Json top = Json::object();
      for (const TokenChance& other : token.top) top[other.bytes] = shown_logprob(other.logprob);
      json["top_logprobs"].push_back(std::move(top));
      json["text_offset"].push_back(offset);
      offset += token.token.bytes.size();
    }
    return json;
  }

  std::string echo_of(size_t choice) const { return choice < echoes_.size() ? echoes_[choice] : std::string(); }

  Json head_json() const {
    Json json;
    json["id"] = head_.id;
    json["object"] = "text_completion";
    json["created"] = head_.created;
    json["model"] = head_.model;
    if (!head_.system_fingerprint.empty()) json["system_fingerprint"] = head_.system_fingerprint;
    return json;
  }

  static Json choice_json(size_t index, const std::string& text, Json logprobs, Json finish_reason) {
    Json choice;
    choice["index"] = index;
    choice["text"] = text;
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] = std::move(finish_reason);
    return choice;
  }

  // `last`: the chunk that ended the choice, of its last event.
  std::string event(Json choice, const ChatChunk* last = nullptr) const {
    Json json = head_json();
    json["choices"] = Json::array({std::move(choice)});
    if (last) {
      json["timings"] = timings_json(last->usage);
      add_passages(json, last->passages);
    }
    return sse(to_text(json));
  }

  const ResponseHead head_;
  const std::vector<std::string> echoes_;
  std::vector<size_t> offsets_;
};

}  // namespace

std::unique_ptr<ResponseWriter> completion_writer(ResponseHead head, std::vector<std::string> echoes) {
  return std::make_unique<CompletionWriter>(std::move(head), std::move(echoes));
}

}  // namespace chimere::server
