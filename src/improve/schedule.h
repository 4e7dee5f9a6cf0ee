// schedule.h  When jobs are due: "03:00" every day, "mon 02:00" once a week, "every 6h", "off"; of local time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere::improve {

struct When {
  bool is_on = true;
  int every_hours = 0;  // above 0: so often, whatever the time of day
  int weekday = -1;     // 0: Sunday; -1: every day
  int minute = 0;       // of the day
};

Result<When> parse_when(std::string_view text);
std::string when_text(const When& when);

// The first time after `last` at which it is due, in seconds since 1970; 0: never. What fell into a time when nobody
// looked is due at once, and once.
int64_t due_after(const When& when, int64_t last);

// By kind.
using Schedule = std::map<std::string, When>;
// scores every 6h, lora 03:00, engram 04:00, prompts mon 02:00
Schedule default_schedule();
// "KIND=WHEN"
Status set_when(Schedule& schedule, const std::string& text);

// {"engram": 1794990376, ...}: when each kind was last due and done.
using LastTimes = std::map<std::string, int64_t>;
LastTimes read_last_times(const std::string& path);
Status write_last_times(const std::string& path, const LastTimes& times);

}  // namespace chimere::improve
