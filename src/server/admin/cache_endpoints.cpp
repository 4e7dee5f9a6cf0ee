// cache_endpoints.cpp  /v1/cache: how much is kept of prompts, and its end when somebody asks for it.
#include <utility>

#include "server/endpoints.h"
#include "server/http/json.h"
#include "server/job_answer.h"

namespace chimere::server {
namespace {

// Where files lie on the server is for those at the same machine to know.
bool may_see_paths(const HttpRequest& request) {
  return request.client.empty() && (request.remote.starts_with("127.") || request.remote == "::1");
}

Json kept_json(const Services& services, const HttpRequest& request) {
  const engine::CacheStats cache = services.chat.engine().stats().cache;
  const std::string folder = services.chat.engine().cache_folder();
  Json json;
  json["object"] = "cache";
  json["enabled"] = cache.budget_bytes > 0;
  json["directory"] = !folder.empty() && may_see_paths(request) ? Json(folder) : Json();
  json["bytes"] = cache.disk_bytes + cache.others_disk_bytes;
  json["limit_bytes"] = cache.disk_limit_bytes;
  json["entries"] = cache.entries;
  json["memory_bytes"] = cache.ram_bytes;
  return json;
}

// Of a key its own part; without keys everything.
std::unique_ptr<Answer> clear_kept(const Services& services, Call call) {
  std::optional<uint64_t> owner;
  if (!call.request.client.empty()) owner = Services::owner_of(call);
  const auto write = [](const CacheUse& cleared) {
    return json_response(
        Json{{"object", "cache"}, {"cleared_bytes", cleared.bytes}, {"cleared_entries", cleared.entries}});
  };
  return std::make_unique<JobAnswer<CacheUse>>(services.chat.clear_cache(owner, call.wake), std::move(call.record),
                                               write);
}

}  // namespace

void add_cache_endpoints(Router& router, const Services& services) {
  router.add(
      {.method = "GET",
       .path = "/v1/cache",
       .handler = [services](Call call) { return answer_now(call, json_response(kept_json(services, call.request))); },
       .is_polled = true});
  router.add({.method = "DELETE", .path = "/v1/cache", .handler = [services](Call call) {
                return clear_kept(services, std::move(call));
              }});
}

}  // namespace chimere::server
