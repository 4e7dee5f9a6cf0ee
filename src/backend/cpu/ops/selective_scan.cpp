#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/ops/mamba_mix.h"
#include "backend/cpu/workspace.h"

namespace chimere::cpu {
namespace {

constexpr int kScanBlock = 64;  // channels of a task; with 16 states of 64 floats, 8 KiB of state and rates

// One sequence's inputs of a scan.
struct ScanRun {
  const float *x, *dt;  // [n_tokens][channels], rows x_row and dt_row apart
  int64_t x_row, dt_row;
  const float* b;  // [n_tokens][d_state]
  int64_t b_row;
  const float* c = nullptr;  // null together with z and out when only the state is wanted
  int64_t c_row = 0;
  const float* z = nullptr;
  int64_t z_row = 0;
  float* out = nullptr;
  int64_t out_row = 0;
  float* state;  // [d_state][channels]
  float* ahead;  // where tokens behind the first leave theirs; the same as state, or SequenceView::recurrent_ahead
  int n_tokens;
};

struct ScanLayer {
  const VecKernels& v;
  const op::SelectiveScan& op;
  const float* rates;  // [d_state][channels]
  const float *d, *b_norm, *c_norm;
};

ScanLayer make_layer(const Program& program, const op::SelectiveScan& op, const RecurrentScratch& scratch) {
  const auto vector = [&](VectorId id) { return id == kNone ? nullptr : program.vectors[id].data(); };
  return {vec(), op, scratch.rates(op.recurrent_layer), vector(op.d), vector(op.b_norm), vector(op.c_norm)};
}

const float* normed(const ScanLayer& layer, const float* x, const float* norm, float* to) {
  if (norm == nullptr) return x;
  rms_norm(x, norm, layer.op.eps, layer.op.d_state, to);
  return to;
}

// Channels [first, first + n).
void run_block(const ScanLayer& layer, const ScanRun& run, int first, int n, float* memory) {
  const op::SelectiveScan& op = layer.op;
  float* b_memory = memory;
  float* c_memory = b_memory + op.d_state;
  float* step = c_memory + op.d_state;
  for (int t = 0; t < run.n_tokens; ++t) {
    const float* b = normed(layer, run.b + t * run.b_row, layer.b_norm, b_memory);
    const float* c = run.c == nullptr ? nullptr : normed(layer, run.c + t * run.c_row, layer.c_norm, c_memory);
    const float* x = run.x + t * run.x_row + first;
    float* out = run.out == nullptr ? nullptr : run.out + t * run.out_row + first;
    layer.v.softplus(n, run.dt + t * run.dt_row + first, nullptr, step);
    float* state = (t == 0 ? run.state : run.ahead) + first;
    if (t == 1 && run.ahead != run.state) {
      for (int i = 0; i < op.d_state; ++i) {
        std::copy_n(run.state + int64_t{i} * op.channels + first, n, state + int64_t{i} * op.channels);
      }
    }
    layer.v.selective_step(op.d_state, n, state, layer.rates + first, op.channels, step, x, b, c, out);
    if (out == nullptr) continue;
    for (int i = 0; i < n; ++i) out[i] += layer.d[first + i] * x[i];
    apply_gate(run.z + t * run.z_row + first, n, out);
  }
}

}  // namespace

size_t scan_worker_floats(const op::SelectiveScan& op) { return static_cast<size_t>(2 * op.d_state + kScanBlock); }

void causal_conv(Team& team, const Context& context, const op::CausalConv& op, RecurrentScratch& scratch) {
  const VecKernels& v = vec();
  const ConvWeights& conv = scratch.conv(op.recurrent_layer);
  const std::vector<Slice>& slices = context.batch.slices;
  const int64_t n_blocks = conv.n_blocks();
  // A task owns a block of channels of one sequence, window and all.
  team.parallel_for(static_cast<int64_t>(slices.size()) * n_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Slice& slice = slices[i / n_blocks];
      const int64_t block = i % n_blocks, channel = block * conv.block;
      const int64_t n = std::min<int64_t>(conv.block, op.channels - channel);
      const ConvRows rows = conv_rows(context, op.in, 0, op.recurrent_layer, slice);
      for (int t = 0; t < slice.n_tokens; ++t) {
        scratch.conv_block(v, conv, rows, t, block, team.rank(), context.row(op.out, slice.first_row + t) + channel);
        if (slice.state.replay == nullptr) continue;
        float* to = slice.state.replay + t * scratch.replay_stride() + scratch.replay_offset(op.recurrent_layer);
        std::copy_n(rows.in + t * rows.in_row + channel, n, to + channel);
      }
      advance_window(conv, rows, channel, n);
    }
  });
}

void selective_scan(Team& team, const Context& context, const op::SelectiveScan& op, RecurrentScratch& scratch) {
  const ScanLayer layer = make_layer(context.program, op, scratch);
  const std::vector<Slice>& slices = context.batch.slices;
  const int64_t n_blocks = (op.channels + kScanBlock - 1) / kScanBlock;
  float* memory = scratch.worker(team.rank()).memory.data();
  team.parallel_for(static_cast<int64_t>(slices.size()) * n_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Slice& slice = slices[i / n_blocks];
      const int first = static_cast<int>(i % n_blocks) * kScanBlock, n = std::min(kScanBlock, op.channels - first);
      ScanRun run;
      const auto rows = [&](BufferId id) { return context.row(id, slice.first_row); };
      run.x = rows(op.x), run.x_row = context.width(op.x);
      run.dt = rows(op.dt), run.dt_row = context.width(op.dt);
      run.b = rows(op.b), run.b_row = context.width(op.b);
      run.c = rows(op.c), run.c_row = context.width(op.c);
      run.z = rows(op.z) + op.z_at, run.z_row = context.width(op.z);
      run.out = rows(op.out), run.out_row = context.width(op.out);
      const int64_t matrix = context.layout.matrix_offset(op.recurrent_layer);
      run.state = slice.state.recurrent + matrix;
      run.ahead = slice.state.behind_first() + matrix;
      run.n_tokens = slice.n_tokens;
      run_block(layer, run, first, n, memory);
      if (slice.state.replay == nullptr) continue;
      for (int t = 0; t < slice.n_tokens; ++t) {
        // Behind what the conv recorded.
        float* to =
            slice.state.replay + t * scratch.replay_stride() + scratch.replay_offset(op.recurrent_layer) + op.channels;
        std::copy_n(run.x + t * run.x_row + first, n, to + first);
        std::copy_n(run.dt + t * run.dt_row + first, n, to + op.channels + first);
        if (first == 0) std::copy_n(run.b + t * run.b_row, op.d_state, to + 2 * op.channels);
      }
    }
  });
}

void conv_replay(Team& team, const StateLayout& layout, const op::CausalConv& op, float* recurrent,
                 const float* recorded, int n_tokens, RecurrentScratch& scratch) {
  float* window = recurrent + layout.conv_offset(op.recurrent_layer);
  const ConvRows rows{recorded + scratch.replay_offset(op.recurrent_layer), scratch.replay_stride(), window, window,
                      n_tokens};
  team.each([&](int rank, int) {
    if (rank == 0) advance_window(scratch.conv(op.recurrent_layer), rows, 0, op.channels);
  });
}

void scan_replay(Team& team, const Program& program, const StateLayout& layout, const op::SelectiveScan& op,
                 float* recurrent, const float* recorded, int n_tokens, RecurrentScratch& scratch) {
  const ScanLayer layer = make_layer(program, op, scratch);
  ScanRun run;
  run.x = recorded + scratch.replay_offset(op.recurrent_layer) + op.channels;
  run.dt = run.x + op.channels;
  run.b = run.dt + op.channels;
  run.x_row = run.dt_row = run.b_row = scratch.replay_stride();
  run.state = run.ahead = recurrent + layout.matrix_offset(op.recurrent_layer);
  run.n_tokens = n_tokens;
  const int64_t n_blocks = (op.channels + kScanBlock - 1) / kScanBlock;
  float* memory = scratch.worker(team.rank()).memory.data();
  team.parallel_for(n_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int first = static_cast<int>(i) * kScanBlock;
      run_block(layer, run, first, std::min(kScanBlock, op.channels - first), memory);
    }
  });
}

}  // namespace chimere::cpu
