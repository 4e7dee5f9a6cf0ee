#include "engine/fair_share.h"

#include <algorithm>
#include <limits>

namespace chimere::engine {

void FairShare::set_active(const std::set<OwnerId>& owners) {
  ++n_steps_;
  for (const OwnerId owner : owners) last_active_[owner] = n_steps_;
  if (last_active_.size() > owners.size()) {
    std::erase_if(last_active_, [&](const auto& entry) { return entry.second + kLatelySteps < n_steps_; });
  }
  if (owners == active_) return;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const OwnerId owner : owners) {
    if (active_.count(owner)) least = std::min(least, times_[owner]);
  }
  if (least != std::numeric_limits<uint64_t>::max()) floor_ = std::max(floor_, least);
  const uint64_t start = floor_ - kHeadStartRows;
  for (const OwnerId owner : owners) {
    if (active_.count(owner)) continue;
    uint64_t& time = times_[owner];
    time = std::max(time, start);
  }
  active_ = owners;
  // With nobody left there is nobody to be ahead of.
  std::erase_if(times_, [&](const auto& entry) {
    return !active_.count(entry.first) && (active_.empty() || entry.second <= start);
  });
}

}  // namespace chimere::engine
