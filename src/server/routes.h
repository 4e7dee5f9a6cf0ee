// routes.h  The door of the server: who may come in (access.h), and which route takes the request (router.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/access.h"
#include "server/endpoints.h"
#include "server/http.h"
#include "server/router.h"

namespace chimere::server {

class Routes : public HttpHandler {
 public:
  Routes(const Services& services, Access access);

  std::optional<HttpResponse> refuse(HttpRequest& head) override;
  std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) override;
  HttpResponse error(const std::string& request_id, int status, std::string message) override;

 private:
  Router router_;
  Access access_;
};

}  // namespace chimere::server
