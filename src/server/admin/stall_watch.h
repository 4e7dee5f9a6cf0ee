// stall_watch.h  Notices an engine that makes no step although work waits, writes what is known about it, and tells those
// who ask whether the server is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/stats.h"
#include "server/http/http.h"

namespace chimere::server {

class StallWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: never.
  explicit StallWatch(std::chrono::seconds patience) : patience_(patience) {}

  // Looked at about once a second. True once for each stall, when the engine's patience has run out.
  bool is_stalled(const engine::EngineStats& stats, Clock::time_point now);
  // Since then no step was made either, as of the last look.
  bool stands_still() const { return told_; }

 private:
  const std::chrono::seconds patience_;
  uint64_t steps_ = 0;
  bool told_ = false;
  Clock::time_point moved_{};
};

// The state of engine and requests, as text for the log.
std::string describe_stall(const engine::EngineStats& stats, const std::vector<engine::RequestInfo>& requests,
                           std::chrono::seconds patience, StallWatch::Clock::time_point now);

// What /livez and /readyz say, which are asked by those who restart servers and by those who spread requests over them:
// 503 with the problem, or 200 where there is none.
HttpResponse probe_response(std::string_view problem);

inline constexpr const char* kStandsStill = "the engine makes no step although requests wait for it";

}  // namespace chimere::server
