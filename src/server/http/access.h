// access.h  Who may come in: keys, hosts, origins, and how often.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/api_error.h"
#include "server/http/api_keys.h"
#include "server/http/cors.h"
#include "server/http/http.h"
#include "server/http/rate_limiter.h"

namespace chimere::server {

class Access {
 public:
  // Without keys everything that comes from this machine is served, and what calls it by one of `hosts`.
  Access(ApiKeys keys, int requests_per_minute, std::vector<std::string> hosts = {}, Cors cors = {})
      : keys_(std::move(keys)), limiter_(requests_per_minute), hosts_(std::move(hosts)), cors_(std::move(cors)) {}

  const Cors& cors() const { return cors_; }

  // Writes the name of its key into `head.client`, or says why it is not let in.
  std::optional<ApiError> refuse_stranger(HttpRequest& head);
  // Counts the request.
  std::optional<ApiError> refuse_too_many(const HttpRequest& head);

 private:
  std::optional<ApiError> check_key(HttpRequest& head);
  std::optional<ApiError> check_browser(const HttpRequest& head) const;
  bool names_us(std::string_view authority) const;

  const ApiKeys keys_;
  RateLimiter limiter_;
  const std::vector<std::string> hosts_;
  const Cors cors_;
};

// Names for `Access`; an error says which is none.
Status check_hosts(const std::vector<std::string>& hosts);

}  // namespace chimere::server
