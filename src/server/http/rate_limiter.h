// rate_limiter.h  So many requests a minute for each client: a bucket that fills at that rate and holds a minute's
// worth.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

namespace chimere::server {

class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: no limit.
  explicit RateLimiter(int requests_per_minute) : per_minute_(requests_per_minute) {}

  // Those who wait, or have asked lately, go on with what they had.
  void set_rate(int requests_per_minute) { per_minute_ = requests_per_minute; }
  bool is_on() const { return per_minute_ > 0; }
  // Counts one request of that client; how long it has to wait when it had too many.
  std::optional<std::chrono::seconds> take(const std::string& client, Clock::time_point now);

 private:
  struct Bucket {
    double tokens = 0;
    Clock::time_point filled;
  };
  void fill(Bucket& bucket, Clock::time_point now) const;
  void forget_full(Clock::time_point now);

  int per_minute_;
  std::unordered_map<std::string, Bucket> buckets_;
};

}  // namespace chimere::server
