// scoreboard.h  How good choices among routes are: figures with their intervals.
#pragma once

#include <cstddef>
#include <vector>

namespace chimere::odo {

struct JudgedChoice {
  size_t expected = 0, chosen = 0;  // routes
  double confidence = 0;
  double ms = 0;
};

struct Figure {
  double value = 0;
  double low = 0,
         high = 0;  // 95 % of the figures of samples that are drawn from the choices, as many, with putting back
};

struct Scoreboard {
  Figure accuracy, macro_f1;
  std::vector<double> f1;                   // of each route
  std::vector<std::vector<int>> confusion;  // [expected][chosen]
  double calibration_error = 0;             // mean distance of confidence and share of right ones, in tenths
  double median_ms = 0, p99_ms = 0;
};

// Routes that neither are expected nor chosen anywhere do not count for macro-F1. REQUIRES: at least one choice.
Scoreboard score_choices(const std::vector<JudgedChoice>& choices, size_t n_routes, int n_samples = 1000);

}  // namespace chimere::odo
