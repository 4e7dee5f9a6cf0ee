// router.h  How weights come from a router's logits: op::MoeFfn has the formulas.
#pragma once

#include "backend/ops.h"

namespace chimere::cuda {

struct RouterStyle {
  op::Gating gating = op::Gating::softmax;
  bool renormalise = true;
  float weight_scale = 1;
  const float* selection_bias = nullptr;  // [n_experts] or null
};

}  // namespace chimere::cuda
