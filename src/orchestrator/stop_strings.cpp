// stop_strings.cpp  Searching for stop strings in what is held back.
#include "orchestrator/stop_strings.h"

#include <algorithm>
#include <utility>

namespace chimere::orchestrator {
namespace {

// How many of the last bytes of `text` are the beginning of `stop` without being all of it.
size_t partial_match(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  stops_.erase(std::remove(stops_.begin(), stops_.end(), std::string()), stops_.end());
}

std::string StopStrings::push(std::string_view text) {
  if (hit_) return {};
  held_ += text;
  // The stop that is complete first wins, the longest of those that end together: the same whatever the pieces are.
  size_t begin = 0;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
      begin = at;
      end = at + stop.size();
    }
  }
  if (end != std::string::npos) {
    hit_ = true;
    matched_ = held_.substr(begin, end - begin);
    std::string before = held_.substr(0, begin);
    held_.clear();
    return before;
  }
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, partial_match(held_, stop));
  std::string certain = held_.substr(0, held_.size() - keep);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopStrings::finish() { return hit_ ? std::string() : std::exchange(held_, {}); }

}  // namespace chimere::orchestrator
