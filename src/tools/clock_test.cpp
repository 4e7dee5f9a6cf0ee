#include "tools/clock.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tools/time_zone.h"
#include "tools/toolbox.h"

namespace chimere::tools {
namespace {

// A file of the second version without changes, but with a rule.
std::string zone_file(const std::string& rule) {
  const auto header = [](char n_types) {
    std::string bytes = "TZif2" + std::string(39, '\0');
    bytes[20 + 4 * 4 + 3] = n_types;
    bytes[20 + 5 * 4 + 3] = 4;  // letters of the one abbreviation
    return bytes;
  };
  const std::string body = std::string(6, '\0') + std::string("LMT\0", 4);
  return header(1) + body + header(1) + body + "\n" + rule + "\n";
}

int32_t offset_by_rule(const std::string& rule, int64_t moment) {
  const auto zone = TimeZone::parse(zone_file(rule));
  EXPECT_TRUE(zone) << zone.error().message;
  return zone ? zone->offset_at(moment) : -1;
}

TEST(TimeZone, FollowsTheRuleBehindTheLastChange) {
  const std::string paris = "CET-1CEST,M3.5.0,M10.5.0/3";
  EXPECT_EQ(offset_by_rule(paris, 1774745999), 3600);  // 2026-03-29 00:59:59 UTC
  EXPECT_EQ(offset_by_rule(paris, 1774746000), 7200);
  EXPECT_EQ(offset_by_rule(paris, 1792889999), 7200);  // 2026-10-25 00:59:59 UTC
  EXPECT_EQ(offset_by_rule(paris, 1792890000), 3600);
  const std::string sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3";
  EXPECT_EQ(offset_by_rule(sydney, 1767225600), 11 * 3600);  // 2026-01-01
  EXPECT_EQ(offset_by_rule(sydney, 1782864000), 10 * 3600);  // 2026-07-01
  EXPECT_EQ(offset_by_rule("<+0530>-5:30", 0), 19800);
  EXPECT_EQ(offset_by_rule("EST5EDT,J60/0,J300/0", 1782864000), -4 * 3600);
  EXPECT_EQ(offset_by_rule("UTC0", -1), 0);
}

TEST(TimeZone, RefusesDamagedFiles) {
  EXPECT_FALSE(TimeZone::parse(""));
  EXPECT_FALSE(TimeZone::parse("TZif" + std::string(40, '\0')));
  const std::string whole = zone_file("CET-1CEST,M3.5.0,M10.5.0/3");
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(TimeZone::parse(whole.substr(0, n))) << n;
  for (const char* rule : {"C", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1x",
                           "CET-999", "CET-1CEST,M3.5.0,M10.5.0/3x"}) {
    EXPECT_FALSE(TimeZone::parse(zone_file(rule))) << rule;
  }
  std::string many = whole;
  many[20 + 3 * 4] = '\x7F';
  EXPECT_FALSE(TimeZone::parse(many));
}

TEST(TimeZone, NamesStayInTheirFolder) {
  for (const char* name : {"", "/etc/passwd", "../../etc/passwd", "Europe/../../../etc/passwd", "Europe", "No/Where"}) {
    EXPECT_FALSE(TimeZone::find(name)) << name;
  }
  EXPECT_EQ(TimeZone::find("UTC")->offset_at(0), 0);
}

TEST(Clock, TellsTheTimeInAZone) {
  const auto tool = [] {
    ClockOptions options;
    options.now = [] { return std::chrono::system_clock::time_point(std::chrono::seconds(1795051805)); };
    options.local_zone = "/no/such/file";
    return make_clock(options);
  }();
  EXPECT_EQ(tool->run("{}", {}).text, "Thursday 2026-11-19 01:30:05 local time (UTC+00:00)");
  EXPECT_EQ(tool->run(R"({"operation":"add","amount":-2,"unit":"hours","time_zone":"UTC"})", {}).text,
            "Wednesday 2026-11-18 23:30:05 UTC (UTC+00:00)");
  EXPECT_TRUE(tool->run(R"({"time_zone":"Mars/Base"})", {}).is_error);
  if (!std::filesystem::exists("/usr/share/zoneinfo/America/New_York")) GTEST_SKIP() << "no time zones on this machine";
  EXPECT_EQ(tool->run(R"({"time_zone":"America/New_York"})", {}).text,
            "Wednesday 2026-11-18 20:30:05 America/New_York (UTC-05:00)");
  EXPECT_EQ(tool->run(R"({"time_zone":"Asia/Kolkata"})", {}).text,
            "Thursday 2026-11-19 07:00:05 Asia/Kolkata (UTC+05:30)");
}

TEST(Clock, CountsWithDates) {
  Toolbox box;
  ASSERT_TRUE(box.add(make_clock()));
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"operation":"weekday","date":"2000-02-29"})", "Tuesday 2000-02-29"},
      {R"({"operation":"add","date":"2026-01-31","amount":1,"unit":"months"})", "Saturday 2026-02-28"},
      {R"({"operation":"add","date":"2024-02-29","amount":1,"unit":"years"})", "Friday 2025-02-28"},
      {R"({"operation":"add","date":"2026-11-18","amount":100,"unit":"days"})", "Friday 2027-02-26"},
      {R"({"operation":"add","date":"2026-11-18","amount":-2,"unit":"weeks"})", "Wednesday 2026-11-04"},
      {R"({"operation":"add","date":"2026-12-31T23:30","amount":45,"unit":"minutes"})", "Friday 2027-01-01 00:15:00"},
      {R"({"operation":"difference","date":"2026-11-18","to":"2026-12-25"})",
       "Wednesday 2026-11-18 to Friday 2026-12-25: 37 days"},
      {R"({"operation":"difference","date":"2026-01-02 00:00","to":"2026-01-01 12:00:30"})",
       "Friday 2026-01-02 00:00:00 to Thursday 2026-01-01 12:00:30: -1 days by the calendar, -43170 seconds by the "
       "clock"},
  };
  for (const auto& [arguments, expected] : cases)
    EXPECT_EQ(box.run("clock", arguments, {}).text, expected) << arguments;
  for (const char* wrong :
       {R"({"operation":"weekday","date":"2026-02-30"})", R"({"operation":"weekday","date":"tomorrow"})",
        R"({"operation":"weekday","date":"2026-02-03T25:00"})", R"({"operation":"weekday","date":"2026-02-03T10:00Z"})",
        R"({"operation":"add","date":"2026-01-01"})", R"({"operation":"add","date":"2026-01-01","amount":1})",
        R"({"operation":"add","date":"9999-12-31","amount":1,"unit":"days"})",
        R"({"operation":"add","date":"2026-01-01","amount":9000000000,"unit":"years"})",
        R"({"operation":"add","amount":1e300,"unit":"seconds"})", R"({"operation":"sleep"})",
        R"({"operation":"now","date":"2026-01-01"})"}) {
    EXPECT_TRUE(box.run("clock", wrong, {}).is_error) << wrong;
  }
}

}  // namespace
}  // namespace chimere::tools
