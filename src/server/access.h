// access.h  Who may come in: keys, hosts, origins, and how often.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/http.h"
#include "server/rate_limiter.h"

namespace chimere::server {

class Access {
 public:
  // Without keys everything that comes from this machine is served.
  Access(ApiKeys keys, int requests_per_minute) : keys_(std::move(keys)), limiter_(requests_per_minute) {}

  // Writes the name of its key into `head.client`, or says why it is not let in.
  std::optional<HttpResponse> refuse_stranger(HttpRequest& head);
  // Counts the request.
  std::optional<HttpResponse> refuse_too_many(const HttpRequest& head);

 private:
  std::optional<HttpResponse> check_key(HttpRequest& head);
  std::optional<HttpResponse> check_browser(const HttpRequest& head) const;

  const ApiKeys keys_;
  RateLimiter limiter_;
};

}  // namespace chimere::server
