// responses_response.cpp  Items open and close one after the other: a thought, a text, calls.
#include "server/responses_response.h"

#include <utility>

#include "server/openai_json.h"

namespace chimere::server {

using orchestrator::ChatChunk;
using orchestrator::Finish;
using orchestrator::ToolCallDelta;

namespace {

Json usage_of(const engine::Usage& usage) {
  Json json;
  json["input_tokens"] = usage.prompt_tokens;
  json["input_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  json["output_tokens"] = usage.completion_tokens;
  json["output_tokens_details"]["reasoning_tokens"] = usage.reasoning_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  return json;
}

class ResponsesWriter : public ResponseWriter {
 public:
  ResponsesWriter(std::string model, int64_t created, const std::string& echo, bool logprobs, bool token_stats)
      : id_(new_object_id("resp_")),
        model_(std::move(model)),
        created_(created),
        logprobs_(logprobs),
        token_stats_(token_stats) {
    if (auto parsed = parse_json(echo)) echo_ = std::move(*parsed);
  }

  std::string events(size_t, const ChatChunk& chunk) override {
    std::string out;
    if (chunk.kind == ChatChunk::Kind::started) {
      emit(out, "response.created", Json{{"response", response("in_progress", nullptr)}});
      emit(out, "response.in_progress", Json{{"response", response("in_progress", nullptr)}});
    }
    add_token_stats(chunk);
    if (!chunk.reasoning.empty()) add_text(out, Item::reasoning, chunk.reasoning);
    // Tokens come with the text they stand for; those of a thought or a call have no place in this protocol.
    tokens_ = logprobs_ && !chunk.content.empty() ? logprobs_json(chunk.tokens) : Json::array();
    if (!chunk.content.empty()) add_text(out, Item::message, chunk.content);
    for (const ToolCallDelta& call : chunk.tool_calls) add_call(out, call);
    if (chunk.kind == ChatChunk::Kind::finished) {
      finish_ = chunk.finish;
      close(out, is_cut() ? "incomplete" : "completed");
      passages_ = chunk.passages;
    }
    return out;
  }

  std::string end(const engine::Usage& total) override {
    std::string out;
    const bool cut = is_cut();
    emit(out, cut ? "response.incomplete" : "response.completed",
         Json{{"response", response(cut ? "incomplete" : "completed", usage_of(total))}});
    return out;
  }

  std::string error_event(const ApiError& error) override {
    std::string out;
    close(out, "incomplete");
    Json failed = response("failed", nullptr);
    failed["error"] = Json{{"code", error.code.empty() ? "server_error" : error.code}, {"message", error.message}};
    emit(out, "response.failed", Json{{"response", std::move(failed)}});
    return out;
  }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage& total) override {
    ChatChunk sum = choices.front();
    sum.kind = ChatChunk::Kind::finished;
    events(0, sum);  // the same items as in a stream
    const bool cut = is_cut();
    return to_text(response(cut ? "incomplete" : "completed", usage_of(total)));
  }

  HttpResponse error(const ApiError& error) override { return error_response(error); }

 private:
  enum class Item { none, reasoning, message, call };

  bool is_cut() const { return finish_ == Finish::length || finish_ == Finish::loop; }

  // Of all tokens of the chunk, on the first event of text that it makes.
  void add_token_stats(const ChatChunk& chunk) {
    if (!token_stats_) return;
    for (Json& entry : stats_ = token_stats_json(chunk.tokens)) all_stats_.push_back(entry);
  }

  void emit(std::string& out, const char* type, Json rest) {
    Json json;
    json["type"] = type;
    json["sequence_number"] = sequence_++;
    json.update(rest);
    out += sse(to_text(json), type);
  }

  Json response(const char* status, Json usage) const {
    Json json;
    json["id"] = id_;
    json["object"] = "response";
    json["created_at"] = created_;
    json["status"] = status;
    json["background"] = false;
    json["error"] = nullptr;
    json["incomplete_details"] = std::string_view(status) == "incomplete"
                                     ? Json{{"reason", finish_ == Finish::loop ? "loop" : "max_output_tokens"}}
                                     : Json(nullptr);
    json["model"] = model_;
    json["output"] = output_;
    json["previous_response_id"] = nullptr;
    json.update(echo_);
    if (token_stats_) json["token_stats"] = all_stats_;
    add_passages(json, passages_);
    json["usage"] = std::move(usage);
    return json;
  }

  Json item_json(const char* status) const {
    Json json;
    json["id"] = item_id_;
    if (open_ == Item::reasoning) {
      json["type"] = "reasoning";
      json["summary"] = Json::array();
      json["content"] = text_.empty() ? Json::array() : Json::array({part_json()});
      json["status"] = status;
    } else if (open_ == Item::message) {
      json["type"] = "message";
      json["status"] = status;
      json["role"] = "assistant";
      json["content"] = text_.empty() ? Json::array() : Json::array({part_json()});
    } else {
      json["type"] = "function_call";
      json["status"] = status;
      json["call_id"] = call_id_;
      json["name"] = name_;
      json["arguments"] = text_;
    }
    return json;
  }

  Json part_json() const {
    if (open_ == Item::reasoning) return Json{{"type", "reasoning_text"}, {"text", text_}};
    Json json;
    json["type"] = "output_text";
    json["text"] = text_;
    json["annotations"] = Json::array();
    json["logprobs"] = part_tokens_;
    return json;
  }

  // Where an event of a text belongs.
  Json place(const char* field, Json value) const {
    Json json;
    json["item_id"] = item_id_;
    json["output_index"] = output_.size();
    if (open_ != Item::call) json["content_index"] = 0;
    json[field] = std::move(value);
    return json;
  }

  void open(std::string& out, Item kind, const char* prefix) {
    close(out);
    open_ = kind;
    item_id_ = new_object_id(prefix);
    text_.clear();
    part_tokens_ = Json::array();
    emit(out, "response.output_item.added", Json{{"output_index", output_.size()}, {"item", item_json("in_progress")}});
    if (kind != Item::call) emit(out, "response.content_part.added", place("part", part_json()));
  }

  void add_text(std::string& out, Item kind, const std::string& text) {
    const bool is_message = kind == Item::message;
    if (open_ != kind) open(out, kind, is_message ? "msg_" : "rs_");
    text_ += text;
    Json event = place("delta", text);
    if (token_stats_) event["token_stats"] = std::exchange(stats_, Json::array());
    if (is_message) {
      event["logprobs"] = tokens_;
      for (const Json& token : tokens_) part_tokens_.push_back(token);
    }
    emit(out, is_message ? "response.output_text.delta" : "response.reasoning_text.delta", std::move(event));
  }

  void add_call(std::string& out, const ToolCallDelta& call) {
    if (!call.id.empty()) {
      close(out);
      call_id_ = call.id;
      name_ = call.name;
      open(out, Item::call, "fc_");
    }
    if (call.arguments.empty()) return;
    text_ += call.arguments;
    emit(out, "response.function_call_arguments.delta", place("delta", call.arguments));
  }

  void close(std::string& out, const char* status = "completed") {
    if (open_ == Item::none) return;
    if (open_ == Item::call) {
      emit(out, "response.function_call_arguments.done", place("arguments", text_));
    } else {
      Json done = place("text", text_);
      if (open_ == Item::message) done["logprobs"] = part_tokens_;
      emit(out, open_ == Item::message ? "response.output_text.done" : "response.reasoning_text.done", std::move(done));
      emit(out, "response.content_part.done", place("part", part_json()));
    }
    Json item = item_json(status);
    emit(out, "response.output_item.done", Json{{"output_index", output_.size()}, {"item", item}});
    output_.push_back(std::move(item));
    open_ = Item::none;
  }

  const std::string id_;
  const std::string model_;
  const int64_t created_;
  const bool logprobs_;
  const bool token_stats_;
  Json stats_ = Json::array(), all_stats_ = Json::array();
  Json echo_ = Json::object();
  Json output_ = Json::array();  // items that are complete
  int sequence_ = 0;
  std::vector<orchestrator::UsedPassage> passages_;
  Finish finish_ = Finish::stop;

  Item open_ = Item::none;
  std::string item_id_, call_id_, name_;
  std::string text_;  // of the open item: its text or its arguments
  Json tokens_ = Json::array(), part_tokens_ = Json::array();
};

}  // namespace

std::unique_ptr<ResponseWriter> responses_writer(std::string model, int64_t created, const std::string& echo,
                                                 bool logprobs, bool token_stats) {
  return std::make_unique<ResponsesWriter>(std::move(model), created, echo, logprobs, token_stats);
}

}  // namespace chimere::server
