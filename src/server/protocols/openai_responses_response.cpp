// openai_responses_response.cpp  Items open and close one after the other: a thought, a text, calls.
#include "server/protocols/openai_responses_response.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/protocols/shared/answer_json.h"

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

// As this API has them. `before`: characters of the answer that stand in earlier items.
Json annotation_json(const orchestrator::Citation& citation, size_t before) {
  Json json = {{"start_index", citation.begin - before}, {"end_index", citation.end - before}};
  if (citation.url.empty()) {
    json.update({{"type", "file_citation"},
                 {"index", citation.begin - before},
                 {"file_id", citation.document},
                 {"filename", citation.document}});
  } else {
    json.update({{"type", "url_citation"}, {"url", citation.url}});
  }
  json["title"] = citation.title;
  return json;
}

size_t n_chars_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class ResponsesWriter : public ResponseWriter {
 public:
  explicit ResponsesWriter(ResponsesHead head) : id_(new_object_id("resp_")), head_(std::move(head)) {
    if (auto parsed = parse_json(head_.echo)) echo_ = std::move(*parsed);
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
    tokens_ = head_.logprobs && !chunk.content.empty() ? logprobs_json(chunk.tokens) : Json::array();
    if (!chunk.content.empty()) add_text(out, Item::message, chunk.content);
    for (const ToolCallDelta& call : chunk.tool_calls) add_call(out, call);
    if (chunk.kind == ChatChunk::Kind::finished) {
      finish_ = chunk.finish;
      annotate(out, chunk.citations);
      close(out, is_cut() ? "incomplete" : "completed");
      passages_ = chunk.passages;
    }
    return out;
  }

  std::string end(const engine::Usage& total) override {
    std::string out;
    emit(out, is_cut() ? "response.incomplete" : "response.completed", Json{{"response", ended(total)}});
    return out;
  }

  // Clients that shorten their conversation when it does not fit look for the event.
  bool streams(const ApiError& error) const override { return error.n_ctx > 0; }

  std::string error_event(const ApiError& error) override {
    std::string out;
    if (sequence_ == 0) emit(out, "response.created", Json{{"response", response("in_progress", nullptr)}});
    close(out, "incomplete");
    Json failed = response("failed", nullptr);
    failed["error"] = Json{{"code", error.code.empty() ? "server_error" : error.code}, {"message", error.message}};
    if (error.n_ctx > 0) {
      failed["error"]["n_prompt_tokens"] = error.n_prompt_tokens;
      failed["error"]["n_ctx"] = error.n_ctx;
    }
    emit(out, "response.failed", Json{{"response", std::move(failed)}});
    return out;
  }

  std::string body(const std::vector<ChatChunk>& choices, const engine::Usage& total) override {
    ChatChunk sum = choices.front();
    sum.kind = ChatChunk::Kind::finished;
    events(0, sum);  // the same items as in a stream
    return to_text(ended(total));
  }

  HttpResponse error(const ApiError& error) override { return error_response(error); }

 private:
  enum class Item { none, reasoning, message, call };

  bool is_cut() const { return finish_ == Finish::length || finish_ == Finish::loop; }

  Json ended(const engine::Usage& total) const {
    Json whole = response(is_cut() ? "incomplete" : "completed", usage_of(total));
    if (head_.keep) head_.keep(whole);
    return whole;
  }

  // What the answer cites is known when it is whole. Items that ended before are told of with the response alone.
  void annotate(std::string& out, const std::vector<orchestrator::Citation>& citations) {
    for (const orchestrator::Citation& citation : citations) {
      if (open_ == Item::message && citation.begin >= n_chars_before_) {
        annotations_.push_back(annotation_json(citation, n_chars_before_));
        Json event = place("annotation", annotations_.back());
        event["annotation_index"] = annotations_.size() - 1;
        emit(out, "response.output_text.annotation.added", std::move(event));
        continue;
      }
      size_t before = 0;
      for (Json& item : output_) {
        if (item["type"] != "message" || item["content"].empty()) continue;
        Json& part = item["content"][0];
        const size_t n_chars = n_chars_of(part["text"].get_ref<const std::string&>());
        if (citation.begin < before + n_chars) {
          part["annotations"].push_back(annotation_json(citation, before));
          break;
        }
        before += n_chars;
      }
    }
  }

  // Of all tokens of the chunk, on the first event of text that it makes.
  void add_token_stats(const ChatChunk& chunk) {
    if (!head_.token_stats) return;
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
    json["created_at"] = head_.created;
    json["status"] = status;
    json["background"] = false;
    json["error"] = nullptr;
    json["incomplete_details"] = std::string_view(status) == "incomplete"
                                     ? Json{{"reason", finish_ == Finish::loop ? "loop" : "max_output_tokens"}}
                                     : Json(nullptr);
    json["model"] = head_.model;
    json["output"] = output_;
    json["previous_response_id"] = nullptr;
    json.update(echo_);
    if (head_.token_stats) json["token_stats"] = all_stats_;
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
      add_call_fields(json, status);
    }
    return json;
  }

  void add_call_fields(Json& json, const char* status) const {
    const bool is_custom = tool_.kind == ResponseTool::Kind::custom;
    const bool is_search = tool_.kind == ResponseTool::Kind::search;
    json["type"] = is_custom ? "custom_tool_call" : is_search ? "tool_search_call" : "function_call";
    json["status"] = status;
    json["call_id"] = call_id_;
    if (is_search) {
      json["execution"] = "client";
      auto arguments = parse_json(text_.empty() ? "{}" : text_);
      json["arguments"] = arguments ? std::move(*arguments) : Json(text_);
      return;
    }
    if (!tool_.space.empty()) json["namespace"] = tool_.space;
    json["name"] = tool_.name;
    json[is_custom ? "input" : "arguments"] = text_;
  }

  Json part_json() const {
    if (open_ == Item::reasoning) return Json{{"type", "reasoning_text"}, {"text", text_}};
    Json json;
    json["type"] = "output_text";
    json["text"] = text_;
    json["annotations"] = annotations_;
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
    annotations_ = Json::array();
    emit(out, "response.output_item.added", Json{{"output_index", output_.size()}, {"item", item_json("in_progress")}});
    if (kind != Item::call) emit(out, "response.content_part.added", place("part", part_json()));
  }

  void add_text(std::string& out, Item kind, const std::string& text) {
    const bool is_message = kind == Item::message;
    if (open_ != kind) open(out, kind, is_message ? "msg_" : "rs_");
    text_ += text;
    Json event = place("delta", text);
    if (head_.token_stats) event["token_stats"] = std::exchange(stats_, Json::array());
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
      const auto declared = head_.tools.find(call.name);
      tool_ =
          declared == head_.tools.end() ? ResponseTool{ResponseTool::Kind::function, {}, call.name} : declared->second;
      input_ = {};
      open(out, Item::call, tool_.kind == ResponseTool::Kind::custom ? "ctc_" : "fc_");
    }
    const bool is_custom = tool_.kind == ResponseTool::Kind::custom;
    const std::string delta = is_custom ? input_.push(call.arguments) : call.arguments;
    if (delta.empty()) return;
    text_ += delta;
    if (tool_.kind == ResponseTool::Kind::search) return;  // has no events for parts of it
    emit(out, is_custom ? "response.custom_tool_call_input.delta" : "response.function_call_arguments.delta",
         place("delta", delta));
  }

  void close(std::string& out, const char* status = "completed") {
    if (open_ == Item::none) return;
    if (open_ == Item::call) {
      close_call(out);
    } else {
      Json done = place("text", text_);
      if (open_ == Item::message) done["logprobs"] = part_tokens_;
      emit(out, open_ == Item::message ? "response.output_text.done" : "response.reasoning_text.done", std::move(done));
      emit(out, "response.content_part.done", place("part", part_json()));
    }
    Json item = item_json(status);
    emit(out, "response.output_item.done", Json{{"output_index", output_.size()}, {"item", item}});
    output_.push_back(std::move(item));
    if (open_ == Item::message) n_chars_before_ += n_chars_of(text_);
    open_ = Item::none;
  }

  void close_call(std::string& out) {
    if (tool_.kind == ResponseTool::Kind::search) return;
    if (tool_.kind == ResponseTool::Kind::function) {
      return emit(out, "response.function_call_arguments.done", place("arguments", text_));
    }
    // What could only be read now.
    if (text_.empty() && !(text_ = input_.text()).empty()) {
      emit(out, "response.custom_tool_call_input.delta", place("delta", text_));
    }
    emit(out, "response.custom_tool_call_input.done", place("input", text_));
  }

  const std::string id_;
  const ResponsesHead head_;
  Json stats_ = Json::array(), all_stats_ = Json::array();
  Json echo_ = Json::object();
  Json output_ = Json::array();  // items that are complete
  int sequence_ = 0;
  std::vector<orchestrator::UsedPassage> passages_;
  Finish finish_ = Finish::stop;

  Item open_ = Item::none;
  std::string item_id_, call_id_;
  ResponseTool tool_;  // of an open call
  CustomInput input_;
  std::string text_;  // of the open item: its text or its arguments
  Json tokens_ = Json::array(), part_tokens_ = Json::array();
  Json annotations_ = Json::array();  // of an open message
  size_t n_chars_before_ = 0;         // of the answer, in messages that are complete
};

}  // namespace

std::unique_ptr<ResponseWriter> responses_writer(ResponsesHead head) {
  return std::make_unique<ResponsesWriter>(std::move(head));
}

}  // namespace chimere::server
