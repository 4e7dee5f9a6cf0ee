#include "backend/cpu/ops/gdn_mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/vec.h"

namespace chimere::cpu {
namespace {

constexpr float kNormEps = 1e-6f;  // under the root of the L2 norms of q and k, a constant of the architecture
constexpr int kTriangleStep = 16;  // rows of a triangular product done at once; the zeros above them are not computed

// A head's part of a row is too short, and the next row too far, for the processor to see the pattern: ask ahead.
constexpr int kPrefetchTokens = 3;
void prefetch(int n, const float* row) {
  for (int i = 0; i < n; i += 16) __builtin_prefetch(row + i);
}

// One sequence's share of a batch, or of a recording, as seen by one layer.
struct GdnRun {
  ConvRows qkv;  // [n_tokens][channels]
  const float* alpha;
  const float* beta;
  int64_t gate_row;
  const float* z = nullptr;  // null together with out when only the state is wanted
  float* out = nullptr;
  int64_t value_row = 0;
  float* state;  // [n_value_heads][d][d]
  float* ahead;  // where tokens behind the first leave theirs; the same as state, or SequenceView::recurrent_ahead
  int pos = 0;
  int n_tokens;
};

struct GdnLayer {
  const VecKernels& v;
  const op::GdnMix& op;
  RecurrentScratch& scratch;
  int rank;
  const ConvWeights& conv;
  const float* a;
  const float* dt_bias;
  const float* norm;
  int heads_per_key;

  // Channels of [q | k | v].
  int64_t q_channel(int key_head) const { return int64_t{key_head} * op.d_head; }
  int64_t k_channel(int key_head) const { return int64_t{op.n_key_heads + key_head} * op.d_head; }
  int64_t v_channel(int head) const { return int64_t{2 * op.n_key_heads + head} * op.d_head; }
  int value_head(int key_head, int i) const {
    return op.tiled_heads ? i * op.n_key_heads + key_head : key_head * heads_per_key + i;
  }
  float decay(const GdnRun& run, int t, int head) const {
    const float x = run.alpha[t * run.gate_row + head] + dt_bias[head];
    return a[head] * (x > 20.0f ? x : std::log1p(std::exp(x)));
  }
  float beta(const GdnRun& run, int t, int head) const {
    return 1.0f / (1.0f + std::exp(-run.beta[t * run.gate_row + head]));
  }
};

GdnLayer make_layer(const Team& team, const Program& program, const op::GdnMix& op, RecurrentScratch& scratch) {
  return {vec(),
          op,
          scratch,
          team.rank(),
          scratch.conv(op.recurrent_layer),
          program.vectors[op.a].data(),
          program.vectors[op.dt_bias].data(),
          program.vectors[op.norm].data(),
          op.n_value_heads / op.n_key_heads};
}

// Conv and SiLU of one head's channels for token t.
void conv_head(const GdnLayer& layer, const GdnRun& run, int t, int64_t channel, float* out) {
  layer.scratch.conv_block(layer.v, layer.conv, run.qkv, t, channel / layer.op.d_head, layer.rank, out);
}

void advance_windows(const GdnLayer& layer, const GdnRun& run, int key_head) {
  const auto advance = [&](int64_t channel) { advance_window(layer.conv, run.qkv, channel, layer.op.d_head); };
  advance(layer.q_channel(key_head));
  advance(layer.k_channel(key_head));
  for (int i = 0; i < layer.heads_per_key; ++i) advance(layer.v_channel(layer.value_head(key_head, i)));
}

// x / |x| * scale
void normalize(const VecKernels& v, int d, float scale, float* x) {
  const float norm = 1.0f / std::sqrt(v.sum_squares(d, x) + kNormEps);
  v.scale(d, norm * scale, x, x);
}

void finish_row(const GdnLayer& layer, const GdnRun& run, int t, int head, const float* o) {
  const int d = layer.op.d_head;
  const float norm = 1.0f / std::sqrt(layer.v.sum_squares(d, o) / static_cast<float>(d) + layer.op.eps);
  const int64_t at = t * run.value_row + int64_t{head} * d;
  if (t + kPrefetchTokens < run.n_tokens) prefetch(d, run.z + at + kPrefetchTokens * run.value_row);
  layer.v.scale_mul_silu(d, norm, o, layer.norm, run.z + at, run.out + at);
}

// Value heads first .. last of one key head.
struct Task {
  int key_head;
  int first, last;
};

void run_recurrence(const GdnLayer& layer, const GdnRun& run, const Task& task, float* memory) {
  const int d = layer.op.d_head;
  float* q = memory;
  float* k = q + kDecodeTokens * d;
  float* v = k + kDecodeTokens * d;
  float* o = v + kDecodeTokens * d;
  float decay[kDecodeTokens], beta[kDecodeTokens];
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(d));
  for (int first = 0; first < run.n_tokens; first += kDecodeTokens) {
    const int n = std::min(kDecodeTokens, run.n_tokens - first);
    for (int t = 0; t < n; ++t) {
      conv_head(layer, run, first + t, layer.q_channel(task.key_head), q + t * d);
      conv_head(layer, run, first + t, layer.k_channel(task.key_head), k + t * d);
      normalize(layer.v, d, q_scale, q + t * d);
      normalize(layer.v, d, 1.0f, k + t * d);
    }
    for (int i = task.first; i < task.last; ++i) {
      const int head = layer.value_head(task.key_head, i);
      for (int t = 0; t < n; ++t) {
        conv_head(layer, run, first + t, layer.v_channel(head), v + t * d);
        decay[t] = std::exp(layer.decay(run, first + t, head));
        beta[t] = layer.beta(run, first + t, head);
      }
      const DeltaTokens tokens{n, q, k, v, decay, beta, run.out == nullptr ? nullptr : o};
      float* ahead = run.ahead + int64_t{head} * d * d;
      layer.v.delta_steps(d, d, tokens, first == 0 ? run.state + int64_t{head} * d * d : ahead, ahead);
      if (run.out == nullptr) continue;
      for (int t = 0; t < n; ++t) finish_row(layer, run, first + t, head, o + t * d);
    }
  }
}

// One worker's memory for a chunk. Rows of K then Q lie in one block, so that one product serves both.
struct ChunkMemory {
  ChunkMemory(float* memory, int d) {
    const auto take = [&](int64_t n) {
      float* at = memory;
      memory += n;
      return at;
    };
    kq = take(2 * C * d);
    k_t = take(C * d);
    kk = take(C * C);
    qk = take(C * C);
    kq_state = take(2 * C * d);
    x = take(C * d);
    masked = take(C * C);
    g_high = take(C);
    g_low = take(C);
    beta = take(C);
  }
  static constexpr int64_t C = kChunkTokens;
  static size_t floats(int d) { return static_cast<size_t>(6 * C * d + 3 * C * C + 3 * C); }
  float* kq;   // [2n][d]
  float* k_t;  // [d][n]
  float* kk;   // [n][n] lower triangle of K K^T, then of Q K^T
  float* qk;
  float* kq_state;  // [2n][d]
  float* x;         // [n][d]
  float* masked;    // [n][n]
  float* g_high;    // [n] running sum of log decays, in two floats
  float* g_low;
  float* beta;
};

// The part of a chunk that all value heads of a key head share.
void prepare_keys(const GdnLayer& layer, const GdnRun& run, int first, int n, int key_head, const ChunkMemory& m) {
  const int d = layer.op.d_head;
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(d));
  float* q = m.kq + int64_t{n} * d;
  for (int t = 0; t < n; ++t) {
    conv_head(layer, run, first + t, layer.k_channel(key_head), m.kq + t * d);
    conv_head(layer, run, first + t, layer.q_channel(key_head), q + t * d);
    normalize(layer.v, d, 1.0f, m.kq + t * d);
    normalize(layer.v, d, q_scale, q + t * d);
  }
  layer.v.transpose(n, d, m.kq, d, m.k_t, n);
  for (int i = 0; i < n; i += kTriangleStep) {
    const int rows = std::min(kTriangleStep, n - i);
    layer.v.matmul(rows, i + rows, d, m.kq + i * d, d, 1, m.k_t, n, m.kk + i * n, n, false);
    layer.v.matmul(rows, i + rows, d, q + i * d, d, 1, m.k_t, n, m.qk + i * n, n, false);
  }
}

// In place: x <- (I - l)^-1 x for strictly lower l [n][n], x [n][d].
void solve_unit_lower(const VecKernels& v, int n, int d, const float* l, float* x) {
  constexpr int kStep = 8;
  for (int i = 0; i < n; i += kStep) {
    const int rows = std::min(kStep, n - i);
    if (i > 0) v.matmul(rows, d, i, l + i * n, n, 1, x, d, x + i * d, d, true);
    for (int r = 1; r < rows; ++r) {
      v.matmul(1, d, r, l + (i + r) * n + i, n, 1, x + i * d, d, x + (i + r) * d, d, true);
    }
  }
}

void run_chunk_head(const GdnLayer& layer, const GdnRun& run, int first, int n, int head, const ChunkMemory& m) {
  const int d = layer.op.d_head;
  float* state = run.state + int64_t{head} * d * d;
  double sum = 0;
  for (int t = 0; t < n; ++t) {
    sum += layer.decay(run, first + t, head);
    m.g_high[t] = static_cast<float>(sum);
    m.g_low[t] = static_cast<float>(sum - m.g_high[t]);
    m.beta[t] = layer.beta(run, first + t, head);
  }
  // out_j = scale x_j exp(G_t - G_j) for j < count
  const auto decay_row = [&](int t, int count, float scale, const float* x, float* out) {
    const float g[2] = {m.g_high[t], m.g_low[t]};
    layer.v.decay_mul(count, scale, g, m.g_high, m.g_low, x, out);
  };
  layer.v.matmul(2 * n, d, d, m.kq, d, 1, state, d, m.kq_state, d, false);

  for (int t = 0; t < n; ++t) {
    float* x = m.x + t * d;
    conv_head(layer, run, first + t, layer.v_channel(head), x);
    layer.v.multiply_add(d, -std::exp(m.g_high[t]), m.kq_state + t * d, x);
    layer.v.scale(d, m.beta[t], x, x);
    decay_row(t, t, -m.beta[t], m.kk + t * n, m.masked + t * n);
  }
  solve_unit_lower(layer.v, n, d, m.masked, m.x);

  float* o = m.kq_state + int64_t{n} * d;
  for (int t = 0; t < n; ++t) {
    layer.v.scale(d, std::exp(m.g_high[t]), o + t * d, o + t * d);
    decay_row(t, t + 1, 1.0f, m.qk + t * n, m.masked + t * n);
    const int block_end = std::min(n, t / kTriangleStep * kTriangleStep + kTriangleStep);
    std::fill(m.masked + t * n + t + 1, m.masked + t * n + block_end, 0.0f);
  }
  for (int i = 0; i < n; i += kTriangleStep) {
    const int rows = std::min(kTriangleStep, n - i);
    layer.v.matmul(rows, d, i + rows, m.masked + i * n, n, 1, m.x, d, o + i * d, d, true);
  }
  for (int t = 0; t < n; ++t) finish_row(layer, run, first + t, head, o + t * d);

  layer.v.scale(d * d, static_cast<float>(std::exp(sum)), state, state);
  for (int t = 0; t < n; ++t) {
    const double rest = sum - m.g_high[t] - m.g_low[t];
    layer.v.scale(d, std::exp(static_cast<float>(rest)), m.x + t * d, m.x + t * d);
  }
  layer.v.matmul(d, d, n, m.kq, 1, d, m.x, d, state, d, true);
}

void run_chunks(const GdnLayer& layer, const GdnRun& run, const Task& task, float* memory) {
  const ChunkMemory chunk(memory, layer.op.d_head);
  for (int first = 0; first < run.n_tokens;) {
    const int to_grid = kChunkTokens - (run.pos + first) % kChunkTokens;
    const int n = std::min(to_grid, run.n_tokens - first);
    prepare_keys(layer, run, first, n, task.key_head, chunk);
    for (int i = task.first; i < task.last; ++i) {
      run_chunk_head(layer, run, first, n, layer.value_head(task.key_head, i), chunk);
    }
    first += n;
  }
}

// Keeps the raw inputs of one key head and its value heads.
void record(const GdnLayer& layer, const GdnRun& run, int key_head, float* replay, int64_t stride) {
  const op::GdnMix& op = layer.op;
  const size_t bytes = static_cast<size_t>(op.d_head) * sizeof(float);
  for (int t = 0; t < run.n_tokens; ++t, replay += stride) {
    const float* qkv = run.qkv.in + t * run.qkv.in_row;
    const auto keep = [&](int64_t channel) { std::memcpy(replay + channel, qkv + channel, bytes); };
    keep(layer.q_channel(key_head));
    keep(layer.k_channel(key_head));
    float* alpha = replay + op.channels();
    float* beta = alpha + op.n_value_heads;
    for (int i = 0; i < layer.heads_per_key; ++i) {
      const int head = layer.value_head(key_head, i);
      keep(layer.v_channel(head));
      alpha[head] = run.alpha[t * run.gate_row + head];
      beta[head] = run.beta[t * run.gate_row + head];
    }
  }
}

// Whether single value heads keep the workers busier than whole groups: they do some work once per head that a group
// does once, about a fifth of a head's.
bool splits_groups(int64_t n_groups, int heads_per_key, int n_workers) {
  const auto rounds = [&](int64_t n) { return (n + n_workers - 1) / n_workers; };
  return rounds(n_groups) * heads_per_key * 5 > rounds(n_groups * heads_per_key) * 6;
}

}  // namespace

size_t gdn_worker_floats(const op::GdnMix& op) { return ChunkMemory::floats(op.d_head); }

void gdn_mix(Team& team, const Context& context, const op::GdnMix& op, RecurrentScratch& scratch) {
  const GdnLayer layer = make_layer(team, context.program, op, scratch);
  const std::vector<Slice>& slices = context.batch.slices;
  float* memory = scratch.worker(team.rank()).memory.data();
  const int64_t n_groups = static_cast<int64_t>(slices.size()) * op.n_key_heads;
  const auto run_of = [&](const Slice& slice) {
    GdnRun run;
    run.qkv = conv_rows(context, op.qkv, 0, op.recurrent_layer, slice);
    run.alpha = context.row(op.alpha, slice.first_row);
    run.beta = context.row(op.beta, slice.first_row);
    run.gate_row = context.width(op.alpha);
    run.z = context.row(op.z, slice.first_row);
    run.out = context.row(op.out, slice.first_row);
    run.value_row = context.width(op.out);
    const int64_t matrix = context.layout.matrix_offset(op.recurrent_layer);
    run.state = slice.state.recurrent + matrix;
    run.ahead = slice.state.behind_first() + matrix;
    run.pos = slice.pos;
    run.n_tokens = slice.n_tokens;
    return run;
  };
  const auto mix = [&](const Slice& slice, const GdnRun& run, const Task& task) {
    if (slice.is_decode()) {
      run_recurrence(layer, run, task, memory);
    } else {
      run_chunks(layer, run, task, memory);
    }
  };
  // The new window of a key head's channels, once nobody reads the old one any more.
  const auto leave = [&](const Slice& slice, const GdnRun& run, int key_head) {
    if (slice.state.replay != nullptr) {
      record(layer, run, key_head, slice.state.replay + scratch.replay_offset(op.recurrent_layer),
             scratch.replay_stride());
    }
    advance_windows(layer, run, key_head);
  };

  if (!splits_groups(n_groups, layer.heads_per_key, team.size())) {
    team.parallel_for(n_groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const Slice& slice = slices[group / op.n_key_heads];
        const int key_head = static_cast<int>(group % op.n_key_heads);
        const GdnRun run = run_of(slice);
        mix(slice, run, {key_head, 0, layer.heads_per_key});
        leave(slice, run, key_head);
      }
    });
    return;
  }
  team.parallel_for(n_groups * layer.heads_per_key, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Slice& slice = slices[task / op.n_value_heads];
      const int head = static_cast<int>(task % op.n_value_heads);
      const int i = head / op.n_key_heads;
      mix(slice, run_of(slice), {head % op.n_key_heads, i, i + 1});
    }
  });
  team.parallel_for(n_groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const Slice& slice = slices[group / op.n_key_heads];
      leave(slice, run_of(slice), static_cast<int>(group % op.n_key_heads));
    }
  });
}

void gdn_replay(Team& team, const Program& program, const StateLayout& layout, const op::GdnMix& op, float* recurrent,
                const float* recorded, int n_tokens, RecurrentScratch& scratch) {
  const GdnLayer layer = make_layer(team, program, op, scratch);
  GdnRun run;
  float* window = recurrent + layout.conv_offset(op.recurrent_layer);
  run.qkv = {recorded + scratch.replay_offset(op.recurrent_layer), scratch.replay_stride(), window, window, n_tokens};
  run.alpha = run.qkv.in + op.channels();
  run.beta = run.alpha + op.n_value_heads;
  run.gate_row = scratch.replay_stride();
  run.state = run.ahead = recurrent + layout.matrix_offset(op.recurrent_layer);
  run.n_tokens = n_tokens;
  float* memory = scratch.worker(team.rank()).memory.data();
  team.parallel_for(op.n_key_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int key_head = static_cast<int>(group);
      run_recurrence(layer, run, {key_head, 0, layer.heads_per_key}, memory);
      advance_windows(layer, run, key_head);
    }
  });
}

}  // namespace chimere::cpu
