// progress_bar.h  A bar on a terminal with the time that is left; nothing elsewhere.
#pragma once

#include <chrono>
#include <cstdint>

namespace chimere::apps {

class ProgressBar {
 public:
  // Shows numbers in units of `scale`, with two digits behind the point where that is not 1.
  explicit ProgressBar(const char* unit = "GB", double scale = 1e9);
  // Redrawn at most ten times a second. Always true: it stops nothing.
  bool operator()(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  const char* unit_;
  double scale_;
  bool shown_;
  Clock::time_point last_{};
  Clock::time_point begin_{};
  uint64_t first_ = 0;  // done when this run began: a run that goes on has not earned it
  bool begun_ = false;
};

}  // namespace chimere::apps
