// access.h  Who may come in: keys, hosts, origins, and how often.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/http/api_error.h"
#include "server/http/api_keys.h"
#include "server/http/cors.h"
#include "server/http/http.h"
#include "server/http/key_usage.h"
#include "server/http/pairing.h"
#include "server/http/rate_limiter.h"

namespace chimere::server {

// Thread safe: what it lets in may be replaced while requests come.
class Access {
 public:
  // Without keys everything that comes from this machine is served, and what calls it by one of `hosts`.
  // `pairing`: browsers that have keys of their own beside these; may be null.
  Access(ApiKeys keys, int requests_per_minute, std::vector<std::string> hosts = {}, Cors cors = {},
         std::shared_ptr<Pairing> pairing = {}, std::shared_ptr<KeyUsage> usage = {})
      : rules_(std::make_shared<Rules>(Rules{std::move(keys), std::move(hosts), std::move(cors)})),
        limiter_(requests_per_minute),
        pairing_(std::move(pairing)),
        usage_(usage ? std::move(usage) : std::make_shared<KeyUsage>()) {}

  Cors cors() const { return rules()->cors; }

  // From the next request on; requests under way keep what they were let in with.
  void replace(ApiKeys keys, int requests_per_minute, std::vector<std::string> hosts, Cors cors);

  // Writes the name of its key into `head.client`, or says why it is not let in.
  std::optional<ApiError> refuse_stranger(HttpRequest& head);
  bool can_pair() const { return pairing_ != nullptr; }
  // The key of the browser that sends a code where others send their key. REQUIRES: can_pair().
  std::variant<std::string, ApiError> pair(const HttpRequest& head);
  // Whether the tokens that its key has a day are used up; only what uses tokens is refused.
  std::optional<ApiError> refuse_over_budget(const HttpRequest& head,
                                             KeyUsage::Clock::time_point now = KeyUsage::Clock::now()) const;
  KeyUsage& usage() const { return *usage_; }
  // Whether a client of this name may still come; the empty one may where there are no keys.
  bool has_client(const std::string& name) const;
  // Of that key; 0: it has no limit, or is none of these.
  uint64_t tokens_per_day(const std::string& name) const;
  // Counts the request.
  std::optional<ApiError> refuse_too_many(const HttpRequest& head);

 private:
  struct Rules {
    ApiKeys keys;
    std::vector<std::string> hosts;
    Cors cors;

    bool names_us(std::string_view authority) const;
  };
  std::shared_ptr<const Rules> rules() const;
  std::optional<std::chrono::seconds> take(const std::string& client);
  std::optional<ApiError> check_key(const Rules& rules, HttpRequest& head);
  static std::optional<ApiError> check_browser(const Rules& rules, const HttpRequest& head);

  mutable std::mutex mutex_;
  std::shared_ptr<const Rules> rules_;  // guarded by the mutex, and so is the limiter
  RateLimiter limiter_;
  const std::shared_ptr<Pairing> pairing_;
  const std::shared_ptr<KeyUsage> usage_;  // never null
};

// Names for `Access`; an error says which is none.
Status check_hosts(const std::vector<std::string>& hosts);

}  // namespace chimere::server
