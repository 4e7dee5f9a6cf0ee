// sampling_cut.cu   Figures of a row, its best N, and where top-k and top-p cut it
// Shapes    scores [rows, n_vocab] f32
// Bytes     4*n a pass: bins, list; the list of one bin is short unless the row is flat
// Launch    grid (ceil(n_vocab / 4096), rows), block 256; 24 KB of bins a block
// Numerics  weights are integers of 2^-34 (sampling/weight.h): sums are exact, the cut is that of the host
// Method    top-k and top-p are a cut in the order (score, id). A histogram of (max - score) * scale, 64 bins per
//           unit, finds the bin where the cut lies; the tokens of that bin alone are listed and a radix selection of
//           52-bit keys (score, then id) finds the cut inside it. Nothing is ever sorted but the top-N list.
// Measured  not by itself: the seven launches of a draw end about 0.1 ms after the logits (H200, 248,320 tokens)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/sampling/sampling_step.h"

namespace chimere::cuda::sampling {
namespace {

struct CutBins {
  u64 weights[kBins];
  uint32_t counts[kBins];
};

// Adds this thread block's tokens to the row's bins; returns this thread's share of sum(weight * t).
__device__ double fill_bins(const Step& step, int row, float max, float scale, const uint64_t* mask) {
  const Pool& pool = step.pool;
  SIMT_SHARED(CutBins, bins, 1);
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
    bins->weights[bin] = 0;
    bins->counts[bin] = 0;
  }
  __syncthreads();
  const float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  double weighted = 0;
  uint32_t weightless = 0;  // most tokens: one atomic per thread, as all are in the last bin
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    const int id = blockIdx.x * kChunk + i;
    const float score = scores[id];
    if (score == kNoScore || !allowed(mask, id)) continue;
    const float t = tempered(score, max, scale);
    const int bin = bin_of(t);
    if (bin == kBins - 1) {
      ++weightless;
      continue;
    }
    const u64 weight = weight_units(t);
    atomicAdd(&bins->counts[bin], 1u);
    if (weight) atomicAdd(&bins->weights[bin], weight);
    weighted += static_cast<double>(weight) * 0x1p-34 * static_cast<double>(t);
  }
  if (weightless) atomicAdd(&bins->counts[kBins - 1], weightless);
  __syncthreads();
  for (int bin = threadIdx.x; bin < kBins; bin += kThreads) {
    if (!bins->counts[bin]) continue;
    atomicAdd(&pool.counts[static_cast<size_t>(row) * kBins + bin], bins->counts[bin]);
    atomicAdd(&pool.weights[static_cast<size_t>(row) * kBins + bin], bins->weights[bin]);
  }
  return weighted;
}

// Total weight, entropy and largest probability of the unchanged row, and the bin of the last of its best N.
__global__ void __launch_bounds__(kThreads) stats_kernel(Step step) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (work.done || (!wish.wants_stats && wish.n_memory == 0)) return;
  const double mine = block_sum(fill_bins(step, row, work.raw_max, 1.0f, nullptr));
  Partial* partials = pool.partials + static_cast<size_t>(row) * pool.chunks;
  if (threadIdx.x == 0) partials[blockIdx.x].sum = mine;
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  double weighted = 0;
  for (int c = threadIdx.x; c < pool.chunks; c += kThreads) weighted += partials[c].sum;
  weighted = block_sum(weighted);
  const u64* weights = pool.weights + static_cast<size_t>(row) * kBins;
  const uint32_t* counts = pool.counts + static_cast<size_t>(row) * kBins;
  const Found mass = find_bin<kBinsPerThread>(kAll, [&](int bin) { return weights[bin]; });
  const Found last = find_bin<kBinsPerThread>(wish.top_logprobs > 0 ? wish.top_logprobs : 1,
                                              [&](int bin) { return static_cast<u64>(counts[bin]); });
  if (threadIdx.x != 0) return;
  const double total = static_cast<double>(mass.total) * 0x1p-34;
  work.total = total;
  work.bin = last.bin < 0 ? kBins - 1 : last.bin;
  if (!wish.wants_stats) return;
  const double entropy = log(total) - weighted / total;
  step.sampled[row].entropy = static_cast<float>(entropy > 0.0 ? entropy : 0.0);
  step.sampled[row].max_prob = static_cast<float>(1.0 / total);
}

// Lists the tokens of one bin, or of all bins up to it.
__device__ void list_tokens(const Step& step, int row, float max, float scale, const uint64_t* mask, bool and_before) {
  const Pool& pool = step.pool;
  RowWork& work = pool.work[row];
  const float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  uint32_t* list = pool.list + static_cast<size_t>(row) * pool.padded;
  const int wanted = work.bin;
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    const int id = blockIdx.x * kChunk + i;
    const float score = scores[id];
    if (score == kNoScore || !allowed(mask, id)) continue;
    const int bin = bin_of(tempered(score, max, scale));
    if (and_before ? bin > wanted : bin != wanted) continue;
    list[atomicAdd(&work.n_list, 1u)] = static_cast<uint32_t>(id);
  }
}

// The key at which the sum of amounts over the list reaches `need`. The amounts are 1 a token, or the weights.
__device__ u64 select_in_list(const float* scores, const uint32_t* list, uint32_t n, u64 need, bool weighted, float max,
                              float scale) {
  return select_key(need, [&](const auto& take) {
    for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
      const int32_t id = static_cast<int32_t>(list[i]);
      take(key_of(scores[id], id), [&] { return weighted ? weight_units(tempered(scores[id], max, scale)) : u64{1}; });
    }
  });
}

// The best N tokens with their logprobs: those that reach the bin are listed, cut and ranked.
__global__ void __launch_bounds__(kThreads) top_kernel(Step step) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (work.done || wish.top_logprobs == 0) return;
  list_tokens(step, row, work.raw_max, 1.0f, nullptr, true);
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  const float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  const uint32_t* list = pool.list + static_cast<size_t>(row) * pool.padded;
  const uint32_t n = work.n_list;
  const uint32_t wanted = static_cast<uint32_t>(wish.top_logprobs);
  const u64 cut = n > wanted ? select_in_list(scores, list, n, wanted, false, work.raw_max, 1.0f) : kAll;
  SIMT_SHARED(int32_t, best, kMaxTopLogprobs);
  SIMT_SHARED(uint32_t, n_best, 1);
  if (threadIdx.x == 0) *n_best = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const int32_t id = static_cast<int32_t>(list[i]);
    if (key_of(scores[id], id) <= cut) best[atomicAdd(n_best, 1u)] = id;
  }
  __syncthreads();
  TokenLogprob* top = step.top + static_cast<size_t>(row) * step.top_stride;
  for (uint32_t i = threadIdx.x; i < *n_best; i += kThreads) {
    const u64 key = key_of(scores[best[i]], best[i]);
    int rank = 0;
    for (uint32_t j = 0; j < *n_best; ++j) rank += key_of(scores[best[j]], best[j]) < key;
    top[rank] = {best[i], row_logprob(step, row, scores[best[i]])};
  }
  if (threadIdx.x == 0) {
    step.sampled[row].n_top = static_cast<int32_t>(*n_best);
    work.n_list = 0;
  }
}

// The histogram of a row, and the bin where its first cut lies: that of top-k, or of top-p if top-k cuts nothing.
__global__ void __launch_bounds__(kThreads) bins_kernel(Step step, int round) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (work.done || work.round != round || (wish.top_k == 0 && wish.top_p >= 1.0f)) return;
  fill_bins(step, row, work.max, wish.scale, round ? wish.mask : nullptr);
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  const u64* weights = pool.weights + static_cast<size_t>(row) * kBins;
  const uint32_t* counts = pool.counts + static_cast<size_t>(row) * kBins;
  const u64 top_k = wish.top_k > 0 ? static_cast<u64>(wish.top_k) : kAll;
  Found cut = find_bin<kBinsPerThread>(top_k, [&](int bin) { return static_cast<u64>(counts[bin]); });
  Stage stage = cut.total > top_k ? kCountCut : kNoCut;
  u64 need = top_k - cut.before;
  if (stage == kNoCut && wish.top_p < 1.0f) {
    const auto weight = [&](int bin) { return weights[bin]; };
    const u64 target = nucleus(wish.top_p, find_bin<kBinsPerThread>(kAll, weight).total);
    cut = find_bin<kBinsPerThread>(target, weight);
    need = target - cut.before;
    stage = kWeightCut;
  }
  if (threadIdx.x != 0) return;
  work.stage = stage;
  work.bin = cut.bin;
  work.need = need;
  work.cut = kAll;
  work.n_list = 0;
}

// Finds the cut inside its bin. With both top-k and top-p, the first launch finds that of top-k, then the bin of
// top-p's cut; if it is another bin, a second launch finds the cut in it.
__global__ void __launch_bounds__(kThreads) cut_kernel(Step step, int round) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (work.done || work.round != round || work.stage == kNoCut) return;
  list_tokens(step, row, work.max, wish.scale, round ? wish.mask : nullptr, false);
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  const float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  const uint32_t* list = pool.list + static_cast<size_t>(row) * pool.padded;
  const u64* weights = pool.weights + static_cast<size_t>(row) * kBins;
  const uint32_t n = work.n_list;
  const float max = work.max;
  int bin = work.bin;
  u64 need = work.need;
  Stage stage = kNoCut;
  u64 cut = select_in_list(scores, list, n, need, work.stage == kWeightCut, max, wish.scale);
  if (work.stage == kCountCut && wish.top_p < 1.0f) {
    SIMT_SHARED(u64, kept, 1);
    if (threadIdx.x == 0) *kept = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
      const int32_t id = static_cast<int32_t>(list[i]);
      if (key_of(scores[id], id) <= cut) atomicAdd(kept, weight_units(tempered(scores[id], max, wish.scale)));
    }
    for (int b = threadIdx.x; b < bin; b += kThreads) atomicAdd(kept, weights[b]);
    __syncthreads();
    const u64 target = nucleus(wish.top_p, *kept);
    const Found found = find_bin<kBinsPerThread>(target, [&](int b) { return weights[b]; });
    need = target - found.before;
    if (found.bin == bin) {
      cut = select_in_list(scores, list, n, need, true, max, wish.scale);
    } else {
      stage = kWeightCut;
      bin = found.bin;
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  work.cut = cut;
  work.stage = stage;
  work.bin = bin;
  work.need = need;
  work.n_list = 0;
}

}  // namespace

Status launch_stats(const Stream& stream, const Step& step, int n_rows) {
  return simt::launch(stats_kernel, pass_over_rows(stream, step, n_rows), step);
}
Status launch_top(const Stream& stream, const Step& step, int n_rows) {
  return simt::launch(top_kernel, pass_over_rows(stream, step, n_rows), step);
}
Status launch_bins(const Stream& stream, const Step& step, int n_rows, int round) {
  return simt::launch(bins_kernel, pass_over_rows(stream, step, n_rows), step, round);
}
Status launch_cut(const Stream& stream, const Step& step, int n_rows, int round) {
  return simt::launch(cut_kernel, pass_over_rows(stream, step, n_rows), step, round);
}

}  // namespace chimere::cuda::sampling
