// moe_router.cu   logits[r, e] = router[e] . RMSNorm(x_r) * norm + bias[e], and the experts that each row goes through
// Shapes    as in moe.cu
// Bytes     a block has kE experts and up to 8 rows: 32 rows of 256 experts are 132 blocks of (8 + 8) rows, 17 MB
//           from the L2 cache. Weights of the first 2048 elements (of one row: 4096) are in registers before
//           the input is there
// Launch    one row: one expert per block where every block gets an SM of its own, else two. Its registers fit beside
//           the blocks of the previous kernel, so that the weights have arrived when the row is ready. More rows: two,
//           four or eight experts per block, about one block per SM, rows through shared memory; further blocks
//           quantise the rows for the experts. The last block of each 8 rows chooses, a warp per row. Types other than
//           F32: a warp per expert
// Numerics  float32 whatever the mode. Every 2048 elements of a row are summed over a warp's lanes, then over the
//           passes, then over the warps: the same for any number of rows. Ties go to the lower index
// Rejected  grouping rows by expert in the last block of all (a second fence, another atomic, and reading back what
//           others wrote: 3 us, where moe_groups.h takes one)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_ring.h"

namespace chimere::cuda {
namespace {

constexpr int kRouterAhead = 2;  // float4 of a thread and row in a pass

struct RouterPlan {
  MoePlan plan;
  int n_logits = 0, expert_blocks = 0;  // the blocks behind these make records
};

__device__ __forceinline__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// Makes the choice of row t, with one warp: writes ids and weights where the expert kernels read them.
__device__ __forceinline__ void choose(const MoePlan& p, int t, Candidate* candidates) {
  const int n_experts = p.args.router.rows, n_used = p.args.n_used, lane = simt::lane_id();
  const float* logits = p.scratch.logits + static_cast<int64_t>(t) * (n_experts + 1);
  ExpertScores scores{p.args.style};
  Candidate* chosen = rank_experts(p, logits, scores, candidates);
  const auto logit_of = [&](const Candidate& c) {
    return scores.is_by_logit() ? of_key(c.key) : load_logit<true>(logits + c.id);
  };
  scores.see_best(logit_of(chosen[0]));
  __syncwarp();
#pragma unroll 1
  for (int k = lane; k < n_used; k += 32) {
    p.scratch.ids[t * n_used + k] = chosen[k].id;
    count_use(p.args, chosen[k].id);
    chosen[k].key = __float_as_uint(scores.score(logit_of(chosen[k])));
  }
  __syncwarp();
  float sum = 0;
#pragma unroll 4
  for (int k = 0; k < n_used; ++k) sum += __uint_as_float(chosen[k].key);
  const float by = scores.weight_factor(sum) * p.args.scale;
  float* weights = p.scratch.weights + t * (n_used + 1);
#pragma unroll 1
  for (int k = lane; k < n_used; k += 32) weights[k] = __uint_as_float(chosen[k].key) * by;
  if (lane == 0) {
    const float shared = p.args.shared_router ? 1.0f / (1.0f + expf(-__ldcg(logits + n_experts))) : 1.0f;
    weights[n_used] = shared * p.args.scale;
  }
}

// Called after the block has written its logits. The last block to arrive sees all logits of its rows, and chooses.
__device__ __forceinline__ void choose_when_last(const RouterPlan& router, int first_row, int n_rows,
                                                 Candidate* candidates) {
  SIMT_SHARED(int, is_last, 1);
  const MoePlan& p = router.plan;
  __syncthreads();
  if (simt::thread_id() == 0) {
    int32_t* finished = p.scratch.finished + blockIdx.y;
    __threadfence();
    is_last[0] = atomicAdd(finished, 1) == router.expert_blocks - 1;
    if (is_last[0]) *finished = 0;
    __threadfence();
  }
  __syncthreads();
  const int t = simt::warp_id(), n_experts = p.args.router.rows;
  if (!is_last[0] || t >= n_rows) return;
  candidates += t * choice_room(n_experts, p.args.n_used);
  choose(p, first_row + t, candidates);
}
static_assert(kRouterBatch <= kDotWarps, "a warp for the choice of each row");

// The biases added to an expert's logit, and to the score that chooses it.
struct ExpertBiases {
  float logit = 0, selection = 0;

  __device__ __forceinline__ ExpertBiases(const MoePlan& p, int expert) {
    if (expert >= p.args.router.rows) return;
    if (p.args.router_bias) logit = p.args.router_bias[expert];
    if (p.args.style.selection_bias) selection = p.args.style.selection_bias[expert];
  }
};

__device__ __forceinline__ void store_logit(const MoePlan& p, int row, int expert, const ExpertBiases& biases,
                                            float sum, float squares) {
  const int n_experts = p.args.router.rows;
  float logit = sum * (1.0f / sqrtf(squares / static_cast<float>(p.args.in.width) + p.args.in.eps));
  if (p.args.router_bias) logit += biases.logit;
  __stcg(p.scratch.logits + static_cast<int64_t>(row) * (n_experts + 1) + expert, logit);
  if (!p.choice_by_block || expert >= n_experts) return;
  __stcg(p.scratch.keys + row * n_experts + expert, order_key(ExpertScores{p.args.style}.key(logit, biases.selection)));
}

// Makes the records that the experts read, one block per row; without the bytes where other blocks make them. Rows of
// up to 1024 kKept elements are loaded at once.
template <int kKept>
__device__ __forceinline__ void make_row_record(const MoePlan& p, int row, bool quantise) {
  InputRows in;  // with a norm and nothing else, so that other code is compiled out
  in.x = p.args.in.x;
  in.norm = p.args.in.norm;
  in.eps = p.args.in.eps;
  in.width = p.args.in.width;
  const NormAhead norms = load_norm(in);
  simt::allow_next();
  simt::wait_for_previous();
  if (row >= p.args.n_rows) return;
  uint8_t* record = p.scratch.in_records + static_cast<int64_t>(row) * record_bytes(in.width);
  make_record(in, row, quantise && !p.args.exact, norms, load_row<kKept>(in, row), record);
  __syncthreads();
  if (simt::thread_id() == 0) stored_inverse(record, in.width) = row_inverse(in, record);
}

// Weights times norm of kE experts, every thread with kPieces float4 of each from `first` on; zeros past the end.
template <int kE, int kPieces>
__device__ __forceinline__ void load_weights(const RouterPlan& router, int first_expert, int first,
                                             float4 (&weights)[kE][kPieces]) {
  const MoeArgs& a = router.plan.args;
  const int quads = a.router.width / 4, tid = simt::thread_id();
  float4 norm[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int at = first + i * kDotThreads + tid;
    norm[i] = at < quads ? __ldg(reinterpret_cast<const float4*>(a.in.norm) + at) : make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int e = 0; e < kE; ++e) {
    // Experts past the end repeat the last one: they are computed and not stored.
    const int expert = min(first_expert + e, router.n_logits - 1);
    const auto* row = expert < a.router.rows ? reinterpret_cast<const float4*>(a.router.row(0, expert))
                                             : reinterpret_cast<const float4*>(a.shared_router);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int at = first + i * kDotThreads + tid;
      weights[e][i] = at < quads ? __ldg(row + at) : make_float4(0, 0, 0, 0);
    }
  }
#pragma unroll
  for (int e = 0; e < kE; ++e) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) weights[e][i] = times_each(weights[e][i], norm[i]);
  }
}

// A single row and kE experts: kPasses passes at a time, loaded at once. Every block also quantises some groups of the
// row for the experts.
template <int kE, int kPasses>
__global__ void __launch_bounds__(kDotThreads, 4) one_row_kernel(const __grid_constant__ RouterPlan router) {
  static_assert(kPasses <= 2, "the halves of a warp end with the sums of a pass each");
  constexpr int kPieces = kPasses * kRouterAhead, kSums = kE + 1;  // the last of squares
  constexpr int kLanes = 32 / (kPasses * kE);                      // that end with the same sum
  SIMT_SHARED(float, sums, kDotWarps* kSums);
  const MoePlan& p = router.plan;
  const int width = p.args.router.width, quads = width / 4, tid = simt::thread_id(), lane = simt::lane_id();
  const int block = static_cast<int>(blockIdx.x), first_expert = block * kE;
  if (block == router.expert_blocks) return make_row_record<kPieces>(p, 0, false);
  float4 weights[kE][kPieces];
  load_weights(router, first_expert, 0, weights);
  const bool quantises = p.made_in && simt::warp_id() == kDotWarps - 1 && block < width / kGroup;
  float group_norm = 0, group_x = 0;  // of the block's first group
  if (quantises) group_norm = p.args.in.norm[block * kGroup + lane];
  const ExpertBiases biases(p, first_expert + tid % kE);
  // Earlier than in other kernels: this one is so short that the next would start too late, and takes little room.
  simt::allow_next();
  simt::wait_for_previous();
  if (quantises) group_x = __ldcg(p.args.in.x + block * kGroup + lane);

#pragma unroll 1
  for (int first = 0; first < quads; first += kPieces * kDotThreads) {
    if (first > 0) load_weights(router, first_expert, first, weights);
    float4 v[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int at = first + i * kDotThreads + tid;
      v[i] = at < quads ? __ldcg(reinterpret_cast<const float4*>(p.args.in.x) + at) : make_float4(0, 0, 0, 0);
    }
    float sum[kPasses * kE] = {}, squares[kPasses] = {};
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int pass = i / kRouterAhead;
#pragma unroll
      for (int e = 0; e < kE; ++e) sum[pass * kE + e] = dot(weights[e][i], v[i], sum[pass * kE + e]);
      squares[pass] = square_sum(v[i], squares[pass]);
    }
    scatter_sums<32>(sum);
    scatter_sums<32>(squares);
    // Adds to the sum of the previous passes what the lower half of the warp has, then what the upper half has.
    float* to = sums + simt::warp_id() * kSums;
    const auto add = [&](float mine, int i, bool is_here) {
      const float upper = kPasses == 2 ? __shfl_xor_sync(simt::kAllLanes, mine, 16) : 0.0f;
      if (is_here) to[i] = (first > 0 ? to[i] + mine : mine) + upper;
    };
    add(sum[0], lane / kLanes, lane % kLanes == 0 && lane / kLanes < kE);
    add(squares[0], kE, lane == 0);
  }
  __syncthreads();
  if (tid < kE && first_expert + tid < router.n_logits) {
    float sum = 0, squares = 0;
#pragma unroll
    for (int j = 0; j < kDotWarps; ++j) {
      sum += sums[j * kSums + tid];
      squares += sums[j * kSums + kE];
    }
    store_logit(p, 0, first_expert + tid, biases, sum, squares);
  }
  // Overlaps with the end of the first warp's work, after the sums that it waits for.
  if (quantises) {
#pragma unroll 1
    for (int g = block; g < width / kGroup; g += router.expert_blocks) {
      const int i = g * kGroup + lane;
      const float v = g == block ? group_x * group_norm : __ldcg(p.args.in.x + i) * p.args.in.norm[i];
      quantise_element(v, static_cast<uint32_t>(g), row_groups(width), p.scratch.in_records);
    }
  }
  if (p.choice_by_block) return;
  choose_when_last(router, 0, 1, simt::dynamic_shared<Candidate>());
}

// kE experts and up to kRouterBatch rows of activations, every thread with some elements of each.
template <int kE>
__global__ void __launch_bounds__(kDotThreads, kE > 4   ? 2
                                               : kE > 2 ? 3
                                                        : 4) router_kernel(const __grid_constant__ RouterPlan router) {
  constexpr int kSums = kE + 1, kLanes = 32 / kE;  // the last of squares; lanes that end with the same sum
  constexpr int kAllSums = kRouterBatch * kDotWarps * kSums;
  SIMT_SHARED(float, sums, kAllSums);
  const MoePlan& p = router.plan;
  auto* staged = simt::dynamic_shared<float4>();  // [row][piece][thread] of a pass
  const Weight& w = p.args.router;
  const int quads = w.width / 4, tid = simt::thread_id(), lane = simt::lane_id();
  const int first_row = static_cast<int>(blockIdx.y) * kRouterBatch;
  const int n_rows = min(kRouterBatch, p.args.n_rows - first_row);
  const int first_expert = static_cast<int>(blockIdx.x) * kE;
  if (static_cast<int>(blockIdx.x) >= router.expert_blocks) {
    return make_row_record<2>(p, first_row + static_cast<int>(blockIdx.x) - router.expert_blocks, true);
  }
  float4 weights[kE][kRouterAhead];
  load_weights(router, first_expert, 0, weights);
  const ExpertBiases biases(p, first_expert + tid % kE);
  simt::allow_next();  // early, as above
  simt::wait_for_previous();

#pragma unroll 1
  for (int first = 0; first < quads; first += kRouterAhead * kDotThreads) {
    if (first > 0) load_weights(router, first_expert, first, weights);
    const auto* x = reinterpret_cast<const float4*>(p.args.in.x + static_cast<int64_t>(first_row) * w.width) + first;
#pragma unroll 2
    for (int t = 0; t < n_rows; ++t) {
#pragma unroll
      for (int i = 0; i < kRouterAhead; ++i) {
        const int at = i * kDotThreads + tid;
        simt::cp_async16(staged + t * kRouterAhead * kDotThreads + at, x + static_cast<int64_t>(t) * quads + at,
                         first + at < quads);
      }
    }
    simt::cp_async_commit();
    simt::cp_async_wait<0>();  // of the thread's own, which nobody else reads
#pragma unroll 1
    for (int t = 0; t < n_rows; ++t) {
      float sum[kE] = {}, squares = 0;
#pragma unroll
      for (int i = 0; i < kRouterAhead; ++i) {
        const float4 v = staged[(t * kRouterAhead + i) * kDotThreads + tid];
#pragma unroll
        for (int e = 0; e < kE; ++e) sum[e] = dot(weights[e][i], v, sum[e]);
        squares = square_sum(v, squares);
      }
      scatter_sums<32>(sum);
      squares = simt::warp_sum(squares);
      float* to = sums + (t * kDotWarps + simt::warp_id()) * kSums;
      if (lane % kLanes == 0) to[lane / kLanes] = sum[0] + (first > 0 ? to[lane / kLanes] : 0.0f);
      if (lane == 0) to[kE] = squares + (first > 0 ? to[kE] : 0.0f);
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int i = tid; i < n_rows * kE; i += kDotThreads) {
    const int t = i / kE, e = i % kE;  // kE divides the threads: the biases are those of e
    float sum = 0, squares = 0;
#pragma unroll
    for (int j = 0; j < kDotWarps; ++j) {
      const float* of_warp = sums + (t * kDotWarps + j) * kSums;
      sum += of_warp[e];
      squares += of_warp[kE];
    }
    if (first_expert + e < router.n_logits) store_logit(p, first_row + t, first_expert + e, biases, sum, squares);
  }
  if (p.choice_by_block) return;
  choose_when_last(router, first_row, n_rows, simt::dynamic_shared<Candidate>());
}

// Any type and width: one warp per expert.
__global__ void __launch_bounds__(kDotThreads, 2) any_router_kernel(const __grid_constant__ RouterPlan router) {
  const MoePlan& p = router.plan;
  const Weight& w = p.args.router;
  const int first_row = static_cast<int>(blockIdx.y) * kRouterBatch;
  const int n_rows = min(kRouterBatch, p.args.n_rows - first_row);
  if (static_cast<int>(blockIdx.x) >= router.expert_blocks) {
    return make_row_record<2>(p, first_row + static_cast<int>(blockIdx.x) - router.expert_blocks, true);
  }
  const int expert = static_cast<int>(blockIdx.x) * kDotWarps + simt::warp_id();
  simt::allow_next();
  simt::wait_for_previous();
#pragma unroll 1
  for (int t = 0; t < n_rows && expert < router.n_logits; ++t) {
    FloatRows rows{};
    rows.x[0] = p.args.in.x + static_cast<int64_t>(first_row + t) * w.width;
    rows.inverse_rms[0] = 1.0f;
    rows.norm = p.args.in.norm;
    const auto* shared = reinterpret_cast<const uint8_t*>(p.args.shared_router);
    const float sum = expert < w.rows ? any_product(w, w.row(0, expert), true, 32, {}, rows)
                                      : float_dot(DType::F32, shared, w.width, rows, 1).x;
    float squares = 0;
    for (int i = simt::lane_id(); i < w.width; i += 32) squares = fmaf(rows.x[0][i], rows.x[0][i], squares);
    const float whole = simt::warp_sum(sum), all_squares = simt::warp_sum(squares);
    if (simt::lane_id() == 0) store_logit(p, first_row + t, expert, {p, expert}, whole, all_squares);
  }
  if (p.choice_by_block) return;
  choose_when_last(router, first_row, n_rows, simt::dynamic_shared<Candidate>());
}

}  // namespace

Status launch_router(const Stream& stream, const MoePlan& p) {
  const MoeArgs& a = p.args;
  RouterPlan router;
  router.plan = p;
  router.n_logits = a.router.rows + (a.shared_router ? 1 : 0);
  const int batches = simt::div_up(a.n_rows, kRouterBatch), batch = min(a.n_rows, kRouterBatch);
  const size_t choices = p.choice_by_block ? 0 : sizeof(Candidate) * choice_room(a.router.rows, a.n_used) * batch;
  const auto launch = [&](auto kernel, int experts, size_t staged) {
    router.expert_blocks = simt::div_up(router.n_logits, experts);
    const int record_blocks = !p.made_in ? 0 : a.n_rows == 1 ? 1 : kRouterBatch;
    const dim3 grid(static_cast<unsigned>(router.expert_blocks + record_blocks), static_cast<unsigned>(batches));
    return simt::launch(kernel, {grid, kDotThreads, max(staged, choices), stream, a.dependent}, router);
  };
  if (a.router.type != DType::F32 || a.router.width % 4 != 0) return launch(any_router_kernel, kDotWarps, 0);
  if (a.n_rows == 1) {
    const bool is_wide = a.router.width > 4 * kRouterAhead * kDotThreads;
    if (router.n_logits + 1 <= a.n_sms) return launch(is_wide ? one_row_kernel<1, 2> : one_row_kernel<1, 1>, 1, 0);
    return launch(is_wide ? one_row_kernel<2, 2> : one_row_kernel<2, 1>, 2, 0);
  }
  const size_t staged = sizeof(float4) * kRouterAhead * kDotThreads * static_cast<size_t>(batch);
  if (batches == 1) return launch(router_kernel<2>, 2, staged);
  if (batches == 2) return launch(router_kernel<4>, 4, staged);
  return launch(router_kernel<8>, 8, staged);
}

}  // namespace chimere::cuda
