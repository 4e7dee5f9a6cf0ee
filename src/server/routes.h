// routes.h  The door of the server: who may come in (access.h), and which route takes the request (router.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/admin/housekeeping.h"
#include "server/batch/batch_house.h"
#include "server/batch/batch_runner.h"
#include "server/endpoints.h"
#include "server/http/access.h"
#include "server/http/http.h"
#include "server/http/router.h"

namespace chimere::server {

struct WatchConfig {
  std::chrono::seconds dump_on_stall{0};  // the engine's state goes to the log when it makes no step for this long
  bool log_prompts = false;               // bodies of requests go to the log
};

// A path by another of its names becomes the one in the table of routes.
void use_own_name(HttpRequest& head);
// An error in the words of the API that the path belongs to.
HttpResponse shaped_for(const HttpRequest& head, const ApiError& error);

// Of what never became a request, or whose handler threw.
HttpResponse connection_error(const HttpRequest& head, int status, std::string message);

// Requests that people have under way and that can be cancelled: those that batches give way to.
bool has_others(const Monitor& monitor, const BatchHouse::IsOwn& is_own);

class Routes : public HttpHandler, private BatchHouse {
 public:
  Routes(const Services& services, std::shared_ptr<Access> access, WatchConfig watch);

  std::optional<HttpResponse> refuse(HttpRequest& head) override;
  std::unique_ptr<Answer> handle(HttpRequest request, Wake wake) override;
  HttpResponse error(const HttpRequest& head, int status, std::string message) override;
  void tick() override;
  void set_wake(Wake wake) override;
  void work() override;
  void end_answers() override;

 private:
  std::optional<ApiError> refusal_of(HttpRequest& head, const Router::Match& match);
  HttpResponse logged(const HttpRequest& request, const Route* route, HttpResponse response);

  std::unique_ptr<Answer> ask_for_batch(HttpRequest request) override;
  bool others_ask(const IsOwn& is_own) override;
  bool others_wait_for_model(const IsOwn&) const override { return false; }
  std::string model_of(const HttpRequest&) override { return {}; }
  std::optional<engine::EngineStats> stats_of(const std::string& model) override;
  bool may_load() override { return false; }
  void tell_ends(std::function<void()> ring) override;

  const Services services_;
  Router router_;
  const std::shared_ptr<Access> access_;
  const bool log_prompts_;
  Housekeeping housekeeping_;
  Wake wake_;
  std::unique_ptr<BatchRunner> batches_;  // null: none are taken; its answers go before all else does
};

}  // namespace chimere::server
