// routes.h  The door of the server: who may come in (access.h), and which route takes the request (router.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/admin/housekeeping.h"
#include "server/endpoints.h"
#include "server/http/access.h"
#include "server/http/http.h"
#include "server/http/router.h"

namespace chimere::server {

struct WatchConfig {
  std::chrono::seconds dump_on_stall{0};  // the engine's state goes to the log when it makes no step for this long
  bool log_prompts = false;               // bodies of requests go to the log
};

class Routes : public HttpHandler {
 public:
  Routes(const Services& services, Access access, WatchConfig watch);

  std::optional<HttpResponse> refuse(HttpRequest& head) override;
  std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) override;
  HttpResponse error(const HttpRequest& head, int status, std::string message) override;
  void tick() override { housekeeping_.tick(); }
  void end_answers() override;

 private:
  std::optional<ApiError> refusal_of(HttpRequest& head, const Router::Match& match);
  HttpResponse logged(const HttpRequest& request, const Route* route, HttpResponse response);

  const Services services_;
  Router router_;
  Access access_;
  const bool log_prompts_;
  Housekeeping housekeeping_;
};

}  // namespace chimere::server
