// chat_endpoints.cpp  /v1/chat/completions.
#include "server/api_error.h"
#include "server/chat_answer.h"
#include "server/chat_schema.h"
#include "server/endpoints.h"

namespace chimere::server {

void add_chat_endpoints(Router& router, const Services& services) {
  orchestrator::ChatService& chat = services.chat;
  auto completions = [&chat](Call call) {
    auto parsed = parse_chat_call(call.request.body, chat.default_sampling());
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return answer_now(call, error_response(*error));
    return chat_answer(chat, std::move(std::get<ChatCall>(parsed)), std::move(call.wake), std::move(call.record));
  };
  router.add({.method = "POST", .path = "/v1/chat/completions", .handler = completions});
}

}  // namespace chimere::server
