// sampling_short.cu   The usual draw in one pass: the best token, or one of the best k <= 128
// Shapes    logits [rows, n_vocab] f32 or the scores of the pool; n_vocab <= 2^19
// Bytes     4*n of a row, once
// Launch    grid (ceil(n_vocab / 4096), rows), block 256
// Numerics  bit for bit as sampling/: the cuts are made in integers, the noise is double
// Method    A block keeps its tokens that may be among the best k of the row. A bound for that comes cheaply: of the
//           best tokens of its threads the k-th best, which lets little more than k tokens pass. The block that arrives
//           last does the same with what was kept, sorts the best k, cuts them by top-p and min-p, and draws.
// Measured  H200, one row of 248,320 logits: 17 us; 32 rows 47 us
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/sampling_step.h"

namespace chimere::cuda::sampling {
namespace {

constexpr int kPerThread = kChunk / kThreads;
constexpr int kMostNeighbours = 8;  // that have one bound together
constexpr int kMaxListed = 1024;    // tokens that the last block sorts
static_assert(2 * kShortTop <= kThreads);
// A block keeps tokens of at most `wanted` groups of neighbours, which are at most half of its threads.
static_assert(kChunk / 2 * sizeof(u64) <= kChunk * sizeof(uint32_t), "kept keys lie in Pool::list");

__device__ __forceinline__ int32_t id_of(u64 key) { return static_cast<int32_t>(key & ((u64{1} << kIdBits) - 1)); }
__device__ __forceinline__ float score_of(u64 key) {
  const uint32_t ascending = ~static_cast<uint32_t>(key >> kIdBits);
  return __uint_as_float(ascending & 0x80000000u ? ascending & 0x7fffffffu : ~ascending);
}

// What the blocks of a row kept, in any order: RowWork::n_list keys.
__device__ __forceinline__ u64* kept_keys(const Pool& pool, int row) {
  return reinterpret_cast<u64*>(pool.list + static_cast<size_t>(row) * pool.padded);
}

// A bound for the best `wanted` of all keys of the block, of which every thread gives its best: at least so many are
// not above it. kAll when too few threads have a key. Neighbours give one key together, as many as leave twice what is
// wanted: few comparisons, and a bound that lets little more than that pass. Keys differ, but for kAll.
__device__ u64 bound_of_best(u64 best, int wanted) {
  SIMT_SHARED(u64, all, kThreads);
  SIMT_SHARED(u64, found, 1);
  int group = kMostNeighbours;
  while (group > 1 && 2 * wanted * group > kThreads) group /= 2;
  for (int step = 1; step < group; step *= 2) {
    const u64 other = __shfl_xor_sync(simt::kAllLanes, best, step);
    best = other < best ? other : best;
  }
  const int n = kThreads / group, thread = threadIdx.x;
  __syncthreads();
  if (thread % group == 0) all[thread / group] = best;
  if (thread == 0) *found = kAll;
  __syncthreads();
  if (thread < n) {
    const u64 mine = all[thread];
    int before = 0;
#pragma unroll 8
    for (int i = 0; i < n; ++i) before += all[i] < mine ? 1 : 0;
    if (mine != kAll && before == wanted - 1) *found = mine;
  }
  __syncthreads();
  return *found;
}

// Adds the block's tokens that may be among the row's best `wanted` to the row's list.
__device__ void keep_best(const Step& step, int row, int wanted, bool loaded) {
  const Pool& pool = step.pool;
  const float* from = loaded ? pool.scores + static_cast<size_t>(row) * pool.padded
                             : step.logits + static_cast<size_t>(row) * step.n_vocab;
  const uint64_t* mask = step.rows[row].mask;
  SIMT_SHARED(uint32_t, n_kept, 1);
  SIMT_SHARED(uint32_t, first, 1);
  if (threadIdx.x == 0) *n_kept = 0;
  u64 keys[kPerThread];
  u64 best = kAll;
  bool has_number = false;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int32_t id = blockIdx.x * kChunk + i * kThreads + static_cast<int32_t>(threadIdx.x);
    float score = kNoScore;
    if (id < step.n_vocab) score = loaded ? from[id] : clean(from[id]);
    has_number |= score != kNoScore;
    const bool takes = score != kNoScore && allowed(mask, id) && (loaded || !is_suppressed(step, id));
    keys[i] = takes ? key_of(score, id) : kAll;
    best = keys[i] < best ? keys[i] : best;
  }
  const u64 bound = bound_of_best(best, wanted);
  uint32_t n_mine = 0;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) n_mine += keys[i] != kAll && keys[i] <= bound ? 1u : 0u;
  uint32_t at = n_mine > 0 ? atomicAdd(n_kept, n_mine) : 0;
  has_number = __syncthreads_or(has_number ? 1 : 0) != 0;
  if (threadIdx.x == 0) {
    *first = *n_kept > 0 ? atomicAdd(&pool.work[row].n_list, *n_kept) : 0;
    pool.partials[static_cast<size_t>(row) * pool.chunks + blockIdx.x].has_number = has_number ? 1 : 0;
  }
  __syncthreads();
  u64* kept = kept_keys(pool, row) + *first;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (keys[i] != kAll && keys[i] <= bound) kept[at++] = keys[i];
  }
}

// Calls take(key) for this thread's share of what was kept. Loads go out several at a time.
template <class Take>
__device__ __forceinline__ void visit_kept(const u64* kept, uint32_t n, const Take& take) {
  constexpr uint32_t kAtOnce = 8;
  for (uint32_t begin = threadIdx.x; begin < n; begin += kAtOnce * kThreads) {
    u64 keys[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) keys[i] = begin + i * kThreads < n ? kept[begin + i * kThreads] : kAll;
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (keys[i] != kAll) take(keys[i]);
    }
  }
}

// The row's best tokens in order, at most `wanted`; returns how many there are. By the last block.
__device__ int sort_best(const Pool& pool, int row, int wanted, u64* sorted) {
  SIMT_SHARED(u64, listed, kMaxListed);
  SIMT_SHARED(uint32_t, n_listed, 1);
  const u64* kept = kept_keys(pool, row);
  const uint32_t n_kept = pool.work[row].n_list;
  u64 best = kAll;
  visit_kept(kept, n_kept, [&](u64 key) { best = key < best ? key : best; });
  u64 bound = bound_of_best(best, wanted);
  const auto list_up_to_bound = [&] {
    __syncthreads();
    if (threadIdx.x == 0) *n_listed = 0;
    __syncthreads();
    visit_kept(kept, n_kept, [&](u64 key) {
      if (key > bound) return;
      const uint32_t at = atomicAdd(n_listed, 1u);
      if (at < kMaxListed) listed[at] = key;
    });
    __syncthreads();
    return *n_listed;
  };
  uint32_t n = list_up_to_bound();
  if (n > kMaxListed) {  // the best of the row met in few threads: the bound says little
    bound = select_key(wanted, [&](const auto& take) {
      visit_kept(kept, n_kept, [&](u64 key) { take(key, [] { return u64{1}; }); });
    });
    n = list_up_to_bound();
  }
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    int before = 0;
    for (uint32_t j = 0; j < n; ++j) before += listed[j] < listed[i] ? 1 : 0;
    if (before < wanted) sorted[before] = listed[i];
  }
  __syncthreads();
  return min(static_cast<int>(n), wanted);
}

// One of the sorted tokens, as temperature, top-p and min-p leave them.
__device__ int32_t draw_among(const SampleRow& wish, const u64* sorted, int n) {
  const bool is_token = static_cast<int>(threadIdx.x) < n;
  const u64 key = sorted[is_token ? threadIdx.x : 0];
  const float t = tempered(score_of(key), score_of(sorted[0]), wish.scale);
  bool survives = is_token && (wish.min_p <= 0.0f || device_exp(t) >= wish.min_p);
  if (wish.top_p < 1.0f) {
    u64 total;
    const u64 before = block_scan(is_token ? weight_units(t) : 0, total);
    survives = survives && before < nucleus(wish.top_p, total);
  }
  const int32_t id = id_of(key);
  return block_best(survives ? Best{static_cast<double>(t) + gumbel(random_bits(wish, id)), id} : Best{0, -1}).id;
}

__global__ void __launch_bounds__(kThreads) short_kernel(Step step, bool loaded) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (loaded && work.done) return;
  if (wish.forced >= 0) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    if (!loaded) step.sampled[row] = nothing_yet();
    finish(step, row, wish.forced, SampleStatus::ok);
    return;
  }
  const bool greedy = wish.temperature < kGreedyBelow;
  const int wanted = greedy ? 1 : wish.top_k;
  keep_best(step, row, wanted, loaded);
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  SIMT_SHARED(u64, sorted, kShortTop);
  const int n = sort_best(pool, row, wanted, sorted);
  if (threadIdx.x == 0) {
    if (!loaded) step.sampled[row] = nothing_yet();
    work.n_list = 0;
  }
  if (n == 0) {
    bool has_number = loaded;
    for (int c = threadIdx.x; c < pool.chunks; c += kThreads) {
      has_number |= pool.partials[static_cast<size_t>(row) * pool.chunks + c].has_number != 0;
    }
    if (__syncthreads_or(has_number ? 1 : 0)) {
      last_resort(step, row);
    } else if (threadIdx.x == 0) {
      finish(step, row, -1, SampleStatus::no_logits);
    }
    return;
  }
  const int32_t id = greedy ? id_of(sorted[0]) : draw_among(wish, sorted, n);
  if (threadIdx.x == 0) finish(step, row, id, SampleStatus::ok);
}

}  // namespace

Status launch_short(const Stream& stream, const Step& step, int n_rows, bool loaded) {
  return simt::launch(short_kernel, pass_over_rows(stream, step, n_rows), step, loaded);
}

}  // namespace chimere::cuda::sampling
