// metrics_text.h  Everything countable, as Prometheus reads it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/stats.h"
#include "odo/odo.h"
#include "retrieval/note_library.h"
#include "server/http/monitor.h"
#include "store/journal.h"

namespace chimere::server {

std::string metrics_text(const Monitor& monitor, const engine::EngineStats& stats, uint64_t resident_bytes,
                         const std::optional<retrieval::NoteUsage>& learned,
                         const std::map<std::string, odo::StageCount>& stages);

// What is kept to learn from.
std::string journal_metrics_text(const store::JournalCounts& counts);
struct ImproveCounts;
std::string improve_metrics_text(const ImproveCounts& counts, bool is_running, bool is_paused);

}  // namespace chimere::server
