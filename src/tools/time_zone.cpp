#include "tools/time_zone.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>

namespace chimere::tools {
namespace {

constexpr size_t kMaxZoneBytes = size_t{1} << 20;  // the largest of the database has 4 KB
constexpr int64_t kDaySeconds = 86400;

Error zone_error(const std::string& what) { return Error{Code::corrupt, "time zone file: " + what}; }

int64_t big_endian(std::string_view bytes) {
  uint64_t value = static_cast<uint8_t>(bytes[0]) >= 0x80 ? ~uint64_t{0} : 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return static_cast<int64_t>(value);
}

// Reads a rule such as CET-1CEST,M3.5.0,M10.5.0/3 from its left end.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}
  bool is_at_end() const { return text_.empty(); }
  bool take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_name() {
    size_t n = 0;
    if (take('<')) {
      n = text_.find('>');
      if (n == std::string_view::npos) return false;
      text_.remove_prefix(n + 1);
      return true;
    }
    while (n < text_.size() && std::isalpha(static_cast<unsigned char>(text_[n]))) ++n;
    text_.remove_prefix(n);
    return n >= 3;
  }
  // -1 where there is no number, or one that nobody writes there.
  int number() {
    int value = -1;
    while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9') {
      value = std::max(value, 0) * 10 + (text_[0] - '0');
      if (value > 100'000) return -1;
      text_.remove_prefix(1);
    }
    return value;
  }
  // [+-]hh[:mm[:ss]]
  bool take_time(int32_t& seconds) {
    const bool is_negative = take('-');
    if (!is_negative) take('+');
    const int hours = number();
    if (hours < 0 || hours > 167) return false;
    seconds = hours * 3600;
    for (int32_t unit = 60; unit >= 1 && take(':'); unit /= 60) {
      const int value = number();
      if (value < 0 || value > 59) return false;
      seconds += value * unit;
    }
    if (is_negative) seconds = -seconds;
    return true;
  }

 private:
  std::string_view text_;
};

}  // namespace

Result<TimeZone::Rule> TimeZone::parse_rule(std::string_view text) {
  RuleReader reader(text);
  Rule rule;
  const auto wrong = [&] { return zone_error("expected a rule, found '" + std::string(text.substr(0, 80)) + "'"); };
  if (!reader.take_name() || !reader.take_time(rule.standard)) return wrong();
  rule.standard = -rule.standard;  // POSIX counts westwards
  if (reader.is_at_end()) return rule;
  rule.has_summer = true;
  if (!reader.take_name()) return wrong();
  rule.summer = rule.standard + 3600;
  if (!reader.take(',')) {
    if (!reader.take_time(rule.summer) || !reader.take(',')) return wrong();
    rule.summer = -rule.summer;
  }
  for (RuleDay* day : {&rule.begins, &rule.ends}) {
    if (day == &rule.ends && !reader.take(',')) return wrong();
    if (reader.take('M')) {
      day->month = reader.number();
      const bool has_week = reader.take('.');
      day->week = reader.number();
      const bool has_day = reader.take('.');
      day->day = reader.number();
      if (!has_week || !has_day || day->month < 1 || day->month > 12 || day->week < 1 || day->week > 5 ||
          day->day < 0 || day->day > 6) {
        return wrong();
      }
    } else {
      day->kind = reader.take('J') ? RuleDay::Kind::day_of_365 : RuleDay::Kind::day_of_366;
      day->day = reader.number();
      if (day->day < 0 || day->day > 365) return wrong();
    }
    if (reader.take('/') && !reader.take_time(day->seconds)) return wrong();
  }
  return reader.is_at_end() ? Result<Rule>(rule) : Result<Rule>(wrong());
}

int64_t TimeZone::local_seconds(const RuleDay& day, int year) {
  using namespace std::chrono;
  const sys_days first{std::chrono::year{year} / January / 1};
  sys_days date = first;
  if (day.kind == RuleDay::Kind::month_week) {
    const year_month month = std::chrono::year{year} / static_cast<unsigned>(day.month);
    const weekday wanted{static_cast<unsigned>(day.day)};
    date = day.week == 5 ? sys_days{month / weekday_last{wanted}}
                         : sys_days{month / wanted[static_cast<unsigned>(day.week)]};
  } else if (day.kind == RuleDay::Kind::day_of_366) {
    date = first + days{day.day};
  } else {  // 1 to 365: the 29th of February is never counted
    const bool is_behind = std::chrono::year{year}.is_leap() && day.day >= 60;
    date = first + days{day.day - 1 + (is_behind ? 1 : 0)};
  }
  return date.time_since_epoch().count() * kDaySeconds + day.seconds;
}

int32_t TimeZone::offset_by(const Rule& rule, int64_t moment) {
  if (!rule.has_summer) return rule.standard;
  using namespace std::chrono;
  const int64_t local_days = (moment + rule.standard) / kDaySeconds - ((moment + rule.standard) % kDaySeconds < 0);
  const int year = static_cast<int>(year_month_day{sys_days{days{local_days}}}.year());
  const int64_t begins = local_seconds(rule.begins, year) - rule.standard;
  const int64_t ends = local_seconds(rule.ends, year) - rule.summer;
  const bool is_summer =
      begins < ends ? moment >= begins && moment < ends : moment >= begins || moment < ends;  // south of the equator
  return is_summer ? rule.summer : rule.standard;
}

int32_t TimeZone::offset_at(int64_t moment) const {
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), moment,
                                     [](int64_t m, const Change& change) { return m < change.moment; });
  if (next == changes_.end() && has_rule_) return offset_by(rule_, moment);
  return next == changes_.begin() ? first_offset_ : std::prev(next)->offset;
}

// Twice the same layout: numbers of four bytes for old readers, then of eight, then the rule between two line ends.
Result<TimeZone> TimeZone::parse(std::string_view bytes) {
  constexpr size_t kHeaderBytes = 44;
  TimeZone zone;
  for (const size_t time_bytes : {size_t{4}, size_t{8}}) {
    if (bytes.size() < kHeaderBytes || bytes.substr(0, 4) != "TZif") return zone_error("its header is missing");
    const bool has_second = bytes[4] >= '2';
    if (!has_second) return zone_error("version 1, which ends in 2038, is not read");
    const auto count = [&](size_t i) {
      return static_cast<size_t>(big_endian(bytes.substr(20 + 4 * i, 4)) & 0xFFFFFFFF);
    };
    const size_t n_universal = count(0), n_standard = count(1), n_leaps = count(2), n_changes = count(3),
                 n_types = count(4), n_letters = count(5);
    for (const size_t n : {n_universal, n_standard, n_leaps, n_changes, n_types, n_letters}) {
      if (n > kMaxZoneBytes) return zone_error("a count is too large");
    }
    const size_t body =
        n_changes * (time_bytes + 1) + n_types * 6 + n_letters + n_leaps * (time_bytes + 4) + n_standard + n_universal;
    bytes.remove_prefix(kHeaderBytes);
    if (bytes.size() < body) return zone_error("it is cut short");
    if (time_bytes == 8) {
      if (n_types == 0) return zone_error("it has no offsets");
      const std::string_view kinds = bytes.substr(n_changes * 8, n_changes);
      const auto offset_of = [&](size_t type) {
        return static_cast<int32_t>(big_endian(bytes.substr(n_changes * 9 + type * 6, 4)));
      };
      zone.first_offset_ = offset_of(0);
      for (size_t i = 0; i < n_changes; ++i) {
        const auto type = static_cast<uint8_t>(kinds[i]);
        const int64_t moment = big_endian(bytes.substr(i * 8, 8));
        if (type >= n_types || (i > 0 && moment <= zone.changes_.back().moment))
          return zone_error("its changes are damaged");
        zone.changes_.push_back({moment, offset_of(type)});
      }
    }
    bytes.remove_prefix(body);
  }
  const size_t end = bytes.size() > 1 && bytes[0] == '\n' ? bytes.find('\n', 1) : std::string_view::npos;
  if (end == std::string_view::npos) return zone_error("its rule is missing");
  if (end > 1) {
    TRY_ASSIGN(zone.rule_, parse_rule(bytes.substr(1, end - 1)));
    zone.has_rule_ = true;
  }
  return Result<TimeZone>{std::move(zone)};
}

Result<TimeZone> TimeZone::find(const std::string& name, const std::string& folder) {
  if (name == "UTC" || name == "Etc/UTC" || name == "Z") return utc();
  const auto is_allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '+' || c == '/';
  };
  const std::string what = "time zone '" + name.substr(0, 64) + "'";
  if (name.empty() || name.size() > 64 || name[0] == '/' || !std::all_of(name.begin(), name.end(), is_allowed)) {
    return Error{Code::invalid_argument, what + ": expected a name such as Europe/Paris"};
  }
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return Error{Code::not_found, what + " is unknown here; expected a name such as Europe/Paris or America/New_York"};
  }
  return read(path);
}

Result<TimeZone> TimeZone::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kMaxZoneBytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return parse(bytes);
}

}  // namespace chimere::tools
