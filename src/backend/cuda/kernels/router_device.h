// router_device.h  From a router's logits to keys that choose experts and scores that weigh them.
//
// Without a selection bias the key is the logit itself: both gatings rise with it, and logits do not underflow.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/gemm.h"

namespace chimere::cuda {

struct ExpertScores {
  const RouterStyle& style;
  float most = 0, total = 1;  // of a softmax over all experts

  // By a whole warp.
  __device__ __forceinline__ ExpertScores(const RouterStyle& style, const float* logits, int n_experts, int lane)
      : style(style) {
    if (style.gating != op::Gating::softmax) return;
    most = logits[0];
    for (int e = lane; e < n_experts; e += 32) most = fmaxf(most, logits[e]);
    most = simt::warp_max(most);
    if (style.renormalise && style.selection_bias == nullptr) return;
    total = 0;
    for (int e = lane; e < n_experts; e += 32) total += expf(logits[e] - most);
    total = simt::warp_sum(total);
  }

  // A softmax's score is without its division, which weight_factor() makes up for.
  __device__ __forceinline__ float score(float logit) const {
    return style.gating == op::Gating::softmax ? expf(logit - most) : 1.0f / (1.0f + expf(-logit));
  }
  __device__ __forceinline__ float key(int expert, float logit) const {
    if (style.selection_bias == nullptr) return logit;
    return score(logit) / total + style.selection_bias[expert];
  }
  // By what scores are multiplied, given the sum of the chosen ones.
  __device__ __forceinline__ float weight_factor(float sum) const {
    return style.weight_scale / (style.renormalise ? sum : total);
  }
};

}  // namespace chimere::cuda
