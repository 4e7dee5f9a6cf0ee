// metrics_text.h  Everything countable, as Prometheus reads it.
#pragma once

#include <string>

#include "engine/stats.h"
#include "server/monitor.h"

namespace chimere::server {

std::string metrics_text(const Monitor& monitor, const engine::EngineStats& stats, uint64_t resident_bytes);

}  // namespace chimere::server
