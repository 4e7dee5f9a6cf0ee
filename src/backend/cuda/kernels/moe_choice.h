// moe_choice.h  Which experts a row goes through, out of the router's logits: by a warp, or by every block for itself.
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

// The n_used best of up to 32 kKeys logits, by one warp: take(k, id, key) on every lane, the best first, of equals the
// one with the lower id.
template <int kKeys, class Take>
__device__ __forceinline__ void choose_among(const ExpertScores& scores, const float* logits, int n_experts, int n_used,
                                             const Take& take) {
  const int lane = simt::lane_id();
  uint32_t keys[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int e = i * 32 + lane;
    keys[i] = e < n_experts ? order_key(scores.key(e, load_logit<true>(logits + e))) : 0u;
  }
  for (int k = 0; k < n_used; ++k) {
    uint32_t best = 0, where = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      where = keys[i] > best ? static_cast<uint32_t>(i * 32 + lane) : where;
      best = max(best, keys[i]);
    }
    const uint32_t top = __reduce_max_sync(simt::kAllLanes, best);
    const uint32_t id = __reduce_min_sync(simt::kAllLanes, best == top ? where : 0xFFFFFFFFu);
#pragma unroll
    for (int i = 0; i < kKeys; ++i) keys[i] = static_cast<uint32_t>(i * 32 + lane) == id ? 0u : keys[i];
    const uint32_t bits = top & 0x80000000u ? top ^ 0x80000000u : ~top;
    take(k, static_cast<int32_t>(id), __uint_as_float(bits));
  }
}

// The choice of row t: ids and weights where the experts look for them. By one warp.
template <int kKeys>
__device__ __forceinline__ void choose(const MoePlan& p, int t) {
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id();
  const float* logits = p.scratch.logits + static_cast<int64_t>(t) * (n_experts + 1);
  float* weights = p.scratch.weights + t * (n_used + 1);
  ExpertScores scores{p.args.style};
  scores.look_at_all<true>(logits, n_experts);
  float sum = 0;
  choose_among<kKeys>(scores, logits, n_experts, n_used, [&](int k, int32_t id, float key) {
    const float logit = scores.is_by_logit() ? key : load_logit<true>(logits + id);
    if (k == 0) scores.see_best(logit);
    const float weight = scores.score(logit);
    sum += weight;
    if (lane == 0) {
      __stcg(p.scratch.ids + t * n_used + k, id);
      weights[k] = weight;
    }
  });
  __syncwarp();
  const float by = scores.weight_factor(sum) * p.args.scale;
  for (int k = lane; k < n_used; k += 32) weights[k] *= by;
  if (lane == 0) {
    const float shared = p.args.shared_router ? 1.0f / (1.0f + expf(-__ldcg(logits + n_experts))) : 1.0f;
    weights[n_used] = shared * p.args.scale;
  }
}

// The experts of the row, largest logit first.
struct Choice {
  int32_t id[kBlockUsed];
  float weight[kBlockUsed + 1];  // the last one is the shared expert's
};

// The best n of 32 kKeys keys, by one warp: take(k, which) on every lane, the best first, of equals the first. `which`
// counts by lanes: 32 i + lane for keys[i].
template <int kKeys, class Take>
__device__ __forceinline__ void take_best(uint32_t (&keys)[kKeys], int n, const Take& take) {
  const auto lane = static_cast<uint32_t>(simt::lane_id());
  for (int k = 0; k < n; ++k) {
    uint32_t best = keys[0];
#pragma unroll
    for (int i = 1; i < kKeys; ++i) best = max(best, keys[i]);
    best = __reduce_max_sync(simt::kAllLanes, best);
    uint32_t where = 0xFFFFFFFFu;
#pragma unroll
    for (int i = kKeys - 1; i >= 0; --i) where = keys[i] == best ? 32u * i + lane : where;
    const uint32_t which = __reduce_min_sync(simt::kAllLanes, where);
#pragma unroll
    for (int i = 0; i < kKeys; ++i) keys[i] = 32u * i + lane == which ? 0u : keys[i];
    take(k, static_cast<int>(which), best);
  }
}

// By the whole block; ends with a barrier, after which the ids can be read; the weights after one more. Each warp picks
// the best n_used of 32 experts, and the first warp the best of all of these.
__device__ __forceinline__ void choose_by_block(const MoePlan& p, Choice& choice) {
  static_assert(kBlockExperts == kDotThreads);
  constexpr int kCandidates = kDotWarps * kBlockUsed;
  SIMT_SHARED(uint32_t, best, kCandidates);    // keys, the best of each warp first
  SIMT_SHARED(int32_t, best_id, kCandidates);  // in the order of the experts where keys are equal
  SIMT_SHARED(float, chosen, kBlockUsed);      // keys
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id(), e = simt::thread_id();
  // Fresh: not through the first-level cache, where another kernel may still have what was there before.
  const float* logits = p.scratch.logits;
  ExpertScores scores{p.args.style};
  scores.look_at_all<true>(logits, n_experts);
  uint32_t key[1] = {e < n_experts ? order_key(scores.key(e, load_logit<true>(logits + e))) : 0u};
  const int first = simt::warp_id() * 32;
  take_best(key, n_used, [&](int k, int which, uint32_t value) {
    if (lane != k) return;
    best[simt::warp_id() * n_used + k] = value;
    best_id[simt::warp_id() * n_used + k] = first + which;
  });
  __syncthreads();
  if (simt::warp_id() == 0) {
    uint32_t keys[kCandidates / 32];
#pragma unroll
    for (int i = 0; i < kCandidates / 32; ++i) {
      keys[i] = 32 * i + lane < kDotWarps * n_used ? best[32 * i + lane] : 0u;
    }
    take_best(keys, n_used, [&](int k, int which, uint32_t top) {
      if (lane != k) return;
      choice.id[k] = best_id[which];
      chosen[k] = __uint_as_float(top & 0x80000000u ? top ^ 0x80000000u : ~top);
    });
  }
  __syncthreads();
  if (simt::warp_id() == 0) {
    // In the order of choose(), by every lane.
    float sum = 0, mine = 0;
    for (int k = 0; k < n_used; ++k) {
      const float logit = scores.is_by_logit() ? chosen[k] : load_logit<true>(logits + choice.id[k]);
      if (k == 0) scores.see_best(logit);
      const float weight = scores.score(logit);
      if (lane == k) mine = weight;
      sum += weight;
    }
    const float by = scores.weight_factor(sum) * p.args.scale;
    if (lane < n_used) choice.weight[lane] = mine * by;
    if (lane == 0) {
      const float shared = p.args.shared_router ? 1.0f / (1.0f + expf(-load_logit<true>(logits + n_experts))) : 1.0f;
      choice.weight[n_used] = shared * p.args.scale;
    }
  }
}

}  // namespace chimere::cuda
