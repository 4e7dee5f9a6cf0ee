// key_usage.cpp  Counts by name, and their file.
#include "server/http/key_usage.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <span>
#include <utility>

#include "base/platform/atomic_file.h"
#include "text/json.h"

namespace chimere::server {
namespace {

constexpr std::chrono::seconds kSaveEvery{5};
constexpr size_t kMaxUsageBytes = size_t{8} << 20;

int64_t day_of(KeyUsage::Clock::time_point now) {
  return std::chrono::floor<std::chrono::days>(now).time_since_epoch().count();
}

Json written(const TokenCounts& counts) { return Json{counts.prompt, counts.cached, counts.generated}; }

TokenCounts read_counts(const Json& json, const char* name) {
  std::array<uint64_t, 3> values{};
  const auto list = json.is_object() ? json.find(name) : json.end();
  if (list == json.end() || !list->is_array() || list->size() != values.size()) return {};
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(*list)[i].is_number_unsigned()) return {};
    values[i] = (*list)[i].get<uint64_t>();
  }
  return {values[0], std::min(values[1], values[0]), values[2]};
}

}  // namespace

KeyUsage::KeyUsage(std::string file) : file_(std::move(file)) {
  if (file_.empty()) return;
  std::ifstream in(file_, std::ios::binary);
  std::string text(kMaxUsageBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object()) return;
  const auto day = parsed->find("day");
  const auto keys = parsed->find("keys");
  if (day == parsed->end() || !day->is_number_integer() || keys == parsed->end() || !keys->is_object()) return;
  day_ = day->get<int64_t>();
  for (const auto& [name, counts] : keys->items()) {
    counts_[name] = {read_counts(counts, "today"), read_counts(counts, "all")};
  }
}

KeyUsage::~KeyUsage() {
  // A full disk at the end costs the counts of the last seconds.
  if (is_changed_ && !file_.empty()) (void)save(file_, text());
}

void KeyUsage::add(const std::string& key, const TokenCounts& tokens, Clock::time_point now) {
  if (const int64_t day = day_of(now); day != day_) {
    for (auto& [name, counts] : counts_) counts.today = {};
    day_ = day;
  }
  Counts& counts = counts_[key];
  counts.today += tokens;
  counts.all += tokens;
  is_changed_ = true;
}

KeyUsage::Counts KeyUsage::of(const std::string& key, Clock::time_point now) const {
  const auto found = counts_.find(key);
  if (found == counts_.end()) return {};
  return {day_of(now) == day_ ? found->second.today : TokenCounts(), found->second.all};
}

std::map<std::string, KeyUsage::Counts> KeyUsage::all(Clock::time_point now) const {
  std::map<std::string, Counts> counts;
  for (const auto& [name, ignored] : counts_) counts[name] = of(name, now);
  return counts;
}

KeyUsage::Clock::time_point KeyUsage::next_day(Clock::time_point now) {
  return std::chrono::floor<std::chrono::days>(now) + std::chrono::days(1);
}

std::string KeyUsage::text() const {
  Json keys = Json::object();
  for (const auto& [name, counts] : counts_) {
    keys[name] = Json{{"today", written(counts.today)}, {"all", written(counts.all)}};
  }
  return Json{{"day", day_}, {"keys", keys}}.dump() + "\n";
}

std::optional<std::string> KeyUsage::text_to_save(Clock::time_point now) {
  if (!is_changed_ || file_.empty() || now - saved_ < kSaveEvery) return std::nullopt;
  is_changed_ = false;
  saved_ = now;
  return text();
}

Status KeyUsage::save(const std::string& file, const std::string& text) {
  TRY_ASSIGN(AtomicFile out, AtomicFile::create(file, Readers::owner));
  TRY(out.write(std::as_bytes(std::span(text))));
  return out.commit();
}

}  // namespace chimere::server
