// stall_watch.h  Notices an engine that makes no step although work waits, and writes what is known about it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/stats.h"

namespace chimere::server {

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: never.
  explicit StallWatch(std::chrono::seconds patience) : patience_(patience) {}

  // Looked at about once a second. True once for each stall, when the engine's patience has run out.
  bool is_stalled(const engine::EngineStats& stats, Clock::time_point now);

 private:
  const std::chrono::seconds patience_;
  uint64_t steps_ = 0;
  bool told_ = false;
  Clock::time_point moved_{};
};

// The state of engine and requests, as text for the log.
std::string describe_stall(const engine::EngineStats& stats, const std::vector<engine::RequestInfo>& requests,
                           std::chrono::seconds patience, StallWatch::Clock::time_point now);

}  // namespace chimere::server
