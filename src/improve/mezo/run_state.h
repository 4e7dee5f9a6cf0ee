// run_state.h  What both trainers share of a run: its identity, its clock, its schedule, the order of its examples.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "improve/mezo/trainer.h"

namespace chimere::improve {

// Of everything that the adapter depends on: a checkpoint of another run is refused.
uint64_t run_identity(models::Model& model, std::span<const Example> examples, const TrainOptions& options);

double scheduled(RateSchedule schedule, int step, int steps);  // step from 0; 1 at first

// The item that place `at` of an endless list has, in which every n in a row are a permutation of 0..n-1.
class Shuffle {
 public:
  Shuffle(uint64_t seed, size_t n) : seed_(seed), n_(n) {}
  size_t operator()(uint64_t at);

 private:
  uint64_t seed_;
  size_t n_;
  uint64_t round_ = UINT64_MAX;
  std::vector<uint32_t> order_;
};

class RunClock {
 public:
  explicit RunClock(double before) : before_(before) {}
  double seconds() const {
    return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// The trainers. Options are complete: no field stands for a default.
struct Trained {
  TrainReport report;
  std::shared_ptr<Adapter> adapter;  // with what was learned; null when it is not finished
};
Result<Trained> train_head(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                           uint64_t identity, const TrainProgress& progress);
Result<Trained> train_mezo(models::Model& model, std::span<const Example> examples, const TrainOptions& options,
                           uint64_t identity, const TrainProgress& progress);

}  // namespace chimere::improve
