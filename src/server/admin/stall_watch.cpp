// stall_watch.cpp  Steps counted from outside.
#include "server/admin/stall_watch.h"

#include <spdlog/fmt/fmt.h>

#include "server/http/api_error.h"
#include "server/http/json.h"

namespace chimere::server {

bool StallWatch::is_stalled(const engine::EngineStats& stats, Clock::time_point now) {
  // Those who wait for a card that others hold wait for them, not for the engine.
  const bool has_work = stats.running + stats.queued > 0 && stats.asleep_bytes == 0;
  if (!has_work || stats.steps != steps_ || moved_ == Clock::time_point{}) {
    steps_ = stats.steps;
    moved_ = now;
    told_ = false;
    return false;
  }
  if (patience_.count() == 0 || told_ || now - moved_ < patience_) return false;
  told_ = true;
  return true;
}

std::string describe_stall(const engine::EngineStats& stats, const std::vector<engine::RequestInfo>& requests,
                           std::chrono::seconds patience, StallWatch::Clock::time_point now) {
  std::string text = fmt::format(
      "the engine has made no step for {} s: its thread {}; {} steps so far, the last of {} rows; {} requests run, {} "
      "wait",
      patience.count(), stats.place, stats.steps, stats.batch_rows, stats.running, stats.queued);
  for (const engine::RequestInfo& r : requests) {
    const char* state = r.state == engine::RequestState::queued    ? "queued"
                        : r.state == engine::RequestState::prefill ? "prefill"
                                                                   : "decode";
    text += fmt::format("\n  request {}: {}, prompt {} tokens ({} cached), answer {} tokens{}, submitted {:.1f} s ago",
                        r.id, state, r.prompt_tokens, r.cached_tokens, r.completion_tokens,
                        r.is_thinking ? ", thinking" : "", std::chrono::duration<double>(now - r.submitted).count());
  }
  for (const auto& [purpose, bytes] : stats.memory) text += fmt::format("\n  memory {}: {} bytes", purpose, bytes);
  return text;
}

HttpResponse probe_response(std::string_view problem) {
  if (problem.empty()) return json_response(Json{{"status", "ok"}});
  return error_response({503, std::string(problem), "server_error", "", "not_ready"});
}

}  // namespace chimere::server
