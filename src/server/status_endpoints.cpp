// status_endpoints.cpp  What those ask who watch the server: /health.
#include "server/endpoints.h"
#include "server/json.h"

namespace chimere::server {

void add_status_endpoints(Router& router, const Services& services) {
  orchestrator::ChatService& chat = services.chat;
  auto health = [&chat](Call call) {
    const engine::EngineStats stats = chat.stats();
    Json json;
    json["status"] = "ok";
    json["model"] = chat.model_name();
    json["running"] = stats.running;
    json["queued"] = stats.queued;
    return answer_now(call, json_response(json));
  };
  router.add({.method = "GET", .path = "/health", .handler = health, .needs_key = false, .is_polled = true});
}

}  // namespace chimere::server
