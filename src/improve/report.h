// report.h  What was tried for an owner, what came of it, and what is in use since when.
#pragma once

#include <string>
#include <vector>

#include "improve/manifest.h"
#include "improve/run_record.h"

namespace chimere::improve {

struct Report {
  std::string owner;
  std::vector<SlotVersions> in_use;  // the owner's
  std::vector<Change> history;       // the owner's, oldest first
  std::vector<RunRecord> runs;       // the newest first
};

Report report_of(const Manifest& manifest, std::vector<RunRecord> runs, const std::string& owner);
std::string report_markdown(const Report& report);
// {"object": "improve.report", "in_use", "runs", "history"}
std::string report_json(const Report& report);

// "2026-11-18 04:00", of UTC.
std::string shown_time(int64_t seconds);
// "nats a token": what a kind's gain is counted in.
const char* gain_unit(const std::string& kind);
// "+0.1234 [+0.0567, +0.1901]"
std::string shown_gain(const Gain& gain);

}  // namespace chimere::improve
