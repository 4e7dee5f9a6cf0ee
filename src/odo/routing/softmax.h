// softmax.h  From logits of routes to chances.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace chimere::odo {

// Among those that `takes_part`; the others get 0. REQUIRES: at least one does.
inline std::vector<double> softmax(const std::vector<double>& logits, const std::vector<bool>& takes_part,
                                   double temperature = 1) {
  std::vector<double> chances(logits.size(), 0.0);
  double top = -HUGE_VAL, sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (takes_part[i]) top = std::max(top, logits[i]);
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    if (takes_part[i]) sum += chances[i] = std::exp((logits[i] - top) / temperature);
  }
  for (double& chance : chances) chance /= sum;
  return chances;
}

}  // namespace chimere::odo
