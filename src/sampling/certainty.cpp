#include "sampling/certainty.h"

#include <algorithm>
#include <cmath>

namespace chimere {
namespace {

constexpr double kShareOfMaxProb = 0.625;

double certainty_of(double max_prob, double entropy, double max_entropy) {
  return kShareOfMaxProb * max_prob + (1 - kShareOfMaxProb) * std::max(0.0, 1 - entropy / max_entropy);
}

}  // namespace

float token_certainty(float max_prob, float entropy, float max_entropy) {
  if (std::isnan(max_prob) || std::isnan(entropy)) return std::nanf("");
  return static_cast<float>(certainty_of(max_prob, entropy, max_entropy));
}

void CertaintyWindow::push(float max_prob, float entropy) {
  if (size_ == 0 || std::isnan(max_prob) || std::isnan(entropy)) return;
  if (last_.size() < size_) {
    last_.push_back({max_prob, entropy});
    return;
  }
  last_[next_] = {max_prob, entropy};
  next_ = (next_ + 1) % size_;
}

float CertaintyWindow::certainty() const {
  double max_prob = 0, entropy = 0;
  for (const Stats& f : last_) max_prob += f.max_prob, entropy += f.entropy;
  const auto n = static_cast<double>(last_.size());
  return static_cast<float>(certainty_of(max_prob / n, entropy / n, max_entropy_));
}

}  // namespace chimere
