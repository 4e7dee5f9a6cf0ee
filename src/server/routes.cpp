// routes.cpp  The list of families, and the order of the checks.
#include "server/routes.h"

#include <utility>

#include "server/api_error.h"

namespace chimere::server {
namespace {

HttpResponse logged(const HttpRequest& request, HttpResponse response) {
  RequestRecord record(request);
  record.set_status(response.status);
  return response;
}

}  // namespace

Routes::Routes(const Services& services, Access access) : access_(std::move(access)) {
  add_status_endpoints(router_, services);
  add_model_endpoints(router_, services);
  add_generation_endpoints(router_, services);
  add_token_endpoints(router_, services);
  add_page_endpoints(router_);
}

std::optional<HttpResponse> Routes::refuse(HttpRequest& head) {
  const Router::Match match = router_.find(head.method, head.path);
  if (!match.route || match.route->needs_key) {
    if (auto refused = access_.refuse_stranger(head)) return logged(head, std::move(*refused));
  }
  if (match.allowed.empty()) {
    return logged(head, error_response({404, "no such path: " + head.path, "invalid_request_error", "", "not_found"}));
  }
  if (!match.route) {
    HttpResponse response = error_response({405, head.path + ": expected " + match.allowed + ", found " + head.method,
                                            "invalid_request_error", "", "method_not_allowed"});
    response.add_header("Allow", match.allowed);
    return logged(head, std::move(response));
  }
  // Those who watch are not counted: a page that asks every second would lock its user out.
  if (match.route->needs_key && !match.route->is_polled) {
    if (auto refused = access_.refuse_too_many(head)) return logged(head, std::move(*refused));
  }
  return std::nullopt;
}

std::unique_ptr<Answer> Routes::handle(HttpRequest request, Wake wake) {
  Router::Match match = router_.find(request.method, request.path);
  auto record = std::make_unique<RequestRecord>(request);
  if (match.route->is_polled) record->log_failures_only();
  return match.route->handler({std::move(request), std::move(match.parameter), std::move(wake), std::move(record)});
}

HttpResponse Routes::error(const std::string& request_id, int status, std::string message) {
  const bool ours = status >= 500;
  HttpRequest unread;
  unread.id = request_id;
  unread.method = "-";
  unread.path = "-";
  return logged(unread,
                error_response({status, std::move(message), ours ? "server_error" : "invalid_request_error", "", ""}));
}

}  // namespace chimere::server
