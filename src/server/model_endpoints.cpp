// model_endpoints.cpp  /v1/models: the model this server has.
#include <ctime>

#include "server/api_error.h"
#include "server/endpoints.h"
#include "server/json.h"

namespace chimere::server {

void add_model_endpoints(Router& router, const Services& services) {
  orchestrator::ChatService& chat = services.chat;
  const auto started = static_cast<int64_t>(std::time(nullptr));
  const auto model = [&chat, started] {
    Json json;
    json["id"] = chat.model_name();
    json["object"] = "model";
    json["created"] = started;
    json["owned_by"] = "chimere";
    json["context_length"] = chat.context_length();
    return json;
  };
  auto list = [model](Call call) {
    Json json;
    json["object"] = "list";
    json["data"] = Json::array({model()});
    return answer_now(call, json_response(json));
  };
  auto one = [model, &chat](Call call) {
    if (call.parameter == chat.model_name()) return answer_now(call, json_response(model()));
    return answer_now(
        call, error_response({404, "model: expected '" + chat.model_name() + "', found '" + call.parameter + "'",
                              "invalid_request_error", "model", "model_not_found"}));
  };
  router.add({.method = "GET", .path = "/v1/models", .handler = list});
  router.add({.method = "GET", .path = "/v1/models/{id}", .handler = one});
}

}  // namespace chimere::server
