// step_costs.h  What a step costs by the rows of its batch, on this machine with this model.
#pragma once

#include <cstddef>
#include <cstdint>
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
  // What is expected now: between and beyond these it goes straight.
  const std::vector<Point>& points() const { return points_; }
  double open() const { return open_; }
  double back() const { return back_; }

  // A step without a prompt took so long. Contexts grow, and others come and go on the machine: what is expected
  // follows, downwards faster than upwards, as a step may be interrupted and never is shorter than it should be. Numbers
  // of rows that did not occur for a while come back to what was timed, in proportion to those that do: what was seen of
  // them is of another time, and what is thought too dear would never be tried again. From then on they keep to it.
  void observe(int rows, double seconds);

 private:
  // A number of rows stands between point[at] and point[at + 1], this far from the first.
  struct Place {
    size_t at;
    double share;
  };
  Place place_of(int rows) const;
  double between(const std::vector<Point>& points, int rows) const;

  std::vector<Point> timed_;    // at load
  std::vector<Point> points_;   // expected now
  std::vector<uint64_t> seen_;  // [point]: the observation in which it last had a part
  uint64_t n_observed_ = 4096;  // what was timed at load moves along from the start
  double open_, back_;
};

}  // namespace chimere::speculative
