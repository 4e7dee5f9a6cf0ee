// monitor.h  What the server knows about its requests: those under way, and counts of those that ended. Used on the I/O
// thread alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/stats.h"
#include "server/http/histogram.h"
#include "server/http/recent_answers.h"

namespace chimere::server {

class KeyUsage;
class RequestRecord;
class Tracer;  // tracing/tracer.h

// Tokens a second, over the last seconds.
struct TokenRates {
  double prompt = 0;
  double generated = 0;
};

class Monitor {
 public:
  using Clock = std::chrono::steady_clock;

  // By the records, when they begin and end.
  void add(RequestRecord* record) { records_.insert(record); }
  void remove(RequestRecord* record) {
    records_.erase(record);
    if (on_end) on_end();
  }
  void count(const std::string& route, int status) { ++ended_[{route, status}]; }

  const std::set<RequestRecord*>& records() const { return records_; }
  const std::map<std::pair<std::string, int>, uint64_t>& ended() const { return ended_; }

  // About once a second: remembers the engine's totals, for the rates.
  void sample(const engine::EngineStats& stats, Clock::time_point now);
  TokenRates rates(const engine::EngineStats& stats, Clock::time_point now) const;

  Histogram first_token_seconds{{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}};
  Histogram queue_seconds{{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120}};
  Histogram request_seconds{{0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}};
  Histogram tokens_per_second{{1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000}};

  KeyUsage* key_usage = nullptr;  // where tokens are counted by key; null: nowhere
  Tracer* tracer = nullptr;       // where spans of requests go; null: nowhere
  uint64_t stalls = 0;            // of the engine
  bool stands_still = false;      // the last of them is not over
  // Of collections, of all keys: what there is, as of the last request for one, and what was added.
  struct Kept {
    uint64_t documents = 0, chunks = 0, bytes = 0;
  };
  std::optional<Kept> collections;
  uint64_t documents_added = 0;
  Histogram search_seconds{{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}};
  uint64_t batch_requests_completed = 0;
  uint64_t batch_requests_failed = 0;
  RecentAnswers answers;
  std::function<void()> on_end;  // called when a request has ended; empty: nobody waits for that
  const Clock::time_point started = Clock::now();

 private:
  struct Sample {
    Clock::time_point time;
    uint64_t prompt_tokens = 0;
    uint64_t generated_tokens = 0;
  };
  std::set<RequestRecord*> records_;
  std::map<std::pair<std::string, int>, uint64_t> ended_;  // by route and status; 0: the client left
  std::deque<Sample> samples_;                             // oldest first
};

}  // namespace chimere::server
