// best_tokens.h  Runs a batch and finds the best token of each of its logit rows.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace chimere::engine {

class BestTokens {
 public:
  explicit BestTokens(models::Model& model) : model_(model) {}

  // `draws`: the device draws them, and 4 bytes a row come back. REQUIRES then: Executable::prepare_draws() was true.
  // `hidden`: null, or where Outputs::hidden goes.
  Status run(const Batch& batch, bool draws, float* hidden = nullptr);
  // Of the last run, [logit_rows].
  const std::vector<int32_t>& best() const { return best_; }

 private:
  Status run_drawn(const Batch& batch, Outputs outputs);

  models::Model& model_;
  std::vector<int32_t> best_;
  std::vector<float> logits_;
};

}  // namespace chimere::engine
