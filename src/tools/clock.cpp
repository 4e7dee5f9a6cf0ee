#include "tools/clock.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tools/arguments.h"
#include "tools/time_zone.h"

namespace chimere::tools {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::months;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::weekday;
using std::chrono::year_month;
using std::chrono::year_month_day;

constexpr std::array<const char*, 7> kWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};
constexpr int64_t kMaxAmount = 10'000'000'000;  // seconds; 300 years

// A day, and where it was said the time of that day.
struct Moment {
  sys_days day;
  std::optional<seconds> time;
  std::string zone_note = {};  // " Europe/Paris (UTC+01:00)"
};

bool is_known_year(sys_days day) {
  const int year = static_cast<int>(year_month_day{day}.year());
  return year >= 1 && year <= 9999;
}

std::string show_moment(const Moment& moment) {
  const year_month_day date{moment.day};
  std::array<char, 64> text;
  int n = std::snprintf(text.data(), text.size(), "%s %04d-%02u-%02u", kWeekdays[weekday{moment.day}.c_encoding()],
                        static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                        static_cast<unsigned>(date.day()));
  std::string out(text.data(), static_cast<size_t>(n));
  if (moment.time) {
    const std::chrono::hh_mm_ss clock{*moment.time};
    n = std::snprintf(text.data(), text.size(), " %02d:%02d:%02d", static_cast<int>(clock.hours().count()),
                      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()));
    out.append(text.data(), static_cast<size_t>(n));
  }
  return out + moment.zone_note;
}

std::string show_offset(int32_t offset) {
  const int minutes = std::abs(offset) / 60;
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "UTC%c%02d:%02d", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return text.data();
}

// `n` digits and nothing else; -1 where they are not there.
int digits_at(const std::string& text, size_t pos, size_t n) {
  if (text.size() < pos + n) return -1;
  int value = 0;
  for (size_t i = pos; i < pos + n; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// 2026-11-18, 2026-11-18 09:30 or 2026-11-18T09:30:05.
Result<Moment> parse_moment(const std::string& text) {
  const auto wrong = [&](const char* why) {
    return Error{Code::invalid_argument,
                 "expected a date such as 2026-11-18 or 2026-11-18T09:30, found '" + text.substr(0, 64) + "'" + why};
  };
  const int year = digits_at(text, 0, 4), month = digits_at(text, 5, 2), day = digits_at(text, 8, 2);
  if (year < 1 || month < 0 || day < 0 || text[4] != '-' || text[7] != '-') return wrong("");
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return wrong(", which no calendar has");
  Moment moment{sys_days{date}, std::nullopt};
  if (text.size() == 10) return moment;
  const int hour = digits_at(text, 11, 2), minute = digits_at(text, 14, 2);
  const int second = text.size() == 19 && text[16] == ':' ? digits_at(text, 17, 2) : text.size() == 16 ? 0 : -1;
  if ((text[10] != 'T' && text[10] != ' ') || hour < 0 || hour > 23 || minute < 0 || minute > 59 || text[13] != ':' ||
      second < 0 || second > 59) {
    return wrong("; without a zone, which is its own argument");
  }
  moment.time = hours{hour} + minutes{minute} + seconds{second};
  return moment;
}

// Months and years keep the day of the month where the new one has it, else take its last.
sys_days add_months(sys_days from, int64_t n) {
  const year_month_day date{from};
  const year_month target = date.year() / date.month() + months{n};
  const year_month_day moved = target / date.day();
  return moved.ok() ? sys_days{moved} : sys_days{target / std::chrono::last};
}

class Clock : public Tool {
 public:
  explicit Clock(ClockOptions options) : options_(std::move(options)) {}

  const ToolSpec& spec() const override {
    static const ToolSpec kSpec = {
        "clock",
        "Tells the time and counts with dates. operation: now (the current date and time), weekday (of date), add "
        "(amount "
        "of unit to date; negative to go back), difference (from date to to). Where date is not given, it is now.",
        R"json({"type":"object","properties":{)json"
        R"json("operation":{"type":"string","enum":["now","weekday","add","difference"]},)json"
        R"json("date":{"type":"string","description":"2026-11-18 or 2026-11-18T09:30"},)json"
        R"json("to":{"type":"string","description":"the later date of a difference"},)json"
        R"json("amount":{"type":"integer"},)json"
        R"json("unit":{"type":"string","enum":["seconds","minutes","hours","days","weeks","months","years"]},)json"
        R"json("time_zone":{"type":"string","description":"IANA name, for example Europe/Paris"}},)json"
        R"json("additionalProperties":false})json"};
    return kSpec;
  }

  ToolResult run(const std::string& arguments, const ToolContext&) override {
    const auto answer = answer_to(arguments);
    return answer ? ToolResult{*answer} : ToolResult{answer.error().message, true};
  }

 private:
  Result<std::string> answer_to(const std::string& arguments) const {
    TRY_ASSIGN(const Json given, read_arguments(arguments));
    const std::string operation = given.contains("operation") ? text_argument(given, "operation") : "now";
    const std::string date = text_argument(given, "date");
    const std::string zone = text_argument(given, "time_zone");
    if (operation == "now") {
      if (!date.empty()) return Error{Code::invalid_argument, "now takes no date; weekday, add and difference do"};
      TRY_ASSIGN(const Moment moment, now_in(zone, 0));
      return show_moment(moment);
    }
    if (operation == "add") return add(given, date, zone);
    TRY_ASSIGN(const Moment from, date.empty() ? now_in(zone, 0) : parse_moment(date));
    if (operation == "weekday") return show_moment(from);
    if (operation != "difference")
      return Error{Code::invalid_argument, "expected operation to be now, weekday, add or difference"};
    TRY_ASSIGN(const Moment to, given.contains("to") ? parse_moment(text_argument(given, "to")) : now_in(zone, 0));
    return difference(from, to);
  }

  // The present moment, moved by so many seconds, as clocks in that zone show it.
  Result<Moment> now_in(const std::string& zone, int64_t moved) const {
    int64_t moment = floor<seconds>(options_.now()).time_since_epoch().count() + moved;
    TRY_ASSIGN(const TimeZone place, find_zone(zone));
    const int32_t offset = place.offset_at(moment);
    moment += offset;
    const sys_days day = floor<days>(sys_seconds{seconds{moment}});
    const std::string name = zone.empty() ? "local time" : zone;
    return Moment{day, sys_seconds{seconds{moment}} - day, " " + name + " (" + show_offset(offset) + ")"};
  }

  Result<TimeZone> find_zone(const std::string& zone) const {
    if (!zone.empty()) return TimeZone::find(zone, options_.zone_folder);
    const std::filesystem::path local(options_.local_zone);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(local, ignored)) return TimeZone::utc();
    return TimeZone::read(local);
  }

  Result<std::string> add(const Json& given, const std::string& date, const std::string& zone) const {
    const auto amount = given.find("amount");
    const std::string unit = text_argument(given, "unit");
    if (amount == given.end() || !amount->is_number() || unit.empty()) {
      return Error{Code::invalid_argument, "add takes an amount, which is an integer, and a unit"};
    }
    const double size = amount->get<double>();
    if (!(size >= -kMaxAmount && size <= kMaxAmount)) return too_far();
    const auto n = static_cast<int64_t>(size);
    const int64_t unit_seconds = unit == "seconds" ? 1 : unit == "minutes" ? 60 : unit == "hours" ? 3600 : 0;
    if (unit_seconds != 0) {
      if (std::abs(n) > kMaxAmount / unit_seconds) return too_far();
      if (date.empty()) {
        TRY_ASSIGN(const Moment moment, now_in(zone, n * unit_seconds));
        return show_moment(moment);
      }
      TRY_ASSIGN(Moment moment, parse_moment(date));
      const sys_seconds moved = moment.day + moment.time.value_or(seconds{0}) + seconds{n * unit_seconds};
      moment.day = floor<days>(moved);
      moment.time = moved - moment.day;
      return checked_text(moment);
    }
    TRY_ASSIGN(Moment moment, date.empty() ? now_in(zone, 0) : parse_moment(date));
    if (date.empty()) moment.zone_note.clear();  // its offset may be another on that day
    const int64_t unit_days = unit == "days" ? 1 : unit == "weeks" ? 7 : 0;
    const int64_t unit_months = unit == "months" ? 1 : unit == "years" ? 12 : 0;
    if (unit_days == 0 && unit_months == 0)
      return Error{Code::invalid_argument, "unknown unit '" + unit.substr(0, 64) + "'"};
    if (std::abs(n) > 10'000 * 366) return too_far();
    if (unit_months != 0 && std::abs(n) > 10'000 * 12 / unit_months) return too_far();
    moment.day = unit_days != 0 ? moment.day + days{n * unit_days} : add_months(moment.day, n * unit_months);
    return checked_text(moment);
  }

  static Error too_far() { return Error{Code::invalid_argument, "the amount leads out of the years 1 to 9999"}; }
  static Result<std::string> checked_text(const Moment& moment) {
    if (!is_known_year(moment.day)) return too_far();
    return show_moment(moment);
  }

  static Result<std::string> difference(const Moment& from, const Moment& to) {
    std::string text = show_moment(from) + " to " + show_moment(to) + ": ";
    const int64_t n_days = (to.day - from.day).count();
    text += std::to_string(n_days) + (n_days == 1 ? " day" : " days");
    if (from.time && to.time) {
      const int64_t n_seconds = (to.day + *to.time - (from.day + *from.time)).count();
      text += " by the calendar, " + std::to_string(n_seconds) + " seconds by the clock";
    }
    return text;
  }

  ClockOptions options_;
};

}  // namespace

std::shared_ptr<Tool> make_clock(ClockOptions options) { return std::make_shared<Clock>(std::move(options)); }

}  // namespace chimere::tools
