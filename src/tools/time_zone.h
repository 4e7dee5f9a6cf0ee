// time_zone.h  How far a place's clock is from UTC at a moment: read from the system's own files (RFC 9636).
//
// The C library reads them, too, but for the one zone of the whole process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::tools {

class TimeZone {
 public:
  static TimeZone utc() { return TimeZone(); }
  // By its name in the IANA database, such as Europe/Paris, in a folder of such files.
  static Result<TimeZone> find(const std::string& name, const std::string& folder = "/usr/share/zoneinfo");
  static Result<TimeZone> read(const std::string& path);
  static Result<TimeZone> parse(std::string_view bytes);

  // Seconds to add to UTC at that moment (seconds since 1970).
  int32_t offset_at(int64_t moment) const;

 private:
  // "first Sunday of April at 2:00", in local time.
  struct RuleDay {
    enum class Kind { month_week, day_of_365, day_of_366 } kind = Kind::month_week;
    int month = 0, week = 0, day = 0;
    int32_t seconds = 7200;
  };
  // What holds behind the last change in the file: the format's footer.
  struct Rule {
    int32_t standard = 0;
    bool has_summer = false;
    int32_t summer = 0;
    RuleDay begins, ends;
  };
  struct Change {
    int64_t moment;
    int32_t offset;
  };

  static Result<Rule> parse_rule(std::string_view text);
  static int64_t local_seconds(const RuleDay& day, int year);
  static int32_t offset_by(const Rule& rule, int64_t moment);

  int32_t first_offset_ = 0;  // before all changes
  std::vector<Change> changes_;
  bool has_rule_ = false;
  Rule rule_;
};

}  // namespace chimere::tools
