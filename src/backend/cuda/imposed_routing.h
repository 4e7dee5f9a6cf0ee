// imposed_routing.h  Experts that are drawn in place of the router's choice, for benchmarks: random weights choose in
// ways that no trained model does.
#pragma once

#include <memory>
#include <unordered_map>

#include "backend/backend.h"
#include "backend/cuda/kernels/experts/moe.h"
#include "backend/cuda/runtime/buffer.h"
#include "base/result.h"

namespace chimere::cuda {

// Of every layer an order of its experts, shuffled; the one of rank r is drawn with a weight of 1 / r^skew.
class ImposedChoices {
 public:
  static Result<std::unique_ptr<ImposedChoices>> create(const Program& program, float skew, Ledger& ledger,
                                                        const Stream& stream);

  ImposedRouting of(const op::MoeFfn& mixture) const { return layers_.at(mixture.up); }

 private:
  ImposedChoices() = default;

  DeviceBuffer<float> log_weights_;
  DeviceBuffer<uint32_t> n_drawn_;
  std::unordered_map<MatrixId, ImposedRouting> layers_;
};

}  // namespace chimere::cuda
