#include "improve/schedule.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/platform/atomic_file.h"
#include "text/json.h"

namespace chimere::improve {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr int64_t kHour = 3600;

bool read_number(std::string_view text, int low, int high, int& out) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && out >= low && out <= high;
}

bool read_minute(std::string_view text, int& minute) {
  int hours = 0, minutes = 0;
  if (text.size() != 5 || text[2] != ':') return false;
  if (!read_number(text.substr(0, 2), 0, 23, hours) || !read_number(text.substr(3), 0, 59, minutes)) return false;
  minute = 60 * hours + minutes;
  return true;
}

}  // namespace

Result<When> parse_when(std::string_view text) {
  When when;
  if (text == "off") {
    when.is_on = false;
    return when;
  }
  if (text.starts_with("every ") && text.ends_with("h") &&
      read_number(text.substr(6, text.size() - 7), 1, 24 * 7, when.every_hours)) {
    return when;
  }
  std::string_view time = text;
  for (size_t day = 0; day < kDays.size(); ++day) {
    if (text.size() == 9 && text.starts_with(kDays[day]) && text[3] == ' ') {
      when.weekday = static_cast<int>(day);
      time = text.substr(4);
    }
  }
  if (read_minute(time, when.minute)) return when;
  return Error{Code::invalid_argument,
               "expected HH:MM, 'mon HH:MM', 'every Nh' or off, found '" + std::string(text.substr(0, 40)) + "'"};
}

std::string when_text(const When& when) {
  if (!when.is_on) return "off";
  if (when.every_hours > 0) return "every " + std::to_string(when.every_hours) + "h";
  char time[8];
  std::snprintf(time, sizeof time, "%02d:%02d", when.minute / 60 % 24, when.minute % 60);
  return (when.weekday < 0 ? "" : std::string(kDays[static_cast<size_t>(when.weekday)]) + " ") + time;
}

int64_t due_after(const When& when, int64_t last) {
  if (!when.is_on) return 0;
  if (when.every_hours > 0) return last + when.every_hours * kHour;
  const auto time = static_cast<std::time_t>(last);
  std::tm parts{};
  localtime_r(&time, &parts);
  // Days ahead until one fits and lies behind `last`; mktime() knows of daylight saving.
  for (int day = 0; day <= 8; ++day) {
    std::tm next = parts;
    next.tm_mday += day;
    next.tm_hour = when.minute / 60;
    next.tm_min = when.minute % 60;
    next.tm_sec = 0;
    next.tm_isdst = -1;
    const std::time_t at = std::mktime(&next);
    if (at > time && (when.weekday < 0 || next.tm_wday == when.weekday)) return static_cast<int64_t>(at);
  }
  return 0;
}

Schedule default_schedule() {
  return {{"scores", {.every_hours = 6}},
          {"closing", {.minute = 2 * 60}},
          {"words", {.minute = 2 * 60}},
          {"examples", {.minute = 2 * 60 + 30}},
          {"lora", {.minute = 3 * 60}},
          {"engram", {.minute = 4 * 60}},
          {"prompts", {.weekday = 1, .minute = 2 * 60}},
          {"thinking", {.weekday = 1, .minute = 3 * 60 + 30}}};
}

Status set_when(Schedule& schedule, const std::string& text) {
  const size_t equals = text.find('=');
  const std::string kind = text.substr(0, equals);
  if (equals == std::string::npos || schedule.count(kind) == 0) {
    std::string kinds;
    for (const auto& [name, when] : schedule) kinds += (kinds.empty() ? "" : ", ") + name;
    return Error{Code::invalid_argument,
                 "expected KIND=WHEN with one of " + kinds + ", found '" + text.substr(0, 60) + "'"};
  }
  TRY_ASSIGN(schedule[kind], parse_when(text.substr(equals + 1)));
  return Ok{};
}

LastTimes read_last_times(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  LastTimes times;
  const auto json = parse_json(text);
  if (!json || !json->is_object()) return times;
  for (const auto& [kind, at] : json->items()) {
    if (at.is_number_integer()) times[kind] = at.get<int64_t>();
  }
  return times;
}

Status write_last_times(const std::string& path, const LastTimes& times) {
  const std::string text = to_text(Json(times)) + "\n";
  TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, Readers::owner));
  TRY(file.write(std::as_bytes(std::span(text.data(), text.size()))));
  return file.commit();
}

}  // namespace chimere::improve
