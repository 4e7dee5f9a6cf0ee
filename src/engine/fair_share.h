// fair_share.h  Whose turn it is: what was computed for each owner, and for whom least was.
//
// Fair queueing by virtual time. An owner's time goes on by the rows that are computed for it; of those who want
// something, the one with the least time comes first. Who comes, or comes back, begins where the one stands that is
// furthest behind: nobody saves up a claim by staying away, and nobody's lead is forgiven by leaving for a moment.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace chimere::engine {

using OwnerId = uint64_t;

// Rows of prompts that a step has in all when the turn is somebody's who has so many: others may double it, or fill up
// a step that is short anyway. So nobody's short prompt takes as long as somebody else's long one.
inline int rows_with_others(int rows) {
  constexpr int kShortStep = 64;
  return rows > kShortStep / 2 ? 2 * rows : kShortStep;
}

class FairShare {
 public:
  // Who wants something now.
  void set_active(const std::set<OwnerId>& owners);
  void charge(OwnerId owner, uint64_t rows) { times_[owner] += rows; }
  // REQUIRES: it is among the active ones.
  uint64_t time(OwnerId owner) const { return times_.at(owner); }
  int n_active() const { return static_cast<int>(active_.size()); }

 private:
  std::set<OwnerId> active_;
  std::map<OwnerId, uint64_t> times_;  // of the active ones, and of those who left while they were ahead
  uint64_t floor_ = 0;                 // no active one is behind this
};

}  // namespace chimere::engine
