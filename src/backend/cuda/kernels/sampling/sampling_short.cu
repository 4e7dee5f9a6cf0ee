// sampling_short.cu   The usual draw in two launches: the best token, or one of the best k <= 128
// Shapes    logits [rows, n_vocab] f32 or the scores of the pool; n_vocab <= 2^19
// Bytes     4*n of a row once, then 1/64 of it and the tokens of some k blocks
// Launch    heights: grid (ceil(n_vocab / 2048), rows), block 256; short: grid rows, block 256
// Numerics  bit for bit as sampling/: the cuts are made in integers, the noise is double
// Method    The first launch writes the height of every run of 64 tokens: its best score as an integer. No barrier, no
//           atomics: all heights are there when the kernel ends. The second, one thread block per row, finds a bound
//           below the row's k-th best score (the k-th best of the heights that groups of its threads see), reads again
//           the runs that reach it, and has little more than k tokens, which it ranks while other warps draw the noise.
//           Both run once on whatever is in memory before they wait for the previous kernel, the output head, which
//           takes far longer: that warms instruction and constant caches, cold at this point of a step. Rows are read
//           past the L1 cache, so that nothing stale from that first run is seen.
// Measured  H200, one row of 248,320 logits: 5.4 us after the head. Rejected: one launch whose last block finishes the
//           row (17 us for the same: two fences, four atomics, and 95 KB of instructions)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/sampling/sampling_shortlist.h"

namespace chimere::cuda::sampling {
namespace {

constexpr int kWarps = kThreads / 32;
constexpr int kBlocksOfWarp = 4;  // a lane has two tokens of each
constexpr int kTokensOfGrid = kWarps * kBlocksOfWarp * kScoreBlock;
static_assert(kChunk % kTokensOfGrid == 0, "a row has a whole number of them");

// The heights of a row's blocks. Round 0 only warms the caches, and one warp is enough for that.
__global__ void __launch_bounds__(kThreads) heights_kernel(const __grid_constant__ Step step, bool loaded) {
  simt::allow_next();  // the next kernel has one thread block per row, which takes no room from this one
  const int row = blockIdx.y, lane = threadIdx.x % 32;
  const Scores scores(step, row, loaded, step.rows[row].mask);
  const int first = (static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32) * kBlocksOfWarp;
  uint32_t takes = ~0u;  // two bits for each block
  if (!scores.takes_all()) {
    takes = 0;
#pragma unroll 1
    for (int i = 0; i < kBlocksOfWarp; ++i) {
      const uint64_t bits = scores.takes(first + i) >> lane;
      takes |= (static_cast<uint32_t>(bits & 1) | (static_cast<uint32_t>(bits >> 32) & 1) << 1) << (2 * i);
    }
  }
#pragma unroll 1
  for (int round = threadIdx.x < 32 ? 0 : 1; round < 2; ++round) {
    if (round == 1) simt::wait_for_previous();
    float halves[kBlocksOfWarp][2];
#pragma unroll
    for (int i = 0; i < kBlocksOfWarp; ++i) {
      const int32_t id = (first + i) * kScoreBlock + lane;
      halves[i][0] = scores.load(id);
      halves[i][1] = scores.load(id + 32);
    }
    uint32_t heights[kBlocksOfWarp];
#pragma unroll
    for (int i = 0; i < kBlocksOfWarp; ++i) {
      const float lower = takes & (1u << (2 * i)) ? halves[i][0] : kNoScore;
      const float upper = takes & (2u << (2 * i)) ? halves[i][1] : kNoScore;
      // clean() of the better one, as what is not a number loses; 0 + -0 is 0.
      const float capped = fminf(fmaxf(fmaxf(lower, kNoScore), upper), kMaxScore);
      heights[i] = __reduce_max_sync(simt::kAllLanes, height_of(capped >= -kMaxScore ? capped + 0.0f : kNoScore));
    }
    if (round == 1 && lane == 0) {
      *reinterpret_cast<uint4*>(heights_of(step.pool, row) + first) = {heights[0], heights[1], heights[2], heights[3]};
    }
  }
}

// No allowed token has a score. By the whole thread block.
__device__ __attribute__((noinline)) void finish_without_score(const Step& step, int row, bool loaded) {
  bool has_number = loaded;
  for (int32_t id = threadIdx.x; !has_number && id < step.n_vocab; id += kThreads) {
    has_number = clean(step.logits[static_cast<size_t>(row) * step.n_vocab + id]) != kNoScore;
  }
  if (__syncthreads_or(has_number ? 1 : 0)) {
    last_resort(step, row);
  } else if (threadIdx.x == 0) {
    finish(step, row, -1, SampleStatus::no_logits);
  }
}

// The token, in the first warp, or -1 when there is none. kHeights: heights that a thread reads. By the whole thread
// block. Where the result does not count, in the run that warms the caches, what takes long is left out.
template <int kHeights>
__device__ __forceinline__ int32_t draw_short(Shortlist& list, const Pool& pool, const Scores& scores,
                                              const SampleRow& wish, bool counts) {
  const int thread = threadIdx.x;
  const bool greedy = wish.temperature < kGreedyBelow;
  const int wanted = greedy ? 1 : wish.top_k;
  const uint32_t* heights = heights_of(pool, static_cast<int>(blockIdx.x));
  const int n_heights = pool.padded / kScoreBlock;
  if (thread == 0) {
    list.bound = ~0u;
    list.n_blocks = list.n_keys = 0;
  }
  uint32_t mine[kHeights];
  uint32_t highest = 0;
#pragma unroll
  for (int i = 0; i < kHeights; ++i) {
    mine[i] = i * kThreads + thread < n_heights ? __ldcg(heights + i * kThreads + thread) : 0u;
  }
#pragma unroll
  for (int i = 0; i < kHeights; ++i) highest = max(highest, mine[i]);
  find_bound(list, highest, wanted);
  const uint32_t bound = list.bound;
  uint32_t reach = 0;
#pragma unroll
  for (int i = 0; i < kHeights; ++i) reach |= mine[i] >= max(bound, kNoHeight + 1) ? 1u << i : 0u;
#pragma unroll 1
  for (; reach; reach &= reach - 1) {
    const uint32_t at = atomicAdd(&list.n_blocks, 1u);
    if (at < kMaxBlocks) {
      list.blocks[at] = static_cast<uint32_t>((__ffs(static_cast<int>(reach)) - 1) * kThreads + thread);
    }
  }
  __syncthreads();
  if (list.n_blocks <= kMaxBlocks) list_keys(list, scores, bound);
  __syncthreads();
  if (list.n_blocks > kMaxBlocks || list.n_keys > kMaxListed) {
    if (!counts) return -1;
    list_selected(list, scores, wanted);
  }
  const auto n = static_cast<int>(list.n_keys);
  if (n == 0) return -1;
  if (thread < kThreads / 2) {
    order_keys(list, n, wanted);
  } else if (!greedy) {
    add_noise(list, n, wish);
  }
  __syncthreads();
  if (thread >= 32) return 0;
  return greedy ? id_of(list.keys[list.order[0]]) : draw_in_order(list, min(n, wanted), wish.top_p);
}

template <int kHeights>
__global__ void __launch_bounds__(kThreads) short_kernel(const __grid_constant__ Step step, bool loaded) {
  simt::allow_next();
  SIMT_SHARED(Shortlist, list, 1);
  const int row = blockIdx.x;
  const SampleRow wish = step.rows[row];
  const Scores scores(step, row, loaded, wish.mask);
  if (threadIdx.x == 0 && !loaded) step.sampled[row] = nothing_yet();
  int32_t id = wish.forced;
#pragma unroll 1
  for (int round = id < 0 ? 0 : 1; round < 2; ++round) {
    const bool counts = round == 1;
    if (counts) {
      simt::wait_for_previous();
      if (loaded && step.pool.work[row].done) return;
      if (wish.forced >= 0) break;
    }
    id = draw_short<kHeights>(*list, step.pool, scores, wish, counts);
    __syncthreads();
  }
  if (wish.forced < 0 && list->n_keys == 0) {
    finish_without_score(step, row, loaded);
  } else if (threadIdx.x == 0) {
    finish(step, row, id, SampleStatus::ok);
  }
}

}  // namespace

Status launch_short(const Stream& stream, const Step& step, int n_rows, bool loaded) {
  constexpr int kUsual = 16, kMost = kMaxVocab / kScoreBlock / kThreads;
  const auto rows = static_cast<unsigned>(n_rows);
  const dim3 grid(static_cast<unsigned>(step.pool.padded / kTokensOfGrid), rows);
  const bool is_usual = step.pool.padded <= kUsual * kThreads * kScoreBlock;
  TRY(simt::launch(heights_kernel, {grid, dim3(kThreads), 0, stream, true}, step, loaded));
  return simt::launch(is_usual ? short_kernel<kUsual> : short_kernel<kMost>,
                      {dim3(rows), dim3(kThreads), 0, stream, true}, step, loaded);
}

}  // namespace chimere::cuda::sampling
