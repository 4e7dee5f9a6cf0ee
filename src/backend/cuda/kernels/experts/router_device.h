// router_device.h  From a router's logits to keys that choose experts and scores that weigh them.
//
// Without a selection bias the key is the logit itself: both gatings rise with it, and logits do not underflow.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/router.h"

namespace chimere::cuda {

// kFresh: other blocks of the same kernel wrote it.
template <bool kFresh>
__device__ __forceinline__ float load_logit(const float* logit) {
  return kFresh ? __ldcg(logit) : *logit;
}

struct ExpertScores {
  const RouterStyle& style;
  float most = 0, total = 1, inverse_total = 1;  // of a softmax: its largest logit; over all experts

  __device__ __forceinline__ bool is_by_logit() const { return style.selection_bias == nullptr; }

  // By a whole warp, before key() is called.
  template <bool kFresh>
  __device__ __forceinline__ void look_at_all(const float* logits, int n_experts) {
    if (style.gating != op::Gating::softmax || (style.renormalise && is_by_logit())) return;
    most = load_logit<kFresh>(logits);
    for (int e = simt::lane_id(); e < n_experts; e += 32) most = fmaxf(most, load_logit<kFresh>(logits + e));
    most = simt::warp_max(most);
    total = 0;
    for (int e = simt::lane_id(); e < n_experts; e += 32) total += expf(load_logit<kFresh>(logits + e) - most);
    total = simt::warp_sum(total);
    inverse_total = 1.0f / total;
  }
  // The best logit, when it is chosen: a softmax over the chosen needs no more.
  __device__ __forceinline__ void see_best(float logit) {
    if (style.renormalise && is_by_logit()) most = logit;
  }

  // A softmax's score is without its division, which weight_factor() makes up for.
  __device__ __forceinline__ float score(float logit) const {
    const bool is_softmax = style.gating == op::Gating::softmax;
    const float e = expf(is_softmax ? logit - most : -logit);
    return is_softmax ? e : 1.0f / (1.0f + e);
  }
  __device__ __forceinline__ float key(float logit, float selection_bias) const {
    return is_by_logit() ? logit : score(logit) * inverse_total + selection_bias;
  }
  __device__ __forceinline__ float selection_bias(int expert) const {
    return is_by_logit() ? 0.0f : style.selection_bias[expert];
  }
  // The factor of the scores, given the sum of the chosen ones.
  __device__ __forceinline__ float weight_factor(float sum) const {
    return style.weight_scale / (style.renormalise ? sum : total);
  }
};

}  // namespace chimere::cuda
