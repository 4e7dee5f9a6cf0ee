// sampling_step.h  One step of the sampler as its kernels see it, and what the threads of a thread block do together.
#pragma once

#include "backend/cuda/kernels/sampling/sampling.h"
#include "backend/cuda/kernels/sampling/sampling_math.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda::sampling {

inline constexpr int kThreads = 256;
inline constexpr int kChunk = 4096;  // tokens of a thread block, 16 per thread: 61 blocks for 248,320
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
  int32_t has_number;  // at least one logit is a number
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

// The launches of the other files. Grids are (chunks, rows); for the edits a row is one thread block.
Status launch_stats(const Stream& stream, const Step& step, int n_rows);
Status launch_top(const Stream& stream, const Step& step, int n_rows);
// Finishes every row. loaded: scores are in the pool; else they are the logits, without the suppressed ids.
// REQUIRES: no row needs SampleNeeds::whole.
Status launch_short(const Stream& stream, const Step& step, int n_rows, bool loaded);
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

// Where the running sum of amount(bin) over kThreads * PerThread bins reaches `need`. By a whole thread block.
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

// The key at which the sum of amounts, best key first, reaches `need`: a radix selection. visit(take) calls
// take(key, amount) for this thread's keys, the same ones whenever it is called; keys are below 2^kKeyBits.
// REQUIRES: 1 <= need <= the sum of all amounts. By a whole thread block.
template <class Visit>
__device__ inline u64 select_key(u64 need, const Visit& visit) {
  constexpr int kDigit = 8;
  static_assert(1 << kDigit == kThreads);
  SIMT_SHARED(u64, amounts, 1 << kDigit);
  u64 prefix = 0;
  for (int shift = (kKeyBits - 1) / kDigit * kDigit; shift >= 0; shift -= kDigit) {
    amounts[threadIdx.x] = 0;
    __syncthreads();
    visit([&](u64 key, const auto& amount_of) {
      if (key >> shift >> kDigit != prefix) return;
      const u64 amount = amount_of();
      if (amount) atomicAdd(&amounts[(key >> shift) & ((1u << kDigit) - 1)], amount);
    });
    __syncthreads();
    const Found found = find_bin<1>(need, [&](int bin) { return amounts[bin]; });
    need -= found.before;
    prefix = prefix << kDigit | static_cast<u64>(found.bin);
  }
  return prefix;
}

// The weight that top-p keeps of a total. Rounded up, as sums are integers, and at least 1: one token is always kept.
__device__ __forceinline__ u64 nucleus(float top_p, u64 total) {
  const double target = static_cast<double>(top_p) * (static_cast<double>(total) * 0x1p-34) * 0x1p34;
  const u64 need = static_cast<u64>(ceil(target));
  return need > 0 ? need : 1;
}

// Whether this thread block is the last of its row to finish: then it sees what all the others wrote.
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

__device__ __attribute__((noinline)) inline float row_logprob(const Step& step, int row, float score) {
  const RowWork& work = step.pool.work[row];
  return static_cast<float>((static_cast<double>(score) - static_cast<double>(work.raw_max)) - log(work.total));
}

__device__ __forceinline__ bool is_suppressed(const Step& step, int32_t id) {
  return step.suppressed_bits && id < step.n_vocab && bit_of(step.suppressed_bits, id);
}

__device__ __forceinline__ SampledRow nothing_yet() {
  const float nan = __uint_as_float(0x7fc00000u);
  return {{-1, SampleStatus::ok, 0, 0}, nan, nan, nan, 0};
}

// Writes the token of a row, which is then done. By one thread.
__device__ inline void finish(const Step& step, int row, int32_t id, SampleStatus status) {
  SampledRow& out = step.sampled[row];
  const SampleRow& wish = step.rows[row];
  step.pool.work[row].done = 1;
  static_cast<SampledToken&>(out) = {id, status, wish.tag, 0};
  if (id < 0) return;
  if (wish.accept_into) *wish.accept_into = id;
  if (wish.wants_stats) {
    out.logprob = row_logprob(step, row, clean(step.logits[static_cast<size_t>(row) * step.n_vocab + id]));
  }
}

// Takes the allowed token with the largest raw logit, where no allowed token has a score. By a whole thread block.
__device__ inline void last_resort(const Step& step, int row) {
  const float* logits = step.logits + static_cast<size_t>(row) * step.n_vocab;
  const uint64_t* mask = step.rows[row].mask;
  Best best{0, -1};
  for (int id = threadIdx.x; id < step.n_vocab; id += kThreads) {
    if (!allowed(mask, id) || is_suppressed(step, id)) continue;
    const float logit = logits[id];
    const Best other{static_cast<double>(logit != logit ? kNoScore : logit), id};
    if (beats(other, best)) best = other;
  }
  best = block_best(best);
  if (threadIdx.x == 0) {
    finish(step, row, best.id, best.id < 0 ? SampleStatus::nothing_allowed : SampleStatus::ok);
  }
}

#endif

}  // namespace chimere::cuda::sampling
