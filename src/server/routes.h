// routes.h  Which request means what: /health, /v1/models, /v1/chat/completions. Keys and origins are checked here too.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/chat_service.h"
#include "server/http.h"

namespace chimere::server {

// Takes the same time whatever `given` has in common with `key`.
bool is_same_key(std::string_view given, std::string_view key);

class Routes : public HttpHandler {
 public:
  // Without a key everything that comes from this machine is served. The service outlives the routes.
  Routes(orchestrator::ChatService& service, std::string api_key);

  std::optional<HttpResponse> refuse(const HttpRequest& head) override;
  std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) override;
  HttpResponse error(int status, std::string message) override;

 private:
  std::optional<HttpResponse> refuse_stranger(const HttpRequest& head) const;
  HttpResponse health() const;
  HttpResponse models() const;

  orchestrator::ChatService& service_;
  const std::string api_key_;
  const int64_t started_;  // Unix time
};

}  // namespace chimere::server
