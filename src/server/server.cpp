// server.cpp  Routes behind an HTTP server, if the address may be served.
#include "server/server.h"

namespace chimere::server {

Server::~Server() = default;

Status Server::check(const ServerConfig& config) {
  TRY(check_address(config.http));
  if (config.keys.empty() && !is_loopback(config.http.host)) {
    return Error{Code::invalid_argument,
                 "host " + config.http.host + " is reachable from other machines: expected an API key, found none"};
  }
  return Ok{};
}

Result<std::unique_ptr<Server>> Server::listen(ServerConfig config, orchestrator::ChatService& service,
                                               orchestrator::Embedder* embedder) {
  TRY(check(config));
  Access access(std::move(config.keys), config.rate_limit);
  std::unique_ptr<Server> server(new Server());
  Services services{service,
                          embedder ? *embedder : service.embedder(),
                          server->monitor_,
                          config.version,
                          config.request_timeout,
                          config.lora_folder};
  if (config.workers) services.workers = config.workers;
  server->routes_ = std::make_unique<Routes>(services, std::move(access), config.watch);
  TRY_ASSIGN(server->http_, HttpServer::listen(std::move(config.http), *server->routes_));
  return Result<std::unique_ptr<Server>>{std::move(server)};
}

}  // namespace chimere::server
