// collect.h  Reads texts with a model and sums the squares of what each of its matrices is multiplied with.
#pragma once

#include <functional>
#include <span>

#include "models/model.h"
#include "quantizer/statistics.h"

namespace chimere::quantizer {

// The observer of LoadOptions. Outlives the model it is given to.
class InputCollector {
 public:
  InputObserver observer() {
    return [this](const MatrixInput& input) { add(input); };
  }
  void add(const MatrixInput& input);

  Statistics statistics;

 private:
  InputSums* sums_of(const MatrixInput& input);

  // By MatrixId; null where another matrix of the program has the same rows of the file, which then count once.
  std::vector<InputSums*> known_;
  std::vector<bool> looked_up_;
};

// Tokens read in one go, from an empty context. Runs the draft pass over them, too, where the model has one.
Status read_window(models::Model& model, std::span<const int32_t> tokens);

// Sums as the file holds them, so that a run that goes on from a file ends with the same bits as one that never stopped.
void round_to_file(Statistics& statistics);

}  // namespace chimere::quantizer
