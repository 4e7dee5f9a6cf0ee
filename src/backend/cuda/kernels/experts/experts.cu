// experts.cu   Which experts a token uses, which rows an expert multiplies, and the sum over a token's experts
// Shapes    logits [tokens, experts]; ids, weights [tokens, used]; up to 4096 experts; routed [tokens, used, width] f32
// Bytes     plan 12 bytes a pair; combine tokens*width*4*(used + 1 + 2): 2048 tokens of 8 experts, 2048 wide: 185 MB
// Launch    choose: a warp a token; plan: one block of 1024 (32,768 pairs are 32 a thread); combine: grid tokens
// Numerics  scores as in router_device.h; f32 sums in the order of the slots. The order of pairs inside an expert
//           depends on atomics and changes no result:
//           a row's product does not depend on its place in a tile
// Measured  with gemm.cu.   Rejected: atomic adds of the routed rows into the residual (other bits in every run)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/router_device.h"
#include "backend/cuda/kernels/prefill/gemm.h"

namespace chimere::cuda {
namespace {

constexpr int kPlanThreads = 1024;
constexpr int kChooseThreads = 128;
constexpr int kCombineThreads = 256;
constexpr int kMaxExperts = 4096;

// Slot by slot the best key that comes after the last choice in the order (key, lower index): nothing is marked.
__global__ void __launch_bounds__(kChooseThreads)
    choose_kernel(const float* logits, int n_tokens, int n_used, int n_experts, int32_t* ids, float* weights,
                  RouterStyle style) {
  simt::allow_next();
  simt::wait_for_previous();
  const int lane = threadIdx.x % 32;
  const int64_t token = static_cast<int64_t>(blockIdx.x) * (kChooseThreads / 32) + threadIdx.x / 32;
  if (token >= n_tokens) return;
  logits += token * n_experts;
  ids += token * n_used;
  weights += token * n_used;
  ExpertScores scores{style};
  scores.look_at_all<false>(logits, n_experts);
  float last = __int_as_float(0x7f800000), sum = 0;
  int last_id = -1;
  for (int slot = 0; slot < n_used; ++slot) {
    float best = -__int_as_float(0x7f800000);
    int best_id = n_experts;
    for (int e = lane; e < n_experts; e += 32) {
      const float key = scores.key(logits[e], scores.selection_bias(e));
      const bool after = key < last || (key == last && e > last_id);
      if (after && (key > best || (key == best && e < best_id))) {
        best = key;
        best_id = e;
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(simt::kAllLanes, best, step);
      const int other_id = __shfl_xor_sync(simt::kAllLanes, best_id, step);
      if (other > best || (other == best && other_id < best_id)) {
        best = other;
        best_id = other_id;
      }
    }
    // Only where the logits are no numbers is nothing found: any expert will do, if it exists.
    if (best_id == n_experts) best_id = slot;
    last = best;
    last_id = best_id;
    if (slot == 0) scores.see_best(logits[best_id]);
    const float weight = scores.score(logits[best_id]);
    sum += weight;
    if (lane == 0) {
      ids[slot] = best_id;
      weights[slot] = weight;
    }
  }
  __syncwarp();
  const float by = scores.weight_factor(sum);
  for (int slot = lane; slot < n_used; slot += 32) weights[slot] *= by;
}

// Of all threads before this one, tiles and pairs together: both sums stay far below 2^32.
__device__ void scan_both(uint32_t tiles, uint32_t pairs, uint32_t& tiles_before, uint32_t& pairs_before) {
  SIMT_SHARED(uint32_t, tile_sums, kPlanThreads / 32);
  SIMT_SHARED(uint32_t, pair_sums, kPlanThreads / 32);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t t = tiles, p = pairs;
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other_t = __shfl_up_sync(simt::kAllLanes, t, step);
    const uint32_t other_p = __shfl_up_sync(simt::kAllLanes, p, step);
    if (lane >= step) {
      t += other_t;
      p += other_p;
    }
  }
  __syncthreads();
  if (lane == 31) {
    tile_sums[warp] = t;
    pair_sums[warp] = p;
  }
  __syncthreads();
  tiles_before = t - tiles;
  pairs_before = p - pairs;
  for (int w = 0; w < warp; ++w) {
    tiles_before += tile_sums[w];
    pairs_before += pair_sums[w];
  }
}

__global__ void __launch_bounds__(kPlanThreads) plan_kernel(ExpertChoice choice, ExpertPlan plan) {
  simt::allow_next();
  simt::wait_for_previous();
  uint32_t* counts = simt::dynamic_shared<uint32_t>();  // [n_experts], later the next free place of each
  const int n_pairs = choice.n_tokens * choice.n_used;
  const auto tile_rows = static_cast<uint32_t>(plan.tile_rows);
  for (int e = threadIdx.x; e < choice.n_experts; e += kPlanThreads) counts[e] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n_pairs; i += kPlanThreads) atomicAdd(&counts[choice.ids[i]], 1u);
  __syncthreads();
  // Neighbouring experts to one thread, so that tiles come out in the order of experts.
  const int share = simt::div_up(choice.n_experts, kPlanThreads);
  const int first = min(static_cast<int>(threadIdx.x) * share, choice.n_experts);
  const int last = min(first + share, choice.n_experts);
  uint32_t tiles = 0, pairs = 0;
  for (int e = first; e < last; ++e) {
    pairs += counts[e];
    tiles += (counts[e] + tile_rows - 1) / tile_rows;
  }
  uint32_t tile, pair;
  scan_both(tiles, pairs, tile, pair);
  for (int e = first; e < last; ++e) {
    const uint32_t count = counts[e];
    counts[e] = pair;
    for (uint32_t done = 0; done < count; done += tile_rows) {
      plan.tiles[tile++] = {e, static_cast<int32_t>(pair + done), static_cast<int32_t>(min(count - done, tile_rows)),
                            0};
    }
    pair += count;
  }
  if (threadIdx.x == kPlanThreads - 1) *plan.n_tiles = static_cast<int32_t>(tile);
  __syncthreads();
  for (int i = threadIdx.x; i < n_pairs; i += kPlanThreads) plan.pairs[atomicAdd(&counts[choice.ids[i]], 1u)] = i;
}

__device__ __forceinline__ void add_scaled(float& sum, float by, float x) { sum = fmaf(by, x, sum); }
__device__ __forceinline__ void add_scaled(float4& sum, float by, float4 x) {
  add_scaled(sum.x, by, x.x);
  add_scaled(sum.y, by, x.y);
  add_scaled(sum.z, by, x.z);
  add_scaled(sum.w, by, x.w);
}

__global__ void __launch_bounds__(kCombineThreads) combine_kernel(CombineArgs a) {
  simt::allow_next();
  simt::wait_for_previous();
  const int64_t token = blockIdx.x;
  const float* weights = a.choice.weights + token * a.choice.n_used;
  const float gate = a.shared_gate ? a.shared_gate[token] : 1.0f;
  const auto add = [&](auto zero, int64_t n) {
    using T = decltype(zero);
    const T* routed = reinterpret_cast<const T*>(a.routed) + token * a.choice.n_used * n;
    const T* shared = reinterpret_cast<const T*>(a.shared);
    T* residual = reinterpret_cast<T*>(a.residual) + token * n;
    for (int i = threadIdx.x; i < n; i += kCombineThreads) {
      T sum = zero;
#pragma unroll 4
      for (int slot = 0; slot < a.choice.n_used; ++slot) add_scaled(sum, weights[slot], routed[slot * n + i]);
      if (shared) add_scaled(sum, gate, shared[token * n + i]);
      T total = a.add ? residual[i] : zero;
      add_scaled(total, a.scale, sum);
      residual[i] = total;
    }
  };
  if (a.width % 4 == 0) {
    add(make_float4(0, 0, 0, 0), a.width / 4);
  } else {
    add(0.0f, a.width);
  }
}

}  // namespace

int expert_tile_rows(int n_tokens, int n_used, int n_experts, bool exact) {
  return exact || n_tokens * n_used < 40 * n_experts ? 64 : 128;
}

int max_expert_tiles(int n_tokens, int n_used, int n_experts, int tile_rows) {
  const int n_pairs = n_tokens * n_used;
  return n_pairs / tile_rows + (n_pairs < n_experts ? n_pairs : n_experts);
}

Status choose_experts(const Stream& stream, const ChooseArgs& args) {
  if (args.n_used < 1 || args.n_used > args.n_experts) {
    return Error{Code::unsupported, "experts: expected 1 to " + std::to_string(args.n_experts) +
                                        " used for a token, found " + std::to_string(args.n_used)};
  }
  return simt::launch(choose_kernel,
                      {dim3(static_cast<unsigned>(simt::div_up(args.n_tokens, kChooseThreads / 32))),
                       dim3(kChooseThreads), 0, stream, true},
                      args.logits, args.n_tokens, args.n_used, args.n_experts, args.ids, args.weights, args.style);
}

Status plan_experts(const Stream& stream, const ExpertChoice& choice, const ExpertPlan& plan) {
  if (choice.n_experts > kMaxExperts) {
    return Error{Code::unsupported, "experts: expected at most " + std::to_string(kMaxExperts) + ", found " +
                                        std::to_string(choice.n_experts)};
  }
  return simt::launch(
      plan_kernel,
      {dim3(1), dim3(kPlanThreads), static_cast<size_t>(choice.n_experts) * sizeof(uint32_t), stream, true}, choice,
      plan);
}

Status combine_experts(const Stream& stream, const CombineArgs& args) {
  return simt::launch(combine_kernel,
                      {dim3(static_cast<unsigned>(args.choice.n_tokens)), dim3(kCombineThreads), 0, stream, true},
                      args);
}

}  // namespace chimere::cuda
