// pair_endpoints.cpp  /v1/pair: a code of `serve --lan` becomes a key of the browser that brings it.
#include "server/endpoints.h"
#include "server/http/access.h"
#include "server/http/json.h"

namespace chimere::server {

void add_pair_endpoints(Router& router, const std::shared_ptr<Access>& access) {
  if (!access->can_pair()) return;
  auto pair = [access](Call call) {
    const auto paired = access->pair(call.request);
    if (const ApiError* error = std::get_if<ApiError>(&paired)) return answer_now(call, error_response(*error));
    HttpResponse response = json_response(Json{{"object", "key"}, {"key", std::get<std::string>(paired)}});
    response.add_header("Cache-Control", "no-store");
    return answer_now(call, std::move(response));
  };
  router.add({.method = "POST", .path = "/v1/pair", .handler = pair, .needs_key = false});
}

}  // namespace chimere::server
