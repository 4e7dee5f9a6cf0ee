// step_costs.h  What a step costs by the rows of its batch, on this machine with this model.
#pragma once

#include <vector>

namespace chimere::speculative {

class StepCosts {
 public:
  struct Point {
    int rows;
    double seconds;
  };

  // Measured at load, fewest rows first, the first of them 1; between them and beyond they are continued straight.
  // `open`: what it costs to begin a draft so that it can be taken back; `back`: to take its end back.
  // REQUIRES: a point at least, all seconds above 0.
  explicit StepCosts(std::vector<Point> points, double open = 0, double back = 0);

  double step(int rows) const;
  double open() const { return open_; }
  double back() const { return back_; }

  // A step of an answer took so long. What steps take beyond the measured is a cost of each row: a longer context is
  // read once a row, and so it tells what more rows would have taken too.
  void observe(int rows, double seconds);

 private:
  double measured(int rows) const;

  std::vector<Point> points_;
  double open_, back_;
  double more_per_row_ = 0;
};

}  // namespace chimere::speculative
