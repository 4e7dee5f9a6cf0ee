// monitor.cpp  Rates over a window of samples.
#include "server/http/monitor.h"

namespace chimere::server {
namespace {

constexpr std::chrono::seconds kWindow{5};

}  // namespace

void Monitor::sample(const engine::EngineStats& stats, Clock::time_point now) {
  samples_.push_back({now, stats.prompt_tokens, stats.generated_tokens});
  // The oldest one left is the last that is at least as old as the window.
  while (samples_.size() > 1 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

TokenRates Monitor::rates(const engine::EngineStats& stats, Clock::time_point now) const {
  if (samples_.empty()) return {};
  const Sample& oldest = samples_.front();
  const double seconds = std::chrono::duration<double>(now - oldest.time).count();
  if (seconds <= 0) return {};
  return {static_cast<double>(stats.prompt_tokens - oldest.prompt_tokens) / seconds,
          static_cast<double>(stats.generated_tokens - oldest.generated_tokens) / seconds};
}

}  // namespace chimere::server
