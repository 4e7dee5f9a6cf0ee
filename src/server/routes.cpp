// routes.cpp  Paths, keys and origins.
#include "server/routes.h"

#include <ctime>
#include <utility>

#include "server/api_error.h"
#include "server/chat_answer.h"
#include "server/chat_schema.h"
#include "server/json.h"
#include "server/request_log.h"

namespace chimere::server {
namespace {

struct Route {
  std::string_view path;
  std::string_view method;
};

constexpr std::string_view kHealth = "/health";
constexpr std::string_view kModels = "/v1/models";
constexpr std::string_view kChat = "/v1/chat/completions";
constexpr Route kRoutes[] = {{kHealth, "GET"}, {kModels, "GET"}, {kChat, "POST"}};

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (route.path == path) return &route;
  }
  return nullptr;
}

HttpResponse json_response(const Json& json) { return {200, {{"Content-Type", "application/json"}}, to_text(json)}; }

// "localhost:8081", "127.0.0.1", "[::1]:80"
bool names_this_machine(std::string_view authority) {
  if (authority.rfind("[::1]", 0) == 0) return authority.size() == 5 || authority[5] == ':';
  const std::string_view host = authority.substr(0, authority.find(':'));
  return equals_ignoring_case(host, "localhost") || host == "127.0.0.1";
}

HttpResponse logged(const HttpRequest& request, HttpResponse response) {
  RequestLog log(request.method, request.path);
  log.set_status(response.status);
  return response;
}

}  // namespace

bool is_same_key(std::string_view given, std::string_view key) {
  size_t difference = given.size() ^ key.size();
  for (size_t i = 0; i < given.size() && !key.empty(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ key[i % key.size()]);
  }
  return difference == 0;
}

Routes::Routes(orchestrator::ChatService& service, std::string api_key)
    : service_(service), api_key_(std::move(api_key)), started_(static_cast<int64_t>(std::time(nullptr))) {}

std::optional<HttpResponse> Routes::refuse_stranger(const HttpRequest& head) const {
  if (!api_key_.empty()) {
    const std::string_view authorization = head.header("Authorization");
    constexpr std::string_view kScheme = "Bearer ";
    const bool is_bearer = equals_ignoring_case(authorization.substr(0, kScheme.size()), kScheme);
    if (is_bearer && is_same_key(authorization.substr(kScheme.size()), api_key_)) return std::nullopt;
    return error_response({401, "expected the header 'Authorization: Bearer KEY' with the key of this server",
                           "authentication_error", "", "invalid_api_key"});
  }
  // Without a key we serve this machine alone, and not the web pages its browser happens to show: those come with a
  // foreign Origin, or with a foreign Host that was made to point here.
  const std::string_view host = head.header("Host");
  if (!host.empty() && !names_this_machine(host)) {
    return error_response({403, "Host: a server without a key answers to localhost only; start it with a key",
                           "permission_error", "", "foreign_host"});
  }
  std::string_view origin = head.header("Origin");
  if (origin.empty()) return std::nullopt;
  const size_t authority = origin.find("://");
  if (authority != std::string_view::npos && names_this_machine(origin.substr(authority + 3))) return std::nullopt;
  return error_response({403,
                         "Origin: a server without a key answers to pages of this machine only; start it with a key",
                         "permission_error", "", "foreign_origin"});
}

std::optional<HttpResponse> Routes::refuse(const HttpRequest& head) {
  const Route* route = find_route(head.path);
  if (!(route && route->path == kHealth)) {
    if (auto refused = refuse_stranger(head)) return logged(head, std::move(*refused));
  }
  if (!route) {
    return logged(head, error_response({404,
                                        "no such path: " + head.path +
                                            "; see /health, /v1/models, "
                                            "/v1/chat/completions",
                                        "invalid_request_error", "", "not_found"}));
  }
  if (route->method != head.method) {
    HttpResponse response =
        error_response({405, head.path + ": expected " + std::string(route->method) + ", found " + head.method,
                        "invalid_request_error", "", "method_not_allowed"});
    response.add_header("Allow", std::string(route->method));
    return logged(head, std::move(response));
  }
  return std::nullopt;
}

std::unique_ptr<Answer> Routes::handle(HttpRequest request, Wake wake) {
  if (request.path == kHealth) return immediate(health());
  if (request.path == kModels) return immediate(logged(request, models()));
  auto log = std::make_unique<RequestLog>(request.method, request.path);
  auto call = parse_chat_call(request.body, service_.default_sampling());
  if (const ApiError* error = std::get_if<ApiError>(&call)) {
    log->set_status(error->status);
    return immediate(error_response(*error));
  }
  return chat_answer(service_, std::move(std::get<ChatCall>(call)), std::move(wake), std::move(log));
}

HttpResponse Routes::error(int status, std::string message) {
  const bool ours = status >= 500;
  HttpRequest unread;
  unread.method = "-";
  unread.path = "-";
  return logged(unread,
                error_response({status, std::move(message), ours ? "server_error" : "invalid_request_error", "", ""}));
}

HttpResponse Routes::health() const {
  const engine::EngineStats stats = service_.stats();
  Json json;
  json["status"] = "ok";
  json["model"] = service_.model_name();
  json["running"] = stats.running;
  json["queued"] = stats.queued;
  return json_response(json);
}

HttpResponse Routes::models() const {
  Json model;
  model["id"] = service_.model_name();
  model["object"] = "model";
  model["created"] = started_;
  model["owned_by"] = "chimere";
  model["context_length"] = service_.context_length();
  Json json;
  json["object"] = "list";
  json["data"] = Json::array({std::move(model)});
  return json_response(json);
}

}  // namespace chimere::server
