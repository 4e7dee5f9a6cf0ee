// housekeeping.cpp  The tasks of a tick.
#include "server/admin/housekeeping.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/platform/memory_reserve.h"
#include "base/platform/process.h"

namespace chimere::server {
namespace {

constexpr int kReleaseTicks = 60;
constexpr int kIdleReleaseTicks = 3;
// How long nothing of a stream may be read before its place goes to another. Before that, the buffers of two systems
// have filled with what was not read.
constexpr std::chrono::seconds kLongestUnread{2};

}  // namespace

void Housekeeping::tick() {
  keep_memory_reserve();
  const auto now = Monitor::Clock::now();
  const engine::EngineStats stats = services_.chat.engine().stats();
  services_.monitor.sample(stats, now);
  services_.kept->drop_old();
  report_stall(stats, now);
  give_up_unread(stats);
  release_memory(stats);
}

void Housekeeping::report_stall(const engine::EngineStats& stats, Monitor::Clock::time_point now) {
  const bool is_new = stall_watch_.is_stalled(stats, now);
  services_.monitor.stands_still = stall_watch_.stands_still();
  if (!is_new) return;
  ++services_.monitor.stalls;
  spdlog::error("{}", describe_stall(stats, services_.chat.engine().list(), dump_on_stall_, now));
}

// Answers that nobody reads end when others wait for their places, those first that stood still longest.
void Housekeeping::give_up_unread(const engine::EngineStats& stats) {
  if (stats.running < stats.max_running || stats.queued == 0) return;
  std::set<engine::RequestId> running;
  for (const engine::RequestInfo& info : services_.chat.engine().list()) {
    if (info.state != engine::RequestState::queued) running.insert(info.id);
  }
  const auto has_place = [&](const orchestrator::AnswerStream* stream) {
    return running.count(stream->engine_id()) > 0;
  };
  std::vector<RequestRecord*> unread;
  for (RequestRecord* record : services_.monitor.records()) {
    const auto& streams = record->streams();
    if (record->unread() < kLongestUnread || record->is_cancelled()) continue;
    if (std::any_of(streams.begin(), streams.end(), has_place)) unread.push_back(record);
  }
  std::sort(unread.begin(), unread.end(), [](const auto* a, const auto* b) { return a->unread() > b->unread(); });
  if (unread.size() > static_cast<size_t>(stats.queued)) unread.resize(static_cast<size_t>(stats.queued));
  for (RequestRecord* record : unread) record->cancel(RequestRecord::CancelledBy::no_reader);
}

// Soon after the last answer ended, and once in a while under load.
void Housekeeping::release_memory(const engine::EngineStats& stats) {
  ++ticks_since_release_;
  if (stats.steps == steps_at_release_) return;
  const bool is_idle = stats.running + stats.queued == 0;
  if (ticks_since_release_ < (is_idle ? kIdleReleaseTicks : kReleaseTicks)) return;
  release_free_memory();
  steps_at_release_ = stats.steps;
  ticks_since_release_ = 0;
}

}  // namespace chimere::server
