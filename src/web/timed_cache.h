// timed_cache.h  Answers of others, kept for a while and within a budget of bytes; the longest unused goes first.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace chimere::web {

// Any thread. V is copied out, so a large one is a shared_ptr.
template <class V>
class TimedCache {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  TimedCache(
      size_t budget_bytes, Clock::duration ttl, Now now = [] { return Clock::now(); })
      : budget_bytes_(budget_bytes), ttl_(ttl), now_(std::move(now)) {}

  std::optional<V> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    const auto at = index_.find(key);
    if (at == index_.end()) return std::nullopt;
    if (now_() >= at->second->ends) {
      remove(at->second);
      return std::nullopt;
    }
    entries_.splice(entries_.begin(), entries_, at->second);
    return at->second->value;
  }

  // `bytes`: what the value holds beyond itself. One that is larger than the whole budget is not kept.
  void put(const std::string& key, V value, size_t bytes) {
    bytes += sizeof(Entry) + 2 * key.size();
    std::lock_guard lock(mutex_);
    if (const auto at = index_.find(key); at != index_.end()) remove(at->second);
    if (bytes > budget_bytes_) return;
    while (n_bytes_ + bytes > budget_bytes_) remove(std::prev(entries_.end()));
    entries_.push_front({key, std::move(value), bytes, now_() + ttl_});
    index_[key] = entries_.begin();
    n_bytes_ += bytes;
  }

  size_t n_bytes() const {
    std::lock_guard lock(mutex_);
    return n_bytes_;
  }
  size_t size() const {
    std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::string key;
    V value;
    size_t bytes;
    Clock::time_point ends;
  };
  using Place = typename std::list<Entry>::iterator;

  void remove(Place place) {
    n_bytes_ -= place->bytes;
    index_.erase(place->key);
    entries_.erase(place);
  }

  const size_t budget_bytes_;
  const Clock::duration ttl_;
  const Now now_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<std::string, Place> index_;
  size_t n_bytes_ = 0;
};

}  // namespace chimere::web
