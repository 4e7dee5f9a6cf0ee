#include "progress_bar.h"

#include <unistd.h>

#include <cstdio>

namespace chimere::apps {

ProgressBar::ProgressBar(const char* unit, double scale)
    : unit_(unit), scale_(scale), shown_(::isatty(STDERR_FILENO) != 0) {}

bool ProgressBar::operator()(uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (!begun_) {
    begun_ = true;
    begin_ = now;
    first_ = done;
  }
  if (!shown_ || (now - last_ < std::chrono::milliseconds(100) && done != total)) return true;
  last_ = now;
  constexpr int kWidth = 40;
  const double part = static_cast<double>(done) / static_cast<double>(total);
  const int full = static_cast<int>(part * kWidth);
  const int digits = scale_ == 1 ? 0 : 2;
  std::fprintf(stderr, "\r[%.*s%*s] %5.1f %%  %.*f of %.*f %s", full, "########################################",
               kWidth - full, "", 100 * part, digits, static_cast<double>(done) / scale_, digits,
               static_cast<double>(total) / scale_, unit_);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (done > first_ && seconds > 1) {
    const double left = seconds / static_cast<double>(done - first_) * static_cast<double>(total - done);
    std::fprintf(stderr, "  %d:%02d left ", static_cast<int>(left / 60), static_cast<int>(left) % 60);
  }
  if (done == total) std::fprintf(stderr, "\n");
  return true;
}

}  // namespace chimere::apps
