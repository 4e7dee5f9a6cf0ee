// sampling_step.h  One step of the sampler as its kernels see it, and what the threads of a block do together.
#pragma once

#include "backend/cuda/kernels/sampling.h"
#include "backend/cuda/kernels/sampling_math.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda::sampling {

inline constexpr int kThreads = 256;
inline constexpr int kChunk = 4096;  // tokens of one block: 16 a thread, 61 blocks for a large vocabulary
inline constexpr int kBinsPerThread = kBins / kThreads;
inline constexpr u64 kAll = ~u64{0};

enum Stage : int32_t { kNoCut = 0, kCountCut = 1, kWeightCut = 2 };

struct RowWork {
  float raw_max;
  float max;         // of the scores the cut looks at: all of them, or in the second round the allowed ones
  float masked_max;  // of the allowed scores
  int32_t masked_best;
  int32_t done;
  int32_t round;  // 1: nothing that survived the cut was allowed, so cut again among the allowed
  int32_t stage;
  int32_t bin;  // where the cut lies
  u64 need;     // how much of that bin survives: tokens or weight
  u64 cut;      // the last surviving key
  double total;
  uint32_t n_list;
  uint32_t ticket;
};

struct Partial {
  double sum;
  float max;
  int32_t id;
  float all_max;
  int32_t reserved;
};

struct Best {
  double sum;
  int32_t id;  // -1: none
};

struct Pool {
  float* scores;      // [rows, padded]
  uint32_t* list;     // [rows, padded]: listed ids; during the edits a counter for each token
  u64* weights;       // [rows, kBins]
  uint32_t* counts;   // [rows, kBins]
  Partial* partials;  // [rows, chunks]
  RowWork* work;      // [rows]
  int padded;
  int chunks;
};

struct Step {
  const float* logits;
  const SampleRow* rows;
  const int32_t* suppressed;
  const uint64_t* suppressed_bits;
  SampledRow* sampled;
  TokenLogprob* top;
  Pool pool;
  int n_vocab;
  int n_suppressed;
  int top_stride;
};

// The passes of the other files; grids are (chunks, rows) but for the edits, which are one block a row.
Status launch_stats(const Stream& stream, const Step& step, int n_rows);
Status launch_top(const Stream& stream, const Step& step, int n_rows);
Status launch_edits(const Stream& stream, const Step& step, int n_rows);
Status launch_bins(const Stream& stream, const Step& step, int n_rows, int round);
Status launch_cut(const Stream& stream, const Step& step, int n_rows, int round);

inline simt::Launch pass_over_rows(const Stream& stream, const Step& step, int n_rows) {
  return {dim3(static_cast<unsigned>(step.pool.chunks), static_cast<unsigned>(n_rows)), dim3(kThreads), 0, stream,
          true};
}

#if defined(CHIMERE_SIMT_EMULATOR) || defined(__CUDACC__)

__device__ __forceinline__ bool beats(const Best& a, const Best& b) {
  if (a.id < 0 || b.id < 0) return b.id < 0 && a.id >= 0;
  return a.sum > b.sum || (a.sum == b.sum && a.id < b.id);
}

// The best of all threads, known to all of them.
__device__ inline Best block_best(Best mine) {
  SIMT_SHARED(Best, all, kThreads);
  __syncthreads();
  all[threadIdx.x] = mine;
  __syncthreads();
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    if (static_cast<int>(threadIdx.x) < stride && beats(all[threadIdx.x + stride], all[threadIdx.x])) {
      all[threadIdx.x] = all[threadIdx.x + stride];
    }
    __syncthreads();
  }
  return all[0];
}

// In a fixed order, so that the same row gives the same bits.
__device__ inline double block_sum(double mine) {
  SIMT_SHARED(double, all, kThreads);
  __syncthreads();
  all[threadIdx.x] = mine;
  __syncthreads();
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    if (static_cast<int>(threadIdx.x) < stride) all[threadIdx.x] += all[threadIdx.x + stride];
    __syncthreads();
  }
  return all[0];
}

// The sum over the threads before this one; `total` is that over all.
__device__ inline u64 block_scan(u64 mine, u64& total) {
  SIMT_SHARED(u64, warps, kThreads / 32);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  u64 inclusive = mine;
  for (int stride = 1; stride < 32; stride *= 2) {
    const u64 other = __shfl_up_sync(0xffffffffu, inclusive, stride);
    if (lane >= stride) inclusive += other;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = inclusive;
  __syncthreads();
  u64 before = 0;
  total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warps[w];
    total += warps[w];
  }
  return before + inclusive - mine;
}

struct Found {
  int bin;     // the first whose inclusive sum reaches what is needed; -1 when none does
  u64 before;  // the sum over the bins before it
  u64 total;
};

// `amount(bin)` over n_bins = kThreads * PerThread bins.
template <int PerThread, class Amount>
__device__ inline Found find_bin(u64 need, const Amount& amount) {
  SIMT_SHARED(Found, found, 1);
  u64 amounts[PerThread];
  u64 mine = 0;
  for (int i = 0; i < PerThread; ++i) {
    amounts[i] = amount(static_cast<int>(threadIdx.x) * PerThread + i);
    mine += amounts[i];
  }
  u64 total;
  u64 before = block_scan(mine, total);
  if (threadIdx.x == 0) *found = {-1, 0, total};
  __syncthreads();
  if (before < need && before + mine >= need) {
    int i = 0;
    while (before + amounts[i] < need) before += amounts[i++];
    *found = {static_cast<int>(threadIdx.x) * PerThread + i, before, total};
  }
  __syncthreads();
  return *found;
}

// Whether this block is the last of its row: then it sees what all the others wrote.
__device__ inline bool arrives_last(uint32_t* ticket, int n_blocks) {
  SIMT_SHARED(int, last, 1);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    *last = atomicAdd(ticket, 1u) == static_cast<uint32_t>(n_blocks) - 1 ? 1 : 0;
    if (*last) *ticket = 0;
    __threadfence();
  }
  __syncthreads();
  return *last != 0;
}

__device__ inline void clear_bins(const Pool& pool, int row, int first, int step) {
  for (int bin = first; bin < kBins; bin += step) {
    pool.weights[static_cast<size_t>(row) * kBins + bin] = 0;
    pool.counts[static_cast<size_t>(row) * kBins + bin] = 0;
  }
}

__device__ inline float row_logprob(const Step& step, int row, float score) {
  const RowWork& work = step.pool.work[row];
  return static_cast<float>((static_cast<double>(score) - static_cast<double>(work.raw_max)) - log(work.total));
}

#endif

}  // namespace chimere::cuda::sampling
