#include "speculative/step_costs.h"

#include <algorithm>

#include "base/check.h"

namespace chimere::speculative {

StepCosts::StepCosts(std::vector<Point> points, double open, double back)
    : points_(std::move(points)), open_(open), back_(back) {
  CHECK(!points_.empty() && points_.front().rows == 1 && points_.front().seconds > 0);
  // More rows never take less: what says so is noise.
  for (size_t i = 1; i < points_.size(); ++i) {
    points_[i].seconds = std::max(points_[i].seconds, points_[i - 1].seconds);
  }
}

double StepCosts::measured(int rows) const {
  if (points_.size() == 1) return points_[0].seconds * rows;
  size_t i = 1;
  while (i + 1 < points_.size() && points_[i].rows < rows) ++i;
  const Point &a = points_[i - 1], &b = points_[i];
  return a.seconds + (b.seconds - a.seconds) * (rows - a.rows) / (b.rows - a.rows);
}

double StepCosts::step(int rows) const { return measured(rows) + more_per_row_ * rows; }

void StepCosts::observe(int rows, double seconds) {
  // A step that was interrupted says nothing: none counts as more than twice what was expected.
  const double most = 2 * step(rows);
  const double more = (std::min(seconds, most) - measured(rows)) / rows;
  more_per_row_ += (more - more_per_row_) / 8;
  more_per_row_ = std::max(more_per_row_, -points_[0].seconds / 2);
}

}  // namespace chimere::speculative
