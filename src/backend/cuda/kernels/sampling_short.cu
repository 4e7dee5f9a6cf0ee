// sampling_short.cu   The usual draw in one pass: the best token, or one of the best k <= 128
// Shapes    logits [rows, n_vocab] f32 or the scores of the pool; n_vocab <= 2^19
// Bytes     4*n of a row, once
// Launch    grid (ceil(n_vocab / 4096), rows), block 256
// Numerics  bit for bit as sampling/: the cuts are made in integers, the noise is double
// Method    A block keeps its tokens that may be among the best k of the row. A bound for that comes cheaply: of the
//           best tokens of its threads the k-th best. At most k threads then have something to keep, usually little
//           more than k tokens. The block that arrives last does the same with what was kept, sorts the best k, cuts
//           them by top-p and min-p, and draws.
// Measured  not by itself
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/sampling_step.h"

namespace chimere::cuda::sampling {
namespace {

constexpr int kPerThread = kChunk / kThreads;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxListed = 1024;  // tokens that the last block sorts
static_assert(kShortTop <= kThreads);
static_assert(kShortTop * kPerThread * sizeof(u64) <= kChunk * sizeof(uint32_t), "kept keys lie in Pool::list");

__device__ __forceinline__ int32_t id_of(u64 key) { return static_cast<int32_t>(key & ((u64{1} << kIdBits) - 1)); }
__device__ __forceinline__ float score_of(u64 key) {
  const uint32_t ascending = ~static_cast<uint32_t>(key >> kIdBits);
  return __uint_as_float(ascending & 0x80000000u ? ascending & 0x7fffffffu : ~ascending);
}

__device__ __forceinline__ u64* kept_keys(const Pool& pool, int row, int chunk) {
  return reinterpret_cast<u64*>(pool.list + static_cast<size_t>(row) * pool.padded +
                                static_cast<size_t>(chunk) * kChunk);
}

// The `wanted`-th of the threads' keys in ascending order; kAll when fewer threads have one. Keys differ, but for kAll.
__device__ u64 ranked_key(u64 mine, int wanted) {
  SIMT_SHARED(u64, all, kThreads);
  SIMT_SHARED(u64, found, 1);
  __syncthreads();
  all[threadIdx.x] = mine;
  if (threadIdx.x == 0) *found = kAll;
  __syncthreads();
  int before = 0;
#pragma unroll 8
  for (int i = 0; i < kThreads; ++i) before += all[i] < mine ? 1 : 0;
  if (mine != kAll && before == wanted - 1) *found = mine;
  __syncthreads();
  return *found;
}

// Writes the block's tokens that may be among the row's best `wanted` to its part of the list.
__device__ void keep_best(const Step& step, int row, int wanted, bool loaded) {
  const Pool& pool = step.pool;
  const int chunk = blockIdx.x;
  const float* from = loaded ? pool.scores + static_cast<size_t>(row) * pool.padded
                             : step.logits + static_cast<size_t>(row) * step.n_vocab;
  const uint64_t* mask = step.rows[row].mask;
  SIMT_SHARED(uint32_t, n_kept, 1);
  if (threadIdx.x == 0) *n_kept = 0;
  u64 keys[kPerThread];
  u64 best = kAll;
  bool has_number = false;
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int32_t id = chunk * kChunk + i * kThreads + static_cast<int32_t>(threadIdx.x);
    float score = kNoScore;
    if (id < step.n_vocab) score = loaded ? from[id] : clean(from[id]);
    has_number |= score != kNoScore;
    const bool takes = score != kNoScore && allowed(mask, id) && (loaded || !is_suppressed(step, id));
    keys[i] = takes ? key_of(score, id) : kAll;
    best = keys[i] < best ? keys[i] : best;
  }
  const u64 last = ranked_key(best, wanted);
  u64* kept = kept_keys(pool, row, chunk);
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    if (keys[i] != kAll && keys[i] <= last) kept[atomicAdd(n_kept, 1u)] = keys[i];
  }
  has_number = __syncthreads_or(has_number ? 1 : 0) != 0;
  if (threadIdx.x == 0) {
    Partial& partial = pool.partials[static_cast<size_t>(row) * pool.chunks + chunk];
    partial.id = static_cast<int32_t>(*n_kept);
    partial.all_max = has_number ? 0.0f : kNoScore;
  }
}

// Calls take(key) for this thread's share of what the blocks kept.
template <class Take>
__device__ __forceinline__ void visit_kept(const Pool& pool, int row, const Take& take) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int chunk = warp; chunk < pool.chunks; chunk += kWarps) {
    const u64* kept = kept_keys(pool, row, chunk);
    const int n = pool.partials[static_cast<size_t>(row) * pool.chunks + chunk].id;
    for (int i = lane; i < n; i += 32) take(kept[i]);
  }
}

// The row's best tokens in order, at most `wanted`; returns how many there are. By the last block.
__device__ int sort_best(const Pool& pool, int row, int wanted, u64* sorted) {
  SIMT_SHARED(u64, listed, kMaxListed);
  SIMT_SHARED(uint32_t, n_listed, 1);
  u64 best = kAll;
  visit_kept(pool, row, [&](u64 key) { best = key < best ? key : best; });
  u64 last = ranked_key(best, wanted);
  const auto list_up_to_last = [&] {
    __syncthreads();
    if (threadIdx.x == 0) *n_listed = 0;
    __syncthreads();
    visit_kept(pool, row, [&](u64 key) {
      if (key > last) return;
      const uint32_t at = atomicAdd(n_listed, 1u);
      if (at < kMaxListed) listed[at] = key;
    });
    __syncthreads();
    return *n_listed;
  };
  uint32_t n = list_up_to_last();
  if (n > kMaxListed) {  // the best of the row met in few threads: the bound says little
    last = select_key(
        wanted, [&](const auto& take) { visit_kept(pool, row, [&](u64 key) { take(key, [] { return u64{1}; }); }); });
    n = list_up_to_last();
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

  if (threadIdx.x == 0 && !loaded) step.sampled[row] = nothing_yet();
  SIMT_SHARED(u64, sorted, kShortTop);
  const int n = sort_best(pool, row, wanted, sorted);
  if (n == 0) {
    bool has_number = loaded;
    for (int c = threadIdx.x; c < pool.chunks; c += kThreads) {
      has_number |= pool.partials[static_cast<size_t>(row) * pool.chunks + c].all_max != kNoScore;
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
