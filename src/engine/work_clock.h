// work_clock.h  The clock that steps are timed with.
#pragma once

#include <ctime>

#include "models/model.h"

namespace chimere::engine {

// On a card the time that goes by. On the CPU the time that the thread ran which asks, as it computes a part of every
// step itself: on a machine that others keep busy steps are interrupted, some ten times as long as they take, and what
// counts of them is what rows cost beside each other.
class WorkClock {
 public:
  explicit WorkClock(const models::Model& model)
      : clock_(model.backend() == models::BackendKind::cuda ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID) {}

  double seconds() const {
    timespec now{};
    clock_gettime(clock_, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  double since(double begin) const { return seconds() - begin; }

 private:
  clockid_t clock_;
};

// Adds what passes on the clock in its scope.
class WorkAdded {
 public:
  WorkAdded(const WorkClock& clock, double& to) : clock_(clock), to_(to), begun_(clock.seconds()) {}
  ~WorkAdded() { to_ += clock_.since(begun_); }
  WorkAdded(const WorkAdded&) = delete;
  WorkAdded& operator=(const WorkAdded&) = delete;

 private:
  const WorkClock& clock_;
  double& to_;
  const double begun_;
};

}  // namespace chimere::engine
