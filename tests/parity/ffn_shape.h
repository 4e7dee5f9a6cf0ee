// ffn_shape.h  What the rows of dense feed-forwards and of mixtures of experts are made from.
#pragma once

#include "table.h"

namespace chimere::parity {

struct FfnShape {
  DType in_type, down_type;
  int d_model, d_ff;
  int n_experts = 0, n_used = 0;
  int shared_ff = 0;
  bool shared_gated = false;
  bool ties = false;
  DType router = DType::F32;
  op::Activation activation = op::Activation::swiglu;
  float scale = 1;
  op::Gating gating = op::Gating::softmax;
  bool renormalise = true;
  float weight_scale = 1;
  bool selection_bias = false, biases = false;
  int latent = 0;
  int n_least = 0;  // adaptive

  bool gated() const { return activation != op::Activation::relu2; }
};

}  // namespace chimere::parity
