// status_endpoints.cpp  What those ask who watch the server: /health, /livez, /readyz, /metrics, /v1/status. They answer
// from what the engine last published and never wait for a step.
#include "base/platform/process.h"
#include "server/admin/metrics_text.h"
#include "server/admin/stall_watch.h"
#include "server/admin/status_json.h"
#include "server/endpoints.h"
#include "server/http/access.h"
#include "server/http/json.h"
#include "server/learning/improve_desk.h"

namespace chimere::server {

void add_status_endpoints(Router& router, const Services& services, const std::shared_ptr<Access>& access) {
  auto health = [services](Call call) {
    const engine::EngineStats stats = services.chat.engine().stats();
    Json json;
    json["status"] = "ok";
    json["engine"] = "chimere";
    json["model"] = services.chat.model_info().name;
    json["running"] = stats.running;
    json["queued"] = stats.queued;
    return answer_now(call, json_response(json));
  };
  // The port is open from when the model is loaded until the server is told to stop, so that both answer alike.
  auto probe = [services](Call call) {
    return answer_now(call, probe_response(services.monitor.stands_still ? kStandsStill : ""));
  };
  auto metrics = [services](Call call) {
    std::string text =
        metrics_text(services.monitor, services.chat.engine().stats(), resident_bytes(), services.chat.memory().usage(),
                     services.odo ? services.odo->stage_counts() : std::map<std::string, odo::StageCount>());
    if (services.journal) text += journal_metrics_text(services.journal->counts());
    if (services.improve) {
      const ImproveDesk::State state = services.improve->state();
      text += improve_metrics_text(services.improve->counts(), !state.kind.empty(), state.is_paused);
    }
    return answer_now(call, {200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, std::move(text)});
  };
  auto status = [services, access](Call call) {
    Json json = status_json(services);
    json["keys"] = keys_json(*access, call.request);
    return answer_now(call, json_response(json));
  };
  router.add({.method = "GET", .path = "/health", .handler = health, .needs_key = false, .is_polled = true});
  router.add({.method = "GET", .path = "/livez", .handler = probe, .needs_key = false, .is_polled = true});
  router.add({.method = "GET", .path = "/readyz", .handler = probe, .needs_key = false, .is_polled = true});
  router.add({.method = "GET", .path = "/metrics", .handler = metrics, .is_polled = true});
  router.add({.method = "GET", .path = "/v1/status", .handler = status, .is_polled = true});
}

}  // namespace chimere::server
