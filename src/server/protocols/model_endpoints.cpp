// model_endpoints.cpp  /v1/models: the models this server has.
#include <ctime>

#include "odo/odo.h"
#include "server/endpoints.h"
#include "server/http/api_error.h"
#include "server/http/json.h"

namespace chimere::server {
namespace {

Json listed_model(const std::string& name, int context_length, int64_t created) {
  Json json;
  json["id"] = name;
  json["object"] = "model";
  json["created"] = created;
  json["owned_by"] = "chimere";
  json["context_length"] = context_length;
  return json;
}

// The one that writes, and the one that embeds where it is another. `capabilities` tells clients which to offer for
// what: a base model answers no messages, and an encoder writes nothing.
Json models_json(const Services& services, int64_t created) {
  const orchestrator::Embedder& embedder = services.embedder;
  const bool embeds_itself = &embedder == &services.chat.embedder();
  Json models = Json::array({listed_model(services.names.chat, services.chat.context_length(), created)});
  if (!services.names.aliases.empty()) models[0]["aliases"] = services.names.aliases;
  if (!services.tags.empty()) models[0]["tags"] = services.tags;
  Json& capabilities = models[0]["capabilities"] = Json::array({"completion"});
  if (services.chat.model_info().chat) capabilities.push_back("chat");
  if (embeds_itself || services.names.chat_embeds) capabilities.push_back("embedding");
  if (services.odo && services.chat.model_info().chat) {
    for (const std::string& name : services.odo->model_names()) {
      models.push_back(listed_model(name, services.chat.context_length(), created));
      models.back()["capabilities"] = Json::array({"chat"});
      models.back()["parent"] = services.names.chat;
    }
  }
  if (embeds_itself) return models;
  models.push_back(listed_model(embedder.model_name(), embedder.context_length(), created));
  models.back()["dimensions"] = embedder.dimensions();
  models.back()["capabilities"] = Json::array({"embedding"});
  return models;
}

}  // namespace

void add_model_endpoints(Router& router, const Services& services) {
  const auto started = static_cast<int64_t>(std::time(nullptr));
  auto list = [services, started](Call call) {
    Json json;
    json["object"] = "list";
    json["data"] = models_json(services, started);
    return answer_now(call, json_response(json));
  };
  auto one = [services, started](Call call) {
    const Json models = models_json(services, started);
    const std::string name = unescaped_part(call.parameter);
    for (const Json& model : models) {
      if (model["id"] == name) return answer_now(call, json_response(model));
    }
    if (services.names.is_alias(name)) return answer_now(call, json_response(models[0]));
    return answer_now(call,
                      error_response({404, "model: expected one of " + services.names.list() + ", found '" + name + "'",
                                      "invalid_request_error", "model", "model_not_found"}));
  };
  router.add({.method = "GET", .path = "/v1/models", .handler = list});
  router.add({.method = "GET", .path = "/v1/models/{id}", .handler = one});
}

}  // namespace chimere::server
