// llama_response.cpp  Text, ids and how it ended.
#include "server/protocols/llama_response.h"

#include <utility>

#include "server/protocols/shared/answer_json.h"
#include "text/utf8.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::TokenInfo;

namespace {

const char* stop_type(const ChatChunk& chunk) {
  switch (chunk.finish) {
    case Finish::stop:
    case Finish::tool_calls: return chunk.stop_text.empty() ? "eos" : "word";
    case Finish::length:
    case Finish::loop:
    case Finish::cancelled: return "limit";
  }
  return "none";
}

// Those who ask for probabilities there find those of one token in an event; here tokens may have come together. Where
// their texts are not the text of all (half a letter, what may become a stop text), the last one has it.
std::vector<ChatChunk> token_by_token(const ChatChunk& chunk) {
  std::string together;
  bool are_texts = true;
  for (const TokenInfo& token : chunk.tokens) {
    together += token.token.bytes;
    are_texts = are_texts && is_valid_utf8(token.token.bytes);
  }
  are_texts = are_texts && together == chunk.content;
  std::vector<ChatChunk> parts;
  for (const TokenInfo& token : chunk.tokens) {
    ChatChunk& part = parts.emplace_back();
    part.tokens.push_back(token);
    if (are_texts) part.content = token.token.bytes;
  }
  if (!are_texts) parts.back().content = chunk.content;
  parts.back().progress = chunk.progress;
  return parts;
}

class LlamaWriter : public ResponseWriter {
 public:
  explicit LlamaWriter(LlamaHead head) : head_(std::move(head)) {}

  std::string events(size_t choice, const ChatChunk& chunk) override {
    if (chunk.kind == ChatChunk::Kind::started) return {};
    if (answers_.size() <= choice) answers_.resize(choice + 1);
    Sum& sum = answers_[choice];
    sum.has_new_line |= chunk.content.find('\n') != std::string::npos;
    std::string out;
    if (head_.probabilities && chunk.tokens.size() > 1) {
      for (const ChatChunk& one : token_by_token(chunk)) out += text_event(choice, one, sum);
    } else if (!chunk.content.empty() || !chunk.tokens.empty() || chunk.progress) {
      out += text_event(choice, chunk, sum);
    }
    if (chunk.kind == ChatChunk::Kind::finished) {
      ChatChunk last = chunk;
      last.content.clear();
      last.tokens.clear();
      out += sse(to_text(finished(text_json(choice, last, true), chunk, sum.has_new_line)));
    }
    return out;
  }

  std::string end(const engine::Usage&) override { return {}; }
  std::string error_event(const ApiError& error) override { return sse(error_body(in_llama_words(error))); }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage&) override {
    Json list = Json::array();
    for (size_t i = 0; i < choices.size(); ++i) {
      const bool has_new_line = choices[i].content.find('\n') != std::string::npos;
      list.push_back(chosen(finished(text_json(i, choices[i], head_.return_tokens), choices[i], has_new_line)));
    }
    return to_text(head_.is_list ? list : list[0]);
  }

  HttpResponse error(const ApiError& error) override { return error_response(in_llama_words(error)); }

 private:
  struct Sum {
    int n_tokens = 0;
    bool has_new_line = false;
  };

  std::string text_event(size_t choice, const ChatChunk& chunk, Sum& sum) const {
    sum.n_tokens += static_cast<int>(chunk.tokens.size());
    Json json = text_json(choice, chunk, true);
    add_progress(json, chunk);
    json["stop"] = false;
    json["tokens_predicted"] = sum.n_tokens;
    return sse(to_text(json));
  }

  Json text_json(size_t choice, const ChatChunk& chunk, bool with_tokens) const {
    Json json;
    json["index"] = choice;
    json["content"] = chunk.content;
    json["tokens"] = Json::array();
    if (with_tokens) {
      for (const TokenInfo& token : chunk.tokens) json["tokens"].push_back(token.token.id);
    }
    if (head_.probabilities && !chunk.tokens.empty()) {
      Json list = logprobs_json(chunk.tokens);
      for (size_t i = 0; i < list.size(); ++i) {
        list[i]["id"] = chunk.tokens[i].token.id;
        for (size_t j = 0; j < chunk.tokens[i].top.size(); ++j) {
          list[i]["top_logprobs"][j]["id"] = chunk.tokens[i].top[j].id;
        }
      }
      json["completion_probabilities"] = std::move(list);
    }
    json["id_slot"] = 0;
    return json;
  }

  Json finished(Json json, const ChatChunk& chunk, bool has_new_line) const {
    json["stop"] = true;
    json["model"] = head_.model;
    json["tokens_predicted"] = chunk.usage.completion_tokens;
    json["tokens_evaluated"] = chunk.usage.prompt_tokens;
    json["generation_settings"] = head_.settings;
    json["prompt"] = chunk.prompt;
    json["has_new_line"] = has_new_line;
    // The context was full before the answer had ended.
    json["truncated"] = chunk.usage.prompt_tokens + chunk.usage.completion_tokens >= head_.context_length;
    json["stop_type"] = stop_type(chunk);
    json["stopping_word"] = chunk.stop_text;
    json["tokens_cached"] = chunk.usage.prompt_tokens + chunk.usage.completion_tokens;
    json["timings"] = timings_json(chunk.usage);
    add_passages(json, chunk.passages);
    return json;
  }

  // The fields that were asked for, by their paths.
  Json chosen(Json whole) const {
    if (head_.fields.empty()) return whole;
    Json json = Json::object();
    for (const std::string& path : head_.fields) {
      const Json* at = &whole;
      for (size_t begin = 0; at && begin <= path.size();) {
        const size_t end = std::min(path.find('/', begin), path.size());
        const auto found = at->is_object() ? at->find(path.substr(begin, end - begin)) : at->end();
        at = at->is_object() && found != at->end() ? &*found : nullptr;
        begin = end + 1;
      }
      if (at) json[path] = *at;
    }
    return json;
  }

  const LlamaHead head_;
  std::vector<Sum> answers_;
};

}  // namespace

std::unique_ptr<ResponseWriter> llama_writer(LlamaHead head) { return std::make_unique<LlamaWriter>(std::move(head)); }

}  // namespace chimere::server
