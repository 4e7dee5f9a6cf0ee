// sampling_edits.cu   The stages that change few scores: memory, suppressed ids, bias, penalties, DRY
// Shapes    history [n] ids, any n; lists of a few entries; scores [rows, n_vocab]
// Bytes     the window of the history three times (counts) and once more for each match (DRY); one score per id
// Launch    grid rows, block 1024: a history of 128K tokens is 128 tokens per thread
// Numerics  each operation rounded by itself, in the order of sampling/sampler.h
// Measured  not by itself.   Rejected: Gusfield's Z algorithm for DRY, as the host has it (sequential)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/sampling/sampling_step.h"

namespace chimere::cuda::sampling {
namespace {

constexpr int kEditThreads = 1024;

__device__ double memory_claim(const MemoryEntry& entry, int n_vocab) {
  const bool usable = entry.id >= 0 && entry.id < n_vocab && entry.probability >= 0.0f && entry.probability <= 1.0f &&
                      entry.weight >= 0.0f && entry.weight <= 1.0f;
  return usable ? static_cast<double>(entry.probability) * static_cast<double>(entry.weight) : 0.0;
}

// Sampler::mix_memory. By one thread: the list is short, and an id that is listed twice adds up in order.
__device__ void mix_memory(const Step& step, const SampleRow& wish, const RowWork& work, float* scores) {
  double total = 0;
  for (int i = 0; i < wish.n_memory; ++i) total += memory_claim(wish.memory[i], step.n_vocab);
  if (total <= 0.0) return;
  const double shrink = total > kMaxMemoryShare ? kMaxMemoryShare / total : 1.0;
  const double log_denominator = static_cast<double>(work.raw_max) + log(work.total);
  for (int i = 0; i < wish.n_memory; ++i) {
    const double share = memory_claim(wish.memory[i], step.n_vocab) * shrink;
    if (share <= 0.0) continue;
    float& score = scores[wish.memory[i].id];
    const double p = exp(static_cast<double>(score) - log_denominator);
    score = clean(static_cast<float>(log_denominator + log(p + share / (1.0 - total * shrink))));
  }
}

// The counter of an id: this bit if the window has it, and how often the answer does.
constexpr uint32_t kSeen = 0x80000000u;

// Repetition, presence and frequency penalty. Counters of ids in the window are cleared first, then counted, then used:
// only these are touched.

__device__ void apply_counts(const Step& step, const SampleRow& wish, float* scores, uint32_t* counters) {
  const auto in_vocabulary = [&](int32_t id) { return id >= 0 && id < step.n_vocab; };
  for (int i = wish.counts_start + static_cast<int>(threadIdx.x); i < wish.n_history; i += kEditThreads) {
    if (in_vocabulary(wish.history[i])) counters[wish.history[i]] = 0;
  }
  __syncthreads();
  for (int i = wish.counts_start + static_cast<int>(threadIdx.x); i < wish.n_history; i += kEditThreads) {
    const int32_t id = wish.history[i];
    if (!in_vocabulary(id)) continue;
    atomicOr(&counters[id], kSeen);
    if (i >= wish.n_prompt) atomicAdd(&counters[id], 1u);
  }
  __syncthreads();
  for (int i = wish.counts_start + static_cast<int>(threadIdx.x); i < wish.n_history; i += kEditThreads) {
    const int32_t id = wish.history[i];
    const uint32_t seen = in_vocabulary(id) ? atomicExch(&counters[id], 0u) : 0u;
    if (!seen) continue;  // another thread has changed this score
    float score = scores[id];
    score = score > 0.0f ? __fdiv_rn(score, wish.repetition_penalty) : __fmul_rn(score, wish.repetition_penalty);
    const uint32_t generated = seen & ~kSeen;
    if (generated > 0) {
      score = __fsub_rn(
          score, __fadd_rn(wish.presence_penalty, __fmul_rn(wish.frequency_penalty, static_cast<float>(generated))));
    }
    scores[id] = clean(score);
  }
  __syncthreads();
}

// A thread compares what precedes one place of the history with the history's end, up to the length beyond which the
// penalty does not grow; the token at that place would continue the repetition.
__device__ void apply_dry(const Step& step, const SampleRow& wish, float* scores, uint32_t* longest) {
  const int n = wish.n_history - wish.dry_start;
  const int32_t* end = wish.history + wish.n_history - 1;  // end[-i] is the i-th token from the end
  const auto breaks = [&](int32_t id) {
    if (id < 0 || id >= step.n_vocab) return true;
    int low = 0, high = wish.n_dry_breakers;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (wish.dry_breakers[middle] < id) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < wish.n_dry_breakers && wish.dry_breakers[low] == id;
  };
  SIMT_SHARED(int, limit, 1);
  if (threadIdx.x == 0) *limit = n;
  __syncthreads();
  const int last_length = wish.dry_allowed_length + wish.n_dry_penalties - 1;
  for (int i = threadIdx.x; i < n; i += kEditThreads) {
    if (breaks(end[-i])) {
      atomicMin(limit, i);
    } else {
      longest[end[-i]] = 0;
    }
  }
  __syncthreads();
  const int reach = min(*limit, last_length);
  for (int k = 1 + static_cast<int>(threadIdx.x); k < n && reach >= wish.dry_allowed_length; k += kEditThreads) {
    int length = 0;
    while (length < reach && k + length < n && end[-length] == end[-(k + length)]) ++length;
    const int32_t next = end[-(k - 1)];
    if (length < wish.dry_allowed_length || breaks(next)) continue;
    atomicMax(&longest[next], static_cast<uint32_t>(length));
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += kEditThreads) {
    const int32_t id = end[-i];
    const uint32_t length = breaks(id) ? 0u : atomicExch(&longest[id], 0u);
    if (length) {
      scores[id] = clean(__fsub_rn(scores[id], wish.dry_penalties[static_cast<int>(length) - wish.dry_allowed_length]));
    }
  }
  __syncthreads();
}

// Memory, suppressed ids, bias, penalties and DRY change few tokens of a row: one thread block is enough.
__global__ void __launch_bounds__(kEditThreads) edit_kernel(Step step) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.x;
  const SampleRow& wish = step.rows[row];
  const RowWork& work = pool.work[row];
  if (work.done || wish.forced >= 0) return;
  float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  uint32_t* counters = pool.list + static_cast<size_t>(row) * pool.padded;
  if (wish.n_memory > 0 && threadIdx.x == 0) mix_memory(step, wish, work, scores);
  __syncthreads();
  for (int i = threadIdx.x; i < step.n_suppressed; i += kEditThreads) scores[step.suppressed[i]] = kNoScore;
  __syncthreads();
  for (int i = threadIdx.x; i < wish.n_bias; i += kEditThreads) {
    const int32_t id = wish.bias[i].id;
    if (i > 0 && wish.bias[i - 1].id == id) continue;
    float score = scores[id];
    for (int j = i; j < wish.n_bias && wish.bias[j].id == id; ++j) score = clean(__fadd_rn(score, wish.bias[j].delta));
    scores[id] = score;
  }
  __syncthreads();
  if (wish.counts_start < wish.n_history) apply_counts(step, wish, scores, counters);
  if (wish.dry_start < wish.n_history) apply_dry(step, wish, scores, counters);
}

}  // namespace

Status launch_edits(const Stream& stream, const Step& step, int n_rows) {
  return simt::launch(edit_kernel, {dim3(static_cast<unsigned>(n_rows)), dim3(kEditThreads), 0, stream, true}, step);
}

}  // namespace chimere::cuda::sampling
