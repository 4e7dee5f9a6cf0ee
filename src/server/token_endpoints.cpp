// token_endpoints.cpp  /tokenize, /detokenize and /v1/messages/count_tokens: text and ids, nothing generated.
#include <utility>

#include "server/anthropic_schema.h"
#include "server/chat_schema.h"
#include "server/endpoints.h"
#include "server/json_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ChatService;
using orchestrator::TokenJob;

constexpr size_t kMaxDetokenized = 1 << 20;

// Waits for the ids and makes an answer of them.
class TokenAnswer : public Answer {
 public:
  using Writer = std::function<Json(const std::vector<int32_t>&)>;
  using ErrorWriter = HttpResponse (*)(const ApiError&);

  TokenAnswer(std::unique_ptr<TokenJob> job, Writer write, ErrorWriter write_error, std::string ignored,
              std::unique_ptr<RequestRecord> record)
      : job_(std::move(job)),
        write_(std::move(write)),
        write_error_(write_error),
        ignored_(std::move(ignored)),
        record_(std::move(record)) {}

  Piece poll() override {
    Piece piece;
    auto ids = job_->poll();
    if (!ids) return piece;
    piece.head = *ids ? json_response(write_(**ids)) : write_error_(to_api_error(ids->error()));
    if (!ignored_.empty()) piece.head->add_header("X-Chimere-Ignored", ignored_);
    piece.done = true;
    record_->set_status(piece.head->status);
    return piece;
  }

 private:
  std::unique_ptr<TokenJob> job_;
  const Writer write_;
  const ErrorWriter write_error_;
  const std::string ignored_;
  std::unique_ptr<RequestRecord> record_;
};

// A piece that is no whole text is given as its bytes.
Json piece_json(const Tokenizer& tokenizer, int32_t id) {
  const std::string text(tokenizer.token_text(id));
  Json json;
  json["id"] = id;
  const auto written = parse_json(to_text(Json(text)));
  if (written && *written == Json(text)) {
    json["piece"] = text;
  } else {
    json["piece"] = Json::array();
    for (const char c : text) json["piece"].push_back(static_cast<unsigned char>(c));
  }
  return json;
}

Json tokens_json(const ChatService& chat, const std::vector<int32_t>& ids, bool with_pieces) {
  Json json;
  json["tokens"] = Json::array();
  for (const int32_t id : ids) {
    json["tokens"].push_back(with_pieces ? piece_json(chat.tokenizer(), id) : Json(id));
  }
  json["count"] = ids.size();
  json["max_model_len"] = chat.context_length();
  return json;
}

// {"content": TEXT} (or "prompt"), or the "messages" and "tools" of a chat.
std::unique_ptr<Answer> tokenize(ChatService& chat, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<Json>(parsed));
  std::string model, text;
  bool add_special = false, with_pieces = false;
  fields.string("model", model);
  fields.boolean("add_special", add_special);
  fields.boolean("with_pieces", with_pieces);
  const auto write = [&chat, with_pieces](const std::vector<int32_t>& ids) {
    return tokens_json(chat, ids, with_pieces);
  };
  const auto answer = [&](std::unique_ptr<TokenJob> job, std::vector<std::string> ignored) {
    return std::make_unique<TokenAnswer>(std::move(job), write, error_response, ignored_header(ignored),
                                         std::move(call.record));
  };
  if (fields.ok() && fields.find("messages")) {
    auto chat_call = parse_chat_call(call.request.body, {});
    if (const ApiError* error = std::get_if<ApiError>(&chat_call)) return answer_now(call, error_response(*error));
    ChatCall& asked = std::get<ChatCall>(chat_call);
    std::erase(asked.ignored, "with_pieces");
    std::erase(asked.ignored, "add_special");
    asked.request.owner = Services::owner_of(call);
    return answer(chat.tokenize(std::move(asked.request), call.wake), std::move(asked.ignored));
  }
  fields.string("prompt", text);
  fields.string("content", text);
  if (!fields.find("prompt") && !fields.find("content")) fields.fail("content", "expected a string, found none");
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  return answer(chat.tokenize(std::move(text), add_special, call.wake, Services::owner_of(call)), fields.unknown());
}

std::unique_ptr<Answer> detokenize(ChatService& chat, Call call) {
  auto parsed = parse_body(call.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
  JsonFields fields(std::get<Json>(parsed));
  std::string model;
  fields.string("model", model);
  std::vector<int32_t> ids;
  const Json* tokens = fields.array("tokens");
  if (!tokens) {
    fields.fail("tokens", "expected an array of token ids, found none");
  } else if (tokens->size() > kMaxDetokenized) {
    fields.fail("tokens", "expected at most " + std::to_string(kMaxDetokenized) + " ids");
  } else {
    for (const Json& id : *tokens) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= chat.tokenizer().n_vocab()) {
        fields.fail("tokens", "expected ids from 0 to " + std::to_string(chat.tokenizer().n_vocab() - 1) + ", found " +
                                  to_text(id));
        break;
      }
      ids.push_back(id.get<int32_t>());
    }
  }
  if (!fields.ok()) return answer_now(call, error_response(fields.error()));
  const std::string text = chat.tokenizer().decode(ids, true);
  HttpResponse response = json_response(Json{{"content", text}, {"prompt", text}});
  if (const std::string ignored = ignored_header(fields.unknown()); !ignored.empty()) {
    response.add_header("X-Chimere-Ignored", ignored);
  }
  return answer_now(call, std::move(response));
}

std::unique_ptr<Answer> count_tokens(ChatService& chat, Call call) {
  auto parsed = parse_anthropic_call(call.request.body, chat.default_sampling(), true);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, anthropic_error_response(*error));
  AnthropicCall& asked = std::get<AnthropicCall>(parsed);
  asked.request.owner = Services::owner_of(call);
  auto write = [](const std::vector<int32_t>& ids) { return Json{{"input_tokens", ids.size()}}; };
  return std::make_unique<TokenAnswer>(chat.tokenize(std::move(asked.request), call.wake), write,
                                       anthropic_error_response, ignored_header(asked.ignored), std::move(call.record));
}

}  // namespace

void add_token_endpoints(Router& router, const Services& services) {
  const auto add = [&](const char* path, std::unique_ptr<Answer> (*handler)(ChatService&, Call)) {
    ChatService& chat = services.chat;
    router.add({.method = "POST", .path = path, .handler = [&chat, handler](Call call) {
                  return handler(chat, std::move(call));
                }});
  };
  add("/tokenize", tokenize);
  add("/detokenize", detokenize);
  add("/v1/messages/count_tokens", count_tokens);
}

}  // namespace chimere::server
