// housekeeping.h  What has to be done about once a second, whether or not a request comes in: figures are sampled, a
// stalled engine is reported, places that nobody reads from go to those who wait, freed memory goes back to the system.
#pragma once

#include <chrono>
#include <cstdint>

#include "server/admin/stall_watch.h"
#include "server/endpoints.h"

namespace chimere::server {

class Housekeeping {
 public:
  // `dump_on_stall`: how long the engine may make no step before its state goes to the log; 0: any time.
  Housekeeping(const Services& services, std::chrono::seconds dump_on_stall)
      : services_(services), dump_on_stall_(dump_on_stall), stall_watch_(dump_on_stall) {}

  // On the I/O thread.
  void tick();

 private:
  void report_stall(const engine::EngineStats& stats, Monitor::Clock::time_point now);
  void give_up_unread(const engine::EngineStats& stats);
  void release_memory(const engine::EngineStats& stats);

  const Services services_;
  const std::chrono::seconds dump_on_stall_;
  StallWatch stall_watch_;
  uint64_t steps_at_release_ = 0;  // the engine's, when freed memory was last given back
  int ticks_since_release_ = 0;
};

}  // namespace chimere::server
