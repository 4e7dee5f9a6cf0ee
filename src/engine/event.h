// event.h  What comes out of the engine, and the queue it comes through.
//
// Every admitted request ends with exactly one terminal event: finished or failed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cache/cache_miss.h"
#include "sampling/sampler.h"

namespace chimere::engine {

enum class FinishReason { stop, length, cancelled, deadline, loop };  // loop: the answer went round in circles
inline constexpr int kFinishReasons = 5;

struct Usage {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;               // of the prompt, not computed again
  CacheMiss cache_miss = CacheMiss::none;  // why these are not more
  int32_t cache_differs_at = 0;            // the first token of the prompt that no kept text has
  int32_t completion_tokens = 0;
  int32_t reasoning_tokens = 0;  // of these, inside the thought; what ends it is not counted
  double queue_seconds = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;
};

struct Event {
  enum class Kind { token, finished, failed };
  Kind kind = Kind::token;
  Sampled token;                             // kind token
  FinishReason reason = FinishReason::stop;  // kind finished
  Usage usage;                               // finished and failed
  std::optional<Error> error;                // kind failed

  bool is_terminal() const { return kind != Kind::token; }
};

// One request's events. Written by the engine thread, read by one consumer. Unbounded by itself, but bounded by the
// request's max_tokens; a slow reader never stalls the engine.
class EventQueue {
 public:
  // Blocks until there is an event.
  Event pop();
  std::optional<Event> try_pop();
  // Called by the engine thread, without locks held, whenever an event was added. Set before submit().
  void on_ready(std::function<void()> notify) { notify_ = std::move(notify); }

  void push(Event event);

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Event> events_;
  std::function<void()> notify_;
};

}  // namespace chimere::engine
