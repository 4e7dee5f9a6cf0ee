#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/ops/mamba_mix.h"
#include "backend/cpu/workspace.h"

namespace chimere::cpu {
namespace {

constexpr int kTriangleRows = 16;  // rows of a triangular product done at once; the zeros above them are not computed
constexpr int kTasksPerWorker = 3;

// One sequence's share of a batch, or of a recording, as seen by one layer.
struct Mamba2Run {
  ConvRows xbc;     // [n_tokens][channels]
  const float* dt;  // [n_tokens][n_heads], rows dt_row apart
  int64_t dt_row;
  const float* z = nullptr;  // null together with out when only the state is wanted
  int64_t z_row = 0;
  float* out = nullptr;
  int64_t out_row = 0;
  float* replay = nullptr;
  float* state;       // [n_heads][d_state][d_head]
  float* ahead;       // where tokens behind the first leave theirs; the same as state, or SequenceView::recurrent_ahead
  float* convolved;   // [n_tokens][channels], rows convolved_row apart
  float* steps;       // [n_tokens][n_heads] time steps
  int first_row = 0;  // among the rows of all runs
  int pos = 0;
  int n_tokens;
  bool is_decode = true;
};

struct Mamba2Layer {
  const VecKernels& v;
  const op::Mamba2Mix& op;
  const ConvWeights& conv;
  int64_t convolved_row;
  const float *a, *d, *dt_bias, *norm;
};

Mamba2Layer make_layer(const Program& program, const op::Mamba2Mix& op, const RecurrentScratch& scratch) {
  return {vec(),
          op,
          scratch.conv(op.recurrent_layer),
          RecurrentScratch::convolved_row(op),
          program.vectors[op.a].data(),
          program.vectors[op.d].data(),
          program.vectors[op.dt_bias].data(),
          op.norm == kNone ? nullptr : program.vectors[op.norm].data()};
}

// Heads first .. last of one group.
struct HeadRange {
  int first, last;
};

struct Mamba2Chunk {
  Mamba2Chunk(float* memory, const op::Mamba2Mix& op) {
    const auto take = [&](int64_t n) {
      float* at = memory;
      memory += (n + 15) / 16 * 16;
      return at;
    };
    b_t = take(C * op.d_state);
    cb = take(C * C);
    masked = take(C * C);
    y = take(C * op.d_head);
    x = take(C * op.d_head);
    l_high = take(C);
    l_low = take(C);
  }
  static constexpr int64_t C = kChunkTokens;
  static size_t floats(const op::Mamba2Mix& op) {
    return static_cast<size_t>(C * op.d_state + 2 * C * C + 2 * C * op.d_head + 2 * C + 7 * 16);
  }
  float* b_t;     // [d_state][n]
  float* cb;      // [n][n] lower triangle of C B^T
  float* masked;  // [n][n]
  float* y;       // [n][d_head]
  float* x;       // [n][d_head] times dt
  float* l_high;  // [n] running sum of dt a, in two floats
  float* l_low;
};

void run_recurrence(const Mamba2Layer& layer, const Mamba2Run& run, const HeadRange& task, float* memory) {
  const op::Mamba2Mix& op = layer.op;
  const int p = op.d_head, n = op.d_state;
  float* input = memory;
  for (int t = 0; t < run.n_tokens; ++t) {
    const float* row = run.convolved + t * layer.convolved_row;
    const float* b = row + op.d_inner() + int64_t{op.group(task.first)} * n;
    const float* c = b + int64_t{op.n_groups} * n;
    for (int h = task.first; h < task.last; ++h) {
      const float dt = run.steps[int64_t{t} * op.n_heads + h];
      const float* x = row + int64_t{h} * p;
      float* out = run.out == nullptr ? nullptr : run.out + t * run.out_row + int64_t{h} * p;
      float* state = (t == 0 ? run.state : run.ahead) + int64_t{h} * n * p;
      if (t == 1 && run.ahead != run.state) std::copy_n(run.state + int64_t{h} * n * p, int64_t{n} * p, state);
      layer.v.scale(p, dt, x, input);
      layer.v.decay_step(n, p, state, c, b, input, std::exp(dt * layer.a[h]), out);
      if (out != nullptr) layer.v.multiply_add(p, layer.d[h], x, out);
    }
  }
}

void run_chunk_head(const Mamba2Layer& layer, const Mamba2Run& run, int first, int n, int head, const float* b,
                    const float* c, const Mamba2Chunk& m) {
  const op::Mamba2Mix& op = layer.op;
  const int p = op.d_head, ns = op.d_state;
  const int64_t row = layer.convolved_row;
  float* state = run.state + int64_t{head} * ns * p;
  const float* x = run.convolved + first * row + int64_t{head} * p;
  double sum = 0;
  layer.v.matmul(n, p, ns, c, row, 1, state, p, m.y, p, false);
  for (int t = 0; t < n; ++t) {
    const float dt = run.steps[int64_t{first + t} * op.n_heads + head];
    sum += dt * layer.a[head];
    m.l_high[t] = static_cast<float>(sum);
    m.l_low[t] = static_cast<float>(sum - m.l_high[t]);
    layer.v.scale(p, std::exp(m.l_high[t]), m.y + t * p, m.y + t * p);
    layer.v.scale(p, dt, x + t * row, m.x + t * p);
    const float l[2] = {m.l_high[t], m.l_low[t]};
    layer.v.decay_mul(t + 1, 1.0f, l, m.l_high, m.l_low, m.cb + t * n, m.masked + t * n);
    const int block_end = std::min(n, t / kTriangleRows * kTriangleRows + kTriangleRows);
    std::fill(m.masked + t * n + t + 1, m.masked + t * n + block_end, 0.0f);
  }
  for (int i = 0; i < n; i += kTriangleRows) {
    const int rows = std::min(kTriangleRows, n - i);
    layer.v.matmul(rows, p, i + rows, m.masked + i * n, n, 1, m.x, p, m.y + i * p, p, true);
  }
  for (int t = 0; t < n; ++t) {
    float* out = run.out + (first + t) * run.out_row + int64_t{head} * p;
    std::memcpy(out, m.y + t * p, static_cast<size_t>(p) * sizeof(float));
    layer.v.multiply_add(p, layer.d[head], x + t * row, out);
    const double rest = sum - m.l_high[t] - m.l_low[t];
    layer.v.scale(p, std::exp(static_cast<float>(rest)), m.x + t * p, m.x + t * p);
  }
  layer.v.scale(ns * p, static_cast<float>(std::exp(sum)), state, state);
  layer.v.matmul(ns, p, n, b, 1, row, m.x, p, state, p, true);
}

void run_chunks(const Mamba2Layer& layer, const Mamba2Run& run, const HeadRange& task, float* memory) {
  const op::Mamba2Mix& op = layer.op;
  const Mamba2Chunk m(memory, op);
  const int64_t row = layer.convolved_row;
  for (int first = 0; first < run.n_tokens;) {
    const int to_grid = kChunkTokens - (run.pos + first) % kChunkTokens;
    const int n = std::min(to_grid, run.n_tokens - first);
    const float* b = run.convolved + first * row + op.d_inner() + int64_t{op.group(task.first)} * op.d_state;
    const float* c = b + int64_t{op.n_groups} * op.d_state;
    layer.v.transpose(n, op.d_state, b, row, m.b_t, n);
    for (int i = 0; i < n; i += kTriangleRows) {
      const int rows = std::min(kTriangleRows, n - i);
      layer.v.matmul(rows, i + rows, op.d_state, c + i * row, row, 1, m.b_t, n, m.cb + i * n, n, false);
    }
    for (int h = task.first; h < task.last; ++h) run_chunk_head(layer, run, first, n, h, b, c, m);
    first += n;
  }
}

// The new window of a run, once nobody reads the old one any more.
void leave(const Mamba2Layer& layer, const Mamba2Run& run, int64_t replay_stride) {
  const op::Mamba2Mix& op = layer.op;
  if (run.replay != nullptr) {
    for (int t = 0; t < run.n_tokens; ++t) {
      float* to = run.replay + t * replay_stride;
      std::copy_n(run.xbc.in + t * run.xbc.in_row, op.channels(), to);
      std::copy_n(run.dt + t * run.dt_row, op.n_heads, to + op.channels());
    }
  }
  advance_window(layer.conv, run.xbc, 0, op.channels());
}

void finish_group(const Mamba2Layer& layer, const Mamba2Run& run, int t, int group) {
  const int n = layer.op.d_inner() / layer.op.n_groups;
  const int64_t at = int64_t{group} * n;
  float* out = run.out + t * run.out_row + at;
  apply_gate(run.z + t * run.z_row + at, n, out);
  if (layer.norm == nullptr) return;
  const float scale = 1.0f / std::sqrt(layer.v.sum_squares(n, out) / static_cast<float>(n) + layer.op.eps);
  layer.v.scale_mul(n, scale, out, layer.norm + at, out);
}

// All phases over `n_runs` runs whose rows follow each other: run_of(i) gives them, run_at(row) which one has that row.
template <class RunOf, class RunAt>
void run_all(Team& team, const Mamba2Layer& layer, int64_t n_runs, int64_t n_rows, const RunOf& run_of,
             const RunAt& run_at, RecurrentScratch& scratch) {
  const op::Mamba2Mix& op = layer.op;
  const int64_t n_blocks = layer.conv.n_blocks();
  const auto at_row = [&](int64_t row, const auto& work) {
    const Mamba2Run run = run_of(run_at(row));
    work(run, static_cast<int>(row) - run.first_row);
  };
  team.parallel_for(n_rows * n_blocks, n_rows > kDecodeTokens ? n_blocks : 8, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / n_blocks, block = begin % n_blocks;
      const int64_t last = std::min(n_blocks, block + end - begin);
      at_row(row, [&](const Mamba2Run& run, int t) {
        float* out = run.convolved + t * layer.convolved_row;
        for (int64_t i = block; i < last; ++i) {
          scratch.conv_block(layer.v, layer.conv, run.xbc, t, i, team.rank(), out + i * layer.conv.block);
        }
        if (block == 0) {
          layer.v.softplus(op.n_heads, run.dt + t * run.dt_row, layer.dt_bias, run.steps + int64_t{t} * op.n_heads);
        }
      });
      begin += last - block;
    }
  });

  // Heads of a group share C B^T, so tasks are as large as still keeps everybody busy.
  const int per_group = op.n_heads / op.n_groups;
  const int64_t wanted = int64_t{kTasksPerWorker} * team.size();
  int split = 1;  // tasks of a group
  while (split < per_group && n_runs * op.n_groups * split < wanted) ++split;
  const int64_t tasks_of_run = int64_t{op.n_groups} * split;
  float* memory = scratch.worker(team.rank()).memory.data();
  team.parallel_for(n_runs * (tasks_of_run + 1), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Mamba2Run run = run_of(i % n_runs);
      const int64_t task = i / n_runs;
      if (task == tasks_of_run) {
        leave(layer, run, scratch.replay_stride());
        continue;
      }
      const int first_head = static_cast<int>(task / split) * per_group, part = static_cast<int>(task % split);
      const HeadRange heads{first_head + part * per_group / split, first_head + (part + 1) * per_group / split};
      if (run.is_decode) {
        run_recurrence(layer, run, heads, memory);
      } else {
        run_chunks(layer, run, heads, memory);
      }
    }
  });

  if (n_runs == 0 || run_of(0).out == nullptr) return;
  team.parallel_for(n_rows * op.n_groups, n_rows > kDecodeTokens ? op.n_groups : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      at_row(i / op.n_groups,
             [&](const Mamba2Run& run, int t) { finish_group(layer, run, t, static_cast<int>(i % op.n_groups)); });
    }
  });
}

}  // namespace

size_t mamba2_worker_floats(const op::Mamba2Mix& op) { return Mamba2Chunk::floats(op); }

void mamba2_mix(Team& team, const Context& context, const op::Mamba2Mix& op, RecurrentScratch& scratch) {
  const Mamba2Layer layer = make_layer(context.program, op, scratch);
  const std::vector<Slice>& slices = context.batch.slices;
  const auto run_of = [&](int64_t i) {
    const Slice& slice = slices[i];
    const float* in = context.row(op.in, slice.first_row);
    const int64_t in_row = context.width(op.in);
    Mamba2Run run;
    run.xbc = conv_rows(context, op.in, op.d_inner(), op.recurrent_layer, slice);
    run.dt = in + op.d_inner() + op.channels();
    run.dt_row = in_row;
    run.z = in;
    run.z_row = in_row;
    run.out = context.row(op.out, slice.first_row);
    run.out_row = context.width(op.out);
    if (slice.state.replay != nullptr) run.replay = slice.state.replay + scratch.replay_offset(op.recurrent_layer);
    const int64_t matrix = context.layout.matrix_offset(op.recurrent_layer);
    run.state = slice.state.recurrent + matrix;
    run.ahead = slice.state.behind_first() + matrix;
    run.convolved = scratch.convolved() + slice.first_row * layer.convolved_row;
    run.steps = scratch.steps() + int64_t{slice.first_row} * op.n_heads;
    run.first_row = slice.first_row;
    run.pos = slice.pos;
    run.n_tokens = slice.n_tokens;
    run.is_decode = slice.is_decode();
    return run;
  };
  const auto run_at = [&](int64_t row) {
    const auto after = std::upper_bound(slices.begin(), slices.end(), row,
                                        [](int64_t r, const Slice& slice) { return r < slice.first_row; });
    return static_cast<int64_t>(after - slices.begin()) - 1;
  };
  run_all(team, layer, static_cast<int64_t>(slices.size()), context.batch.n_rows(), run_of, run_at, scratch);
}

void mamba2_replay(Team& team, const Program& program, const StateLayout& layout, const op::Mamba2Mix& op,
                   float* recurrent, const float* recorded, int n_tokens, RecurrentScratch& scratch) {
  const Mamba2Layer layer = make_layer(program, op, scratch);
  const float* record = recorded + scratch.replay_offset(op.recurrent_layer);
  for (int done = 0; done < n_tokens; done += scratch.max_rows()) {
    Mamba2Run run;
    const float* first = record + done * scratch.replay_stride();
    run.n_tokens = std::min(scratch.max_rows(), n_tokens - done);
    float* window = recurrent + layout.conv_offset(op.recurrent_layer);
    run.xbc = {first, scratch.replay_stride(), window, window, run.n_tokens};
    run.dt = first + op.channels();
    run.dt_row = scratch.replay_stride();
    run.state = run.ahead = recurrent + layout.matrix_offset(op.recurrent_layer);
    run.convolved = scratch.convolved();
    run.steps = scratch.steps();
    run_all(
        team, layer, 1, run.n_tokens, [&](int64_t) { return run; }, [](int64_t) { return int64_t{0}; }, scratch);
  }
}

}  // namespace chimere::cpu
