// token_endpoints.cpp  /tokenize, /detokenize, and how many tokens a conversation has: text and ids, nothing generated.
#include <utility>
#include <variant>

#include "server/endpoints.h"
#include "server/protocols/anthropic_request.h"
#include "server/protocols/anthropic_response.h"
#include "server/protocols/openai_chat_request.h"
#include "server/protocols/openai_responses_request.h"
#include "server/protocols/shared/engram_field.h"
#include "server/protocols/shared/json_fields.h"

namespace chimere::server {
namespace {

using orchestrator::ChatService;
using orchestrator::TokenJob;

constexpr size_t kMaxDetokenized = 1 << 20;
// Of an answer. A piece takes some 30 bytes of it, an id alone 7.
constexpr size_t kMaxTokenized = 1 << 20;
constexpr size_t kMaxPieces = 1 << 17;

// Waits for the ids, and for the worker that makes an answer of them.
class TokenAnswer : public Answer {
 public:
  using Writer = std::function<Result<std::string>(const std::vector<int32_t>&)>;

  TokenAnswer(std::shared_ptr<Workers> workers, std::unique_ptr<TokenJob> job, Writer write, ErrorWriter write_error,
              std::string ignored, Call call)
      : workers_(std::move(workers)),
        job_(std::move(job)),
        write_(std::move(write)),
        write_error_(write_error),
        ignored_(std::move(ignored)),
        call_(std::move(call)) {}

  Piece poll() override {
    if (!writing_) {
      auto ids = job_->poll();
      if (!ids) return {};
      if (!*ids) return whole(write_error_(to_api_error(ids->error())));
      writing_ =
          workers_->run<std::string>([write = write_, list = std::move(**ids)] { return write(list); }, call_.wake);
    }
    auto text = writing_->poll();
    if (!text) return {};
    if (!*text) return whole(write_error_(failed_work(text->error())));
    return whole({200, {{"Content-Type", "application/json"}}, std::move(**text)});
  }

 private:
  Piece whole(HttpResponse response) {
    if (!ignored_.empty()) response.add_header("X-Chimere-Ignored", ignored_);
    call_.record->set_status(response.status);
    return {std::move(response), {}, true};
  }

  const std::shared_ptr<Workers> workers_;
  std::unique_ptr<TokenJob> job_;
  const Writer write_;
  const ErrorWriter write_error_;
  const std::string ignored_;
  Call call_;
  std::unique_ptr<orchestrator::ServiceJob<std::string>> writing_;
};

// A piece that is no whole text is given as its bytes.
void append_piece(const Tokenizer& tokenizer, int32_t id, std::string& out) {
  const std::string text(tokenizer.token_text(id));
  out += "{\"id\":" + std::to_string(id) + ",\"piece\":";
  if (is_valid_utf8(text)) {
    out += to_text(Json(text));
  } else {
    out += '[';
    for (const char c : text) {
      if (out.back() != '[') out += ',';
      out += std::to_string(static_cast<unsigned char>(c));
    }
    out += ']';
  }
  out += '}';
}

// Written as it is: a value for each token would cost ten times the text.
Result<std::string> tokens_text(const ChatService& chat, const std::vector<int32_t>& ids, bool with_pieces) {
  const size_t most = with_pieces ? kMaxPieces : kMaxTokenized;
  if (ids.size() > most) {
    return Error{Code::invalid_argument, std::string(with_pieces ? "with_pieces" : "content") +
                                             ": expected a text of at most " + std::to_string(most) +
                                             " tokens, found " + std::to_string(ids.size())};
  }
  std::string out = "{\"tokens\":[";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    if (with_pieces) {
      append_piece(chat.tokenizer(), ids[i], out);
    } else {
      out += std::to_string(ids[i]);
    }
  }
  return out + "],\"count\":" + std::to_string(ids.size()) +
         ",\"max_model_len\":" + std::to_string(chat.context_length()) + "}";
}

struct TokenizeCall {
  std::variant<std::string, orchestrator::ChatRequest> what;
  std::string user = {};
  bool add_special = false, with_pieces = false;
  std::vector<std::string> ignored = {};
};

// {"content": TEXT} (or "prompt"), or the "messages" and "tools" of a chat.
Parsed<TokenizeCall> parse_tokenize(const std::string& body) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<OwnedJson>(parsed));
  TokenizeCall call;
  std::string model, text;
  fields.string("model", model);
  fields.boolean("add_special", call.add_special);
  fields.boolean("with_pieces", call.with_pieces);
  if (fields.ok() && fields.find("messages")) {
    auto chat_call = parse_chat_call(body, {});
    if (ApiError* error = std::get_if<ApiError>(&chat_call)) return std::move(*error);
    ChatCall& asked = std::get<ChatCall>(chat_call);
    std::erase(asked.ignored, "with_pieces");
    std::erase(asked.ignored, "add_special");
    call.what = std::move(asked.request);
    call.user = std::move(asked.user);
    call.ignored = std::move(asked.ignored);
    return call;
  }
  fields.string("prompt", text);
  fields.string("content", text);
  if (!fields.find("prompt") && !fields.find("content")) fields.fail("content", "expected a string, found none");
  if (!fields.ok()) return fields.error();
  call.what = std::move(text);
  call.ignored = fields.unknown();
  return call;
}

// Those of the prompt that the request would have, with the notes and passages of whoever asks.
std::unique_ptr<TokenJob> tokens_of(const Services& services, const Call& call, orchestrator::ChatRequest& request,
                                    const std::string& user) {
  request.memory.owner = memory_owner(call.request.client, user);
  services.limit(request, call);
  return services.chat.tokenize(std::move(request), call.wake);
}

std::unique_ptr<Answer> tokenize(const Services& services, Call call, TokenizeCall& asked) {
  ChatService& chat = services.chat;
  std::string* text = std::get_if<std::string>(&asked.what);
  auto job = text ? chat.tokenize(std::move(*text), asked.add_special, call.wake, Services::owner_of(call))
                  : tokens_of(services, call, std::get<orchestrator::ChatRequest>(asked.what), asked.user);
  const auto write = [&chat, with_pieces = asked.with_pieces](const std::vector<int32_t>& ids) {
    return tokens_text(chat, ids, with_pieces);
  };
  return std::make_unique<TokenAnswer>(services.workers, std::move(job), write, error_response,
                                       ignored_header(asked.ignored), std::move(call));
}

Parsed<HttpResponse> detokenized(const ChatService& chat, const std::string& body) {
  auto parsed = parse_body(body);
  if (ApiError* error = std::get_if<ApiError>(&parsed)) return std::move(*error);
  JsonFields fields(std::get<OwnedJson>(parsed));
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
  if (!fields.ok()) return fields.error();
  const std::string text = chat.tokenizer().decode(ids, true);
  HttpResponse response = json_response(Json{{"content", text}, {"prompt", text}});
  if (const std::string ignored = ignored_header(fields.unknown()); !ignored.empty()) {
    response.add_header("X-Chimere-Ignored", ignored);
  }
  return response;
}

std::unique_ptr<Answer> detokenize(const Services&, Call call, HttpResponse& made) {
  return answer_now(call, std::move(made));
}

std::unique_ptr<Answer> count_tokens(const Services& services, Call call, AnthropicCall& asked) {
  if (const auto error = services.names.refuse_to_chat(asked.model)) {
    return answer_now(call, anthropic_error_response(*error));
  }
  auto job = tokens_of(services, call, asked.request, asked.user);
  auto write = [](const std::vector<int32_t>& ids) -> Result<std::string> {
    return to_text(Json{{"input_tokens", ids.size()}});
  };
  return std::make_unique<TokenAnswer>(services.workers, std::move(job), write, anthropic_error_response,
                                       ignored_header(asked.ignored), std::move(call));
}

// The same for OpenAI's conversations.
template <class T>
std::unique_ptr<Answer> input_tokens(const Services& services, Call call, T& asked) {
  if (const auto error = services.names.refuse_to_chat(asked.model)) return answer_now(call, error_response(*error));
  auto job = tokens_of(services, call, asked.request, asked.user);
  auto write = [](const std::vector<int32_t>& ids) -> Result<std::string> {
    return to_text(Json{{"object", "response.input_tokens"}, {"input_tokens", ids.size()}});
  };
  return std::make_unique<TokenAnswer>(services.workers, std::move(job), write, error_response,
                                       ignored_header(asked.ignored), std::move(call));
}

}  // namespace

void add_token_endpoints(Router& router, const Services& services) {
  const ChatService& chat = services.chat;
  add_parsed_route(router, services, "/tokenize", parse_tokenize, tokenize);
  add_parsed_route(
      router, services, "/detokenize", [&chat](const std::string& body) { return detokenized(chat, body); },
      detokenize);
  add_parsed_route(
      router, services, "/v1/chat/completions/input_tokens",
      [&chat](const std::string& body) { return parse_chat_call(body, chat.defaults()); }, input_tokens<ChatCall>);
  router.add(
      {.method = "POST", .path = "/v1/responses/input_tokens", .handler = [services](Call call) {
         auto parse = [&chat = services.chat, kept = services.kept, owner = call.request.client](
                          const std::string& body) { return parse_responses_call(body, chat.defaults(), kept, owner); };
         return answer_parsed<ResponsesCall>(services, std::move(call), std::move(parse), input_tokens<ResponsesCall>);
       }});
  add_parsed_route(
      router, services, "/v1/messages/count_tokens",
      [&chat](const std::string& body) { return parse_anthropic_call(body, chat.defaults(), true); }, count_tokens,
      anthropic_error_response);
}

}  // namespace chimere::server
