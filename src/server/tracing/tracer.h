// tracer.h  Sends spans to a collector, from a thread of its own.
//
// Whoever adds spans never waits for the collector: they go into a queue with a limit, and what does not fit is dropped and
// counted. A batch that can not be delivered is tried again, with longer and longer pauses; meanwhile the queue fills up.
// One that the collector refuses is dropped.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/tracing/span.h"

namespace chimere::server {

struct TracerConfig {
  std::string url;                                           // that batches are posted to
  std::vector<std::pair<std::string, std::string>> headers;  // such as a key of the collector
  std::string service = "chimere";
  std::string version;
  bool with_texts = false;  // spans may have words of requests in them
  size_t max_queued = 4096;
  size_t max_batch = 512;
  std::chrono::milliseconds gather{1000};  // how long the first span of a batch waits for others
  std::chrono::milliseconds first_pause{1000}, longest_pause{30'000};
};

// The address of a collector, "http://host:4318" or the whole one of its traces, as the latter. An error says why it is none.
Result<std::string> traces_url(const std::string& endpoint);
// "name=value,name=value", values with %XX, as OpenTelemetry's variables have them.
Result<std::vector<std::pair<std::string, std::string>>> parse_trace_headers(const std::string& text);

class Tracer {
 public:
  explicit Tracer(TracerConfig config);
  // What waits is tried once more, for a second at most.
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Any thread.
  void add(std::vector<Span> spans);
  bool with_texts() const { return config_.with_texts; }

  struct Counts {
    uint64_t sent = 0;
    uint64_t dropped = 0;   // no room, refused by the collector, or left at the end
    uint64_t failures = 0;  // of exchanges with the collector
  };
  Counts counts() const;

 private:
  enum class Outcome { sent, again, refused };

  void work();
  Outcome send(const std::vector<Span>& batch);
  Outcome failed(Outcome outcome, const std::string& why);

  const TracerConfig config_;
  const std::vector<Attribute> resource_;
  bool is_failing_ = false;  // of the thread alone: it is said once
  std::atomic<bool> must_end_{false};

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Span> queue_;
  size_t n_sending_ = 0;
  Counts counts_;
  bool is_stopping_ = false;

  std::thread thread_;  // last: uses all of them
};

}  // namespace chimere::server
