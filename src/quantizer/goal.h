// goal.h  What a person asks of a quantised file, and the plan that meets it best.
#pragma once

#include <optional>
#include <string>

#include "backend/state_layout.h"
#include "quantizer/allocate.h"
#include "quantizer/plan.h"
#include "quantizer/statistics.h"
#include "quantizer/write_model.h"

namespace chimere::quantizer {

struct Goal {
  enum class Kind { type, size, bits, fits, fastest };
  Kind kind = Kind::type;
  DType type = DType::Q4_K;
  double amount = 0;           // bytes of size and fits, bits a weight, or the divergence of fastest
  int context = 8192;          // of fits
  uint64_t reserve_bytes = 0;  // of fits: left to the driver and its like
  KvFormat kv = {};            // of fits
  double read_price = 0;       // loss that a gigabyte less, read for each token, is worth
};

// What a sequence of that length takes beside the weights: pages, recurrent state, activations.
struct StateNeed {
  uint64_t kv_bytes = 0, recurrent_bytes = 0, scratch_bytes = 0;
  uint64_t total() const { return kv_bytes + recurrent_bytes + scratch_bytes; }
};
Result<StateNeed> state_need(const gguf::File& file, int context, const KvFormat& kv);

// The most that the planned tensors may take for this goal. REQUIRES: a goal in bytes.
Result<double> tensor_limit(const Goal& goal, const gguf::File& file, const Plan& plan, const Statistics* statistics,
                            const Origin& origin);

// The items of the plan as the knapsack sees them: value the loss (and the price of reading), cost the bytes.
std::vector<std::vector<Option>> by_bytes(const Plan& plan, double read_price);
// Value the bytes read for a token, cost the loss.
std::vector<std::vector<Option>> by_loss(const Plan& plan);

// Sets the choices of the plan. REQUIRES: losses are in, unless the goal is a type.
Result<Allocation> reach(const Goal& goal, const gguf::File& file, const Statistics* statistics, const Origin& origin,
                         Plan& plan);

}  // namespace chimere::quantizer
