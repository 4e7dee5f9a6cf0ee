// stand_still.h  A process that another one may ask to stand still (SIGTSTP, until SIGCONT), and that does so only where it
// holds nothing that others wait for.
//
// Stopped by SIGSTOP in the middle of a write it would keep the lock on a database, and everybody else out of it. So what
// takes such a lock holds a StandFast beside it, and the stop waits for its end: milliseconds.
#pragma once

#include <utility>

namespace chimere {

// From here on SIGTSTP stops this process where nobody stands fast. Before other threads are started, once; without it,
// SIGTSTP is what the system makes of it.
void stand_still_when_asked();

// While there is one, this process is not stopped by stand_still_when_asked(). Several may exist at once.
class StandFast {
 public:
  StandFast();
  StandFast(StandFast&& other) noexcept : counts_(std::exchange(other.counts_, false)) {}
  StandFast& operator=(StandFast&&) = delete;
  ~StandFast();

 private:
  bool counts_ = true;  // false once moved from
};

}  // namespace chimere
