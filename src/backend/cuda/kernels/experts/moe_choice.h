// moe_choice.h  Which experts a row uses: for one row and for a few every block decides by itself, else the router does.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/dot_device.h"
#include "backend/cuda/kernels/experts/moe_plan.h"
#include "backend/cuda/kernels/experts/router_device.h"

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

// The inverse of order_key().
__device__ __forceinline__ float of_key(uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

__device__ __forceinline__ void count_use(const MoeArgs& args, int expert) {
  if (args.uses) atomicAdd(args.uses + expert, 1u);
}

struct Candidate {
  uint32_t key;
  int32_t id;
};
// Entries that the choosing warp needs: candidates, then the chosen.
CHIMERE_BOTH constexpr int choice_room(int n_experts, int n_used) { return n_experts + n_used; }

// The n_used best experts by a row's logits, best first, ties to the lower id. Called by one warp. At least n_used keys
// are as large as the n_used-th largest of the lanes' maxima: only those few are ranked against one another.
__device__ __forceinline__ Candidate* rank_experts(const MoePlan& p, const float* logits, ExpertScores& scores,
                                                   Candidate* candidates) {
  constexpr int kAtOnce = 8;
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id();
  scores.look_at_all<true>(logits, n_experts);
  for (int first = lane; first < n_experts; first += 32 * kAtOnce) {
    float logit[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) logit[i] = load_logit<true>(logits + min(first + i * 32, n_experts - 1));
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * 32 < n_experts) candidates[first + i * 32].key = order_key(logit[i]);
    }
  }
  if (!scores.is_by_logit()) {
#pragma unroll 1
    for (int e = lane; e < n_experts; e += 32) {
      candidates[e].key = order_key(scores.key(of_key(candidates[e].key), scores.selection_bias(e)));
    }
  }
  uint32_t largest = 0, least = 0;
#pragma unroll 4
  for (int e = lane; e < n_experts; e += 32) largest = max(largest, candidates[e].key);
#pragma unroll 1
  for (int k = 0; k < n_used; ++k) {
    least = __reduce_max_sync(simt::kAllLanes, largest);
    if (largest == least) largest = 0;
  }
  // In the order of their ids. A lane reads its own keys, and writes go to places that were read before.
  int n = 0;
  for (int first = lane; first - lane < n_experts; first += 32 * kAtOnce) {
    uint32_t keys[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) keys[i] = first + i * 32 < n_experts ? candidates[first + i * 32].key : 0u;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool is_among = keys[i] >= max(least, 1u);
      const uint32_t those = __ballot_sync(simt::kAllLanes, is_among);
      if (is_among) candidates[n + __popc(those & ((1u << lane) - 1u))] = {keys[i], first + i * 32};
      n += __popc(those);
    }
  }
  __syncwarp();
  Candidate* chosen = candidates + n_experts;
#pragma unroll 1
  for (int c = lane; c < n; c += 32) {
    const Candidate mine = candidates[c];
    int place = 0;
#pragma unroll 4
    for (int other = 0; other < n; ++other) {
      const uint32_t key = candidates[other].key;
      place += key > mine.key || (key == mine.key && other < c) ? 1 : 0;
    }
    if (place < n_used) chosen[place] = mine;
  }
  __syncwarp();
  return chosen;
}

// The experts of a row from the router's keys, best first, ties to the lower id: one at a time, so that the
// copies for each can start before the next is known. Called by one warp; a lane has the keys of every 32nd expert.
struct ExpertTurns {
  static constexpr int kHeld = kBlockExperts / 32;

  uint32_t keys[kHeld];  // 0 when taken
  uint32_t best;         // of the lane's keys
  int at;                // where it is

  __device__ __forceinline__ ExpertTurns(const MoePlan& p, int row) {
    const int n_experts = p.args.router.rows;
    const uint32_t* of_row = p.scratch.keys + row * n_experts;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) keys[i] = expert(i) < n_experts ? __ldcg(of_row + expert(i)) : 0u;
    find_best();
  }

  __device__ __forceinline__ Candidate next() {
    const uint32_t key = __reduce_max_sync(simt::kAllLanes, best);
    const int id = __reduce_min_sync(simt::kAllLanes, best == key ? expert(at) : kBlockExperts);
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (expert(i) == id) keys[i] = 0;
    }
    find_best();
    return {key, id};
  }

 private:
  __device__ __forceinline__ static int expert(int i) { return 32 * i + simt::lane_id(); }
  __device__ __forceinline__ void find_best() {
    uint32_t key[kHeld];
    int place[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) key[i] = keys[i], place[i] = i;
#pragma unroll
    for (int step = 1; step < kHeld; step *= 2) {
#pragma unroll
      for (int i = 0; i < kHeld; i += 2 * step) {
        if (key[i + step] > key[i]) key[i] = key[i + step], place[i] = place[i + step];
      }
    }
    best = key[0], at = place[0];
  }
};

// The ids of a row's choices, by one warp: calls taken(k, id) for each as soon as it is known. Lane k gets the k-th.
template <class Taken>
__device__ __forceinline__ Candidate choose_ids(const MoePlan& p, Choice& choice, const Taken& taken, int row = 0) {
  ExpertTurns turns(p, row);
  Candidate mine{};
#pragma unroll 1
  for (int k = 0; k < p.args.n_used; ++k) {
    const Candidate next = turns.next();
    if (simt::lane_id() == k) mine = next;
    if (simt::lane_id() == 0) choice.id[k] = next.id;
    taken(k, next.id);
  }
  __syncwarp();  // all lanes may read the ids
  return mine;
}

// Their weights, computed in the order of the router's own choose(). Called by the same warp.
__device__ __forceinline__ void weigh_choice(const MoePlan& p, const Candidate& mine, Choice& choice, int row = 0) {
  ExpertScores scores{p.args.style};
  const float* logits = p.scratch.logits + row * (p.args.router.rows + 1);
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id();
  scores.look_at_all<true>(logits, n_experts);
  float logit = 0;
  if (lane < n_used) logit = scores.is_by_logit() ? of_key(mine.key) : load_logit<true>(logits + mine.id);
  scores.see_best(__shfl_sync(simt::kAllLanes, logit, 0));
  const float score = scores.score(logit);
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < n_used; ++k) sum += __shfl_sync(simt::kAllLanes, score, k);
  const float by = scores.weight_factor(sum) * p.args.scale;
  if (lane < n_used) choice.weight[lane] = score * by;
  if (lane == 0) {
    const float shared = p.args.shared_router ? 1.0f / (1.0f + expf(-load_logit<true>(logits + n_experts))) : 1.0f;
    choice.weight[n_used] = shared * p.args.scale;
  }
}

// For a whole block; ends with a barrier.
__device__ __forceinline__ void choose_by_block(const MoePlan& p, Choice& choice) {
  if (simt::warp_id() == 0) weigh_choice(p, choose_ids(p, choice, [](int, int) {}), choice);
  __syncthreads();
}

// The choices of a few rows, for a whole block, from the router's keys with a warp a row, or what the router chose. A
// barrier has to follow.
template <bool kWeigh>
__device__ __forceinline__ void choose_for_rows(const MoePlan& p, Choice* choices) {
  const int n_rows = p.args.n_rows, n_used = p.args.n_used;
  if (p.choice_by_block) {
    const int t = simt::n_warps() - 1 - simt::warp_id();
    if (t >= n_rows) return;
    const Candidate mine = choose_ids(
        p, choices[t], [](int, int) {}, t);
    if (kWeigh) weigh_choice(p, mine, choices[t], t);
    return;
  }
  for (int i = simt::thread_id(); i < n_rows * n_used; i += 32 * simt::n_warps()) {
    const int t = i / n_used;
    choices[t].id[i - t * n_used] = __ldcg(p.scratch.ids + i);
  }
  for (int i = simt::thread_id(); kWeigh && i < n_rows * (n_used + 1); i += 32 * simt::n_warps()) {
    const int t = i / (n_used + 1);
    choices[t].weight[i - t * (n_used + 1)] = __ldcg(p.scratch.weights + i);
  }
}

}  // namespace chimere::cuda
