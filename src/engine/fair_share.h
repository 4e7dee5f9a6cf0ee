// fair_share.h  Whose turn it is: what was computed for each owner, and for whom least was.
//
// Fair queueing by virtual time. An owner's time goes on by the rows that are computed for it; of those who want
// something, the one with the least time comes first. Who comes, or comes back, begins a short question before the one
// that is furthest behind: it comes first with all slices of a short prompt, nobody saves up more of a claim by staying
// away, and nobody's lead is forgiven by leaving for a moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace chimere::engine {

using OwnerId = uint64_t;

// Rows of prompts that a step has in all when the turn is somebody's who has so many: others, who want no more than that
// one, may double it, or fill up a step that is short anyway. So nobody's short prompt takes as long as somebody else's
// long one, or as all the short ones of a crowd.
inline int rows_with_others(int rows) {
  constexpr int kShortStep = 64;
  return rows > kShortStep / 2 ? 2 * rows : kShortStep;
}

// Rows of prompts in a step of several slices, while somebody else has been here lately and may come back: who comes in
// the middle of a step waits for the rest of it. With what reading the weights costs, some 16 rows, a step of 96 takes
// about twice as long as that of a question of 32. Where slices are long (cards, many experts) reading the weights costs
// more rows: a quarter of a slice.
inline constexpr int kCrowdedStepRows = 96;
inline int crowded_step_rows(int prefill_tokens) { return std::max(kCrowdedStepRows, prefill_tokens / 4); }
// How long ago "lately" may be, in steps: seconds with a small model, minutes with a large one.
inline constexpr uint64_t kLatelySteps = 1 << 14;

// How far, in rows, who comes is before the one that is furthest behind.
inline constexpr uint64_t kHeadStartRows = 256;

class FairShare {
 public:
  // Who wants something now; before every step.
  void set_active(const std::set<OwnerId>& owners);
  void charge(OwnerId owner, uint64_t rows) { times_[owner] += rows; }
  // REQUIRES: it is among the active ones.
  uint64_t time(OwnerId owner) const { return times_.at(owner); }
  int n_active() const { return static_cast<int>(active_.size()); }
  // Those who are active, and those who were so lately.
  int n_lately() const { return static_cast<int>(last_active_.size()); }

 private:
  std::set<OwnerId> active_;
  std::map<OwnerId, uint64_t> times_;  // of the active ones, and of those who left beyond where they would begin again
  uint64_t floor_ = kHeadStartRows;    // where the one stood who was furthest behind, when somebody last came or left
  uint64_t n_steps_ = 0;
  std::map<OwnerId, uint64_t> last_active_;  // of the last kLatelySteps
};

}  // namespace chimere::engine
