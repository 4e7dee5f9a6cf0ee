// model_endpoints.cpp  /v1/models: the model this server has.
#include <ctime>

#include "server/endpoints.h"
#include "server/json.h"

namespace chimere::server {

void add_model_endpoints(Router& router, const Services& services) {
  orchestrator::ChatService& chat = services.chat;
  const auto started = static_cast<int64_t>(std::time(nullptr));
  auto models = [&chat, started](Call call) {
    Json model;
    model["id"] = chat.model_name();
    model["object"] = "model";
    model["created"] = started;
    model["owned_by"] = "chimere";
    model["context_length"] = chat.context_length();
    Json json;
    json["object"] = "list";
    json["data"] = Json::array({std::move(model)});
    return answer_now(call, json_response(json));
  };
  router.add({.method = "GET", .path = "/v1/models", .handler = models});
}

}  // namespace chimere::server
