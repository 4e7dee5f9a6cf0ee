// moe_choice.h  Which experts the only row goes through, out of the router's logits: by every block for itself.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dot_device.h"
#include "backend/cuda/kernels/moe_plan.h"
#include "backend/cuda/kernels/router_device.h"

namespace chimere::cuda {

// A float as an unsigned number of the same order; never 0, which marks what was taken.
__device__ __forceinline__ uint32_t order_key(float v) {
  const uint32_t bits = __float_as_uint(v + 0.0f);  // -0 is 0
  return max(bits & 0x80000000u ? ~bits : bits | 0x80000000u, 1u);
}

// The experts of the row, largest logit first.
struct Choice {
  int32_t id[kBlockUsed];
  float weight[kBlockUsed + 1];  // the last one is the shared expert's
};

// A choice as one warp makes it: lane k has what was chosen k-th.
struct LaneChoice {
  int32_t id = 0;
  float key = 0;
};

// The n_used best of up to kBlockExperts logits, by one warp, of equals the one with the lower id. A lane has
// neighbouring experts, so that of lanes with equal keys the first is right.
__device__ __forceinline__ LaneChoice choose_by_warp(const MoePlan& p, const ExpertScores& scores) {
  constexpr int kKeys = kBlockExperts / 32;
  const int n_experts = p.args.router.rows, lane = simt::lane_id(), first = lane * kKeys;
  // Fresh: not through the first-level cache, where another kernel may still have what was there before.
  float logits[kKeys];
  if (first + kKeys <= n_experts) {
#pragma unroll
    for (int i = 0; i < kKeys; i += 4) {
      const float4 four = __ldcg(reinterpret_cast<const float4*>(p.scratch.logits + first + i));
      logits[i] = four.x, logits[i + 1] = four.y, logits[i + 2] = four.z, logits[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      logits[i] = first + i < n_experts ? load_logit<true>(p.scratch.logits + first + i) : 0.0f;
    }
  }
  uint32_t keys[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    keys[i] = first + i < n_experts ? order_key(scores.key(first + i, logits[i])) : 0u;
  }
  LaneChoice mine;
#pragma unroll 1
  for (int k = 0; k < p.args.n_used; ++k) {
    uint32_t best = keys[0];
#pragma unroll
    for (int i = 1; i < kKeys; ++i) best = max(best, keys[i]);
    const uint32_t top = __reduce_max_sync(simt::kAllLanes, best);
    const int winner = __ffs(static_cast<int>(__ballot_sync(simt::kAllLanes, best == top))) - 1;
    int which = 0;
#pragma unroll
    for (int i = kKeys - 1; i >= 0; --i) which = keys[i] == top ? i : which;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) keys[i] = lane == winner && i == which ? 0u : keys[i];
    const int id = __shfl_sync(simt::kAllLanes, first + which, winner);
    if (lane == k) mine = {id, __uint_as_float(top & 0x80000000u ? top ^ 0x80000000u : ~top)};
  }
  return mine;
}

// The weights of a choice, by the same warp, in the order of moe_router.cu's choose().
__device__ __forceinline__ void weigh_by_warp(const MoePlan& p, ExpertScores& scores, const LaneChoice& mine,
                                              Choice& choice) {
  const float* logits = p.scratch.logits;
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id();
  float logit = mine.key;
  if (!scores.is_by_logit() && lane < n_used) logit = load_logit<true>(logits + mine.id);
  scores.see_best(__shfl_sync(simt::kAllLanes, logit, 0));
  const float score = scores.score(logit);
  float sum = 0;
  for (int k = 0; k < n_used; ++k) sum += __shfl_sync(simt::kAllLanes, score, k);
  const float by = scores.weight_factor(sum) * p.args.scale;
  if (lane < n_used) choice.weight[lane] = score * by;
  if (lane == 0) {
    const float shared = p.args.shared_router ? 1.0f / (1.0f + expf(-load_logit<true>(logits + n_experts))) : 1.0f;
    choice.weight[n_used] = shared * p.args.scale;
  }
}

// By one warp, in three steps: the ids, then `send` while nobody waits for the weights, then these.
template <class Send>
__device__ __forceinline__ void choose_and_send(const MoePlan& p, Choice& choice, const Send& send) {
  ExpertScores scores{p.args.style};
  scores.look_at_all<true>(p.scratch.logits, p.args.router.rows);
  const LaneChoice mine = choose_by_warp(p, scores);
  if (simt::lane_id() < p.args.n_used) choice.id[simt::lane_id()] = mine.id;
  __syncwarp();
  send();
  weigh_by_warp(p, scores, mine, choice);
}

// For a whole block; ends with a barrier.
__device__ __forceinline__ void choose_by_block(const MoePlan& p, Choice& choice) {
  if (simt::warp_id() == 0) choose_and_send(p, choice, [] {});
  __syncthreads();
}

}  // namespace chimere::cuda
