// sampling.cu   id = argmax over the kept tokens of (score - max) / temperature + gumbel(seed, choice, position, id)
// Shapes    logits [rows, n_vocab] f32; n_vocab <= 2^19, any value
// Bytes     a pass over the row for each of load 8*n, max 4*n, histogram 4*n, cut 4*n (twice for top-k with top-p) and
//           draw 4*n; edits few. The row (1 MB for 248,320 tokens) stays in the L2 cache after the first pass.
// Launch    grid (ceil(n_vocab / 4096), rows), block 256, one launch per pass, 2 (sampling_short.cu) to 7. Except in
//           the short draw, the last thread block of a row to finish reduces it: no pass needs a second launch
// Numerics  scores, weights and cuts bit for bit as sampling/; see sampling.h for the two exceptions
// Measured  not by itself, see sampling_cut.cu
// Rejected  one block per row (a single SM reads 1 MB in about 10 us, times 6 passes)
#include "backend/cuda/simt/simt.h"

#include <algorithm>
#include <string>

#include "backend/cuda/kernels/sampling/sampling_step.h"
#include "sampling/gumbel.h"

namespace chimere::cuda {
namespace sampling {
namespace {

int padded_vocab(int n_vocab) { return (n_vocab + kChunk - 1) / kChunk * kChunk; }

template <class T>
T* take(uintptr_t base, size_t& used, size_t count) {
  T* taken = reinterpret_cast<T*>(base + used);
  used += (count * sizeof(T) + 255) / 256 * 256;
  return taken;
}

// Lays out the pool; without memory it only measures.
Pool place(std::byte* memory, int n_vocab, size_t rows, size_t& bytes) {
  const auto base = reinterpret_cast<uintptr_t>(memory);
  Pool p;
  p.padded = padded_vocab(n_vocab);
  p.chunks = p.padded / kChunk;
  bytes = 0;
  p.scores = take<float>(base, bytes, rows * p.padded);
  p.list = take<uint32_t>(base, bytes, rows * p.padded);
  p.weights = take<u64>(base, bytes, rows * kBins);
  p.counts = take<uint32_t>(base, bytes, rows * kBins);
  p.partials = take<Partial>(base, bytes, rows * p.chunks);
  p.work = take<RowWork>(base, bytes, rows);
  return p;
}

// Scores of the pool <- logits, and the largest of a row. `suppresses`: without the suppressed ids, as nobody wants
// figures of the row as the model gave it.
__global__ void __launch_bounds__(kThreads) load_kernel(Step step, bool suppresses) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y, chunk = blockIdx.x;
  const float* logits = step.logits + static_cast<size_t>(row) * step.n_vocab;
  float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  float max = kNoScore;
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    const int id = chunk * kChunk + i;
    const float score = id < step.n_vocab ? clean(logits[id]) : kNoScore;
    max = score > max ? score : max;
    scores[id] = suppresses && is_suppressed(step, id) ? kNoScore : score;
  }
  clear_bins(pool, row, chunk * kThreads + static_cast<int>(threadIdx.x), pool.chunks * kThreads);
  const Best best = block_best({static_cast<double>(max), 0});
  if (threadIdx.x == 0)
    pool.partials[static_cast<size_t>(row) * pool.chunks + chunk].max = static_cast<float>(best.sum);
  RowWork& work = pool.work[row];
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  Best row_best{static_cast<double>(kNoScore), 0};
  for (int c = threadIdx.x; c < pool.chunks; c += kThreads) {
    const Best other{static_cast<double>(pool.partials[static_cast<size_t>(row) * pool.chunks + c].max), 0};
    if (beats(other, row_best)) row_best = other;
  }
  row_best = block_best(row_best);
  if (threadIdx.x != 0) return;
  const SampleRow& wish = step.rows[row];
  work.raw_max = static_cast<float>(row_best.sum);
  work.done = 0;
  work.n_list = 0;
  step.sampled[row] = nothing_yet();
  if (wish.forced >= 0 && !wish.wants_stats) {
    finish(step, row, wish.forced, SampleStatus::ok);
  } else if (work.raw_max == kNoScore) {
    finish(step, row, -1, SampleStatus::no_logits);
  }
}

// The largest score of all and the best allowed token; greedy rows are finished here. Rows that load_kernel did not
// load are loaded here, without the suppressed ids.
__global__ void __launch_bounds__(kThreads) max_kernel(Step step, bool loaded) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (loaded && work.done) return;
  const float* logits = step.logits + static_cast<size_t>(row) * step.n_vocab;
  float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  Best all{0, -1}, permitted{0, -1};
  bool has_number = loaded;
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    const int id = blockIdx.x * kChunk + i;
    float score;
    if (loaded) {
      score = scores[id];
    } else {
      score = id < step.n_vocab ? clean(logits[id]) : kNoScore;
      has_number |= score != kNoScore;
      if (is_suppressed(step, id)) score = kNoScore;
      scores[id] = score;
    }
    if (score == kNoScore) continue;
    const Best other{static_cast<double>(score), id};
    if (beats(other, all)) all = other;
    if (beats(other, permitted) && allowed(wish.mask, id)) permitted = other;
  }
  clear_bins(pool, row, blockIdx.x * kThreads + static_cast<int>(threadIdx.x), pool.chunks * kThreads);
  all = block_best(all);
  permitted = block_best(permitted);
  has_number = __syncthreads_or(has_number ? 1 : 0) != 0;
  Partial* partials = pool.partials + static_cast<size_t>(row) * pool.chunks;
  if (threadIdx.x == 0) {
    partials[blockIdx.x] = {0, permitted.id < 0 ? kNoScore : static_cast<float>(permitted.sum), permitted.id,
                            all.id < 0 ? kNoScore : static_cast<float>(all.sum), has_number ? 1 : 0};
  }
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  all = permitted = {0, -1};
  has_number = false;
  for (int c = threadIdx.x; c < pool.chunks; c += kThreads) {
    const Best allowed_best{static_cast<double>(partials[c].max), partials[c].id};
    const Best any_best{static_cast<double>(partials[c].all_max), partials[c].all_max == kNoScore ? -1 : 0};
    if (beats(allowed_best, permitted)) permitted = allowed_best;
    if (beats(any_best, all)) all = any_best;
    has_number |= partials[c].has_number != 0;
  }
  all = block_best(all);
  permitted = block_best(permitted);
  has_number = __syncthreads_or(has_number ? 1 : 0) != 0;
  if (!loaded && threadIdx.x == 0) {
    step.sampled[row] = nothing_yet();
    work.done = 0;
  }
  if (wish.forced < 0 && has_number && permitted.id < 0) {
    last_resort(step, row);
    return;
  }
  if (threadIdx.x != 0) return;
  if (wish.forced >= 0) {
    finish(step, row, wish.forced, SampleStatus::ok);
  } else if (!has_number) {
    finish(step, row, -1, SampleStatus::no_logits);
  } else if (wish.temperature < kGreedyBelow) {
    finish(step, row, permitted.id, SampleStatus::ok);
  } else {
    work.masked_max = static_cast<float>(permitted.sum);
    work.masked_best = permitted.id;
    work.max = static_cast<float>(all.sum);
    work.round = 0;
    work.stage = kNoCut;
    work.cut = kAll;
    work.n_list = 0;
  }
}

__device__ __forceinline__ bool truncates(const SampleRow& wish) {
  return wish.top_k > 0 || wish.top_p < 1.0f || wish.min_p > 0.0f;
}

// The largest score plus Gumbel noise among the tokens that all cuts keep. Where a mask allows none of them, round 1
// cuts again among the allowed ones.
__global__ void __launch_bounds__(kThreads) draw_kernel(Step step, int round) {
  simt::wait_for_previous();
  simt::allow_next();
  const Pool& pool = step.pool;
  const int row = blockIdx.y;
  const SampleRow& wish = step.rows[row];
  RowWork& work = pool.work[row];
  if (work.done || work.round != round) return;
  const float* scores = pool.scores + static_cast<size_t>(row) * pool.padded;
  const bool shortened = truncates(wish);
  const float max = shortened ? work.max : work.masked_max;
  const u64 cut = work.cut;
  const auto survives = [&](int32_t id, float score, float t) {
    return score != kNoScore && allowed(wish.mask, id) && (cut == kAll || key_of(score, id) <= cut) &&
           (wish.min_p <= 0.0f || device_exp(t) >= wish.min_p);
  };
  // The best allowed token goes first: few others can then still win, and only those need random numbers and
  // logarithms.
  SIMT_SHARED(Best, leader, 1);
  if (threadIdx.x == 0) {
    const int32_t id = work.masked_best;
    const float t = tempered(scores[id], max, wish.scale);
    *leader =
        survives(id, scores[id], t) ? Best{static_cast<double>(t) + gumbel(random_bits(wish, id)), id} : Best{0, -1};
  }
  __syncthreads();
  Best best = *leader;
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    const int32_t id = blockIdx.x * kChunk + i;
    const float score = scores[id];
    const float t = tempered(score, max, wish.scale);
    if (best.id >= 0 && static_cast<double>(t) + kMaxGumbel < best.sum) continue;
    if (!survives(id, score, t)) continue;
    const uint32_t bits = random_bits(wish, id);
    const double hurdle = best.sum - 1e-3 - fabs(best.sum) * 1e-6;
    if (best.id >= 0 && static_cast<double>(t + gumbel_bound(bits)) < hurdle) continue;
    const Best other{static_cast<double>(t) + gumbel(bits), id};
    if (beats(other, best)) best = other;
  }
  best = block_best(best);
  Partial* partials = pool.partials + static_cast<size_t>(row) * pool.chunks;
  if (threadIdx.x == 0) {
    partials[blockIdx.x].sum = best.sum;
    partials[blockIdx.x].id = best.id;
  }
  if (!arrives_last(&work.ticket, pool.chunks)) return;

  best = {0, -1};
  for (int c = threadIdx.x; c < pool.chunks; c += kThreads) {
    const Best other{partials[c].sum, partials[c].id};
    if (beats(other, best)) best = other;
  }
  best = block_best(best);
  if (best.id < 0 && round == 0) {
    clear_bins(pool, row, threadIdx.x, kThreads);
    if (threadIdx.x == 0) {
      work.round = 1;
      work.max = work.masked_max;
      work.cut = kAll;
      work.stage = kNoCut;
    }
    return;
  }
  if (threadIdx.x == 0) finish(step, row, best.id, SampleStatus::ok);
}

}  // namespace
}  // namespace sampling

size_t sample_scratch_bytes(int n_vocab, int max_rows) {
  size_t bytes = 0;
  sampling::place(nullptr, n_vocab, static_cast<size_t>(max_rows), bytes);
  return bytes;
}

Status sample_rows(const Stream& stream, const SampleArgs& args) {
  using namespace sampling;
  if (args.n_vocab <= 0 || args.n_vocab > kMaxVocab) {
    return Error{Code::unsupported, "sampling: expected a vocabulary of 1 to " + std::to_string(kMaxVocab) +
                                        " tokens, found " + std::to_string(args.n_vocab)};
  }
  const SampleNeeds& needs = args.needs;
  for (int first = 0; first < args.n_rows; first += args.scratch.max_rows) {
    const int rows = std::min(args.scratch.max_rows, args.n_rows - first);
    size_t bytes = 0;
    const Pool pool = place(args.scratch.memory, args.n_vocab, static_cast<size_t>(args.scratch.max_rows), bytes);
    const Step step{args.logits + static_cast<size_t>(first) * args.n_vocab,
                    args.rows + first,
                    args.suppressed,
                    args.n_suppressed > 0 ? args.suppressed_bits : nullptr,
                    args.sampled + first,
                    args.top ? args.top + static_cast<size_t>(first) * args.top_stride : nullptr,
                    pool,
                    args.n_vocab,
                    args.n_suppressed,
                    args.top_stride};
    const bool loaded = needs.figures() || needs.edits;
    if (loaded) TRY(simt::launch(load_kernel, pass_over_rows(stream, step, rows), step, !needs.figures()));
    if (needs.stats || needs.memory) TRY(launch_stats(stream, step, rows));
    if (needs.top_logprobs) TRY(launch_top(stream, step, rows));
    if (needs.edits || (needs.figures() && args.n_suppressed > 0)) TRY(launch_edits(stream, step, rows));
    if (!needs.whole) {
      TRY(launch_short(stream, step, rows, loaded));
      continue;
    }
    TRY(simt::launch(max_kernel, pass_over_rows(stream, step, rows), step, loaded));
    for (int round = 0; round < (needs.retry ? 2 : 1); ++round) {
      if (needs.truncation) {
        TRY(launch_bins(stream, step, rows, round));
        TRY(launch_cut(stream, step, rows, round));
        if (needs.two_cuts) TRY(launch_cut(stream, step, rows, round));
      }
      TRY(simt::launch(draw_kernel, pass_over_rows(stream, step, rows), step, round));
    }
  }
  return Ok{};
}

}  // namespace chimere::cuda
