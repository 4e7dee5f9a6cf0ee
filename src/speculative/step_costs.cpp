#include "speculative/step_costs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace chimere::speculative {

namespace {

constexpr double kDownwards = 1.0 / 8, kUpwards = 1.0 / 24;
constexpr double kReturns = 1.0 / 64;
constexpr double kForgotten = 2048;  // observations, after which what was seen of a point counts for nothing

}  // namespace

StepCosts::StepCosts(std::vector<Point> points, double open, double back)
    : points_(std::move(points)), seen_(points_.size(), 0), open_(open), back_(back) {
  CHECK(!points_.empty() && points_.front().rows == 1 && points_.front().seconds > 0);
  // Rows that nobody timed are as dear as the first.
  if (points_.size() == 1) {
    points_.push_back({2, 2 * points_[0].seconds});
    seen_.push_back(0);
  }
  // More rows never take less: what says so is noise.
  for (size_t i = 1; i < points_.size(); ++i) {
    points_[i].seconds = std::max(points_[i].seconds, points_[i - 1].seconds);
  }
  timed_ = points_;
}

StepCosts::Place StepCosts::place_of(int rows) const {
  size_t i = 0;
  while (i + 2 < points_.size() && points_[i + 1].rows <= rows) ++i;
  return {i, static_cast<double>(rows - points_[i].rows) / (points_[i + 1].rows - points_[i].rows)};
}

double StepCosts::between(const std::vector<Point>& points, int rows) const {
  const auto [i, share] = place_of(rows);
  return points[i].seconds + std::max(points[i + 1].seconds - points[i].seconds, 0.0) * share;
}

double StepCosts::step(int rows) const { return between(points_, rows); }

void StepCosts::observe(int rows, double seconds) {
  const auto [at, share] = place_of(rows);
  // However long a step was interrupted, it counts as twice what was expected.
  const double surprise = std::clamp(seconds / step(rows) - 1, -0.5, 1.0);
  const double change = surprise * (surprise < 0 ? kDownwards : kUpwards);
  const double scale = (1 + change) * step(rows) / between(timed_, rows);
  ++n_observed_;
  for (size_t i = 0; i < points_.size(); ++i) {
    const double own = std::clamp(i == at ? 1 - share : i == at + 1 ? share : 0.0, 0.0, 1.0);
    if (own > 0) seen_[i] = n_observed_;
    points_[i].seconds *= 1 + change * own;
    const double age = std::min(1.0, static_cast<double>(n_observed_ - seen_[i]) / kForgotten);
    points_[i].seconds += (timed_[i].seconds * scale - points_[i].seconds) * (age < 1 ? age * kReturns : 1);
  }
}

}  // namespace chimere::speculative
