// rate_limiter.cpp  Buckets, of which there are never many.
#include "server/http/rate_limiter.h"

#include <algorithm>
#include <cmath>

namespace chimere::server {
namespace {

// An attacker with many addresses makes many buckets; beyond this number the full ones, which say nothing, are dropped,
// and when that is not enough, all of them: forgetting is better than growing.
constexpr size_t kMaxBuckets = 20'000;

}  // namespace

void RateLimiter::fill(Bucket& bucket, Clock::time_point now) const {
  const double seconds = std::max(0.0, std::chrono::duration<double>(now - bucket.filled).count());
  bucket.tokens = std::min<double>(per_minute_, bucket.tokens + seconds * per_minute_ / 60.0);
  bucket.filled = now;
}

void RateLimiter::forget_full(Clock::time_point now) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    fill(it->second, now);
    it = it->second.tokens >= per_minute_ ? buckets_.erase(it) : std::next(it);
  }
  if (buckets_.size() >= kMaxBuckets) buckets_.clear();
}

std::optional<std::chrono::seconds> RateLimiter::take(const std::string& client, Clock::time_point now) {
  if (!is_on()) return std::nullopt;
  if (buckets_.size() >= kMaxBuckets && !buckets_.contains(client)) forget_full(now);
  Bucket& bucket = buckets_.try_emplace(client, Bucket{static_cast<double>(per_minute_), now}).first->second;
  fill(bucket, now);
  if (bucket.tokens >= 1) {
    bucket.tokens -= 1;
    return std::nullopt;
  }
  const double wait = (1 - bucket.tokens) * 60.0 / per_minute_;
  return std::chrono::seconds(std::max<int64_t>(1, static_cast<int64_t>(std::ceil(wait))));
}

}  // namespace chimere::server
