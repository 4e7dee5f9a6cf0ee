// mamba2.cu  Mamba-2: conv + SiLU, decay, update, output, D skip, SiLU(z) gate and grouped RMSNorm, of prompts and of
//           shapes without a tuned kernel (mamba2_decode.cu has the others)
// Shapes    z, out [rows, d_inner], xbc [rows, d_inner + 2 n_groups d_state], dt [rows, n_heads], all f32; state
//           [n_heads][d_state][d_head] and conv window [taps - 1][channels] f32 in the slice's blob
// Bytes     a slice: 8 n_heads d_state d_head (state read and written once whatever the number of tokens) + rows;
//           4.2 MB for 64 heads of 64 x 128
// Launch    d_state = 128, 256, d_head % 32 = 0, four taps: grid (d_inner / 32, slices), block 256: a block owns 32
//           columns of one head, a warp an eighth of the rows, whole lines of them; tokens in tiles of 16 whose conv is
//           staged in shared memory (at most 50 KiB). Else: grid (n_heads, slices), block 128, the state stays in
//           memory. The norm is a launch of its own.
// Order     All blocks of a group read B and C; the last of them to arrive shifts their window.
// Numerics  f32; a token's sums have one order for every pass and every number of tokens
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/common/head_squares.h"
#include "backend/cuda/kernels/recurrence/mamba2_decode.h"
#include "backend/cuda/kernels/recurrence/mamba2_device.h"
#include "backend/cuda/kernels/recurrence/quarter_sums.h"
#include "base/check.h"

namespace chimere::cuda {
namespace mamba2 {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = 32;  // of a block
constexpr int kTile = 16;     // tokens
constexpr int kAnyThreads = 128;
constexpr int kNormThreads = 128;

__device__ __forceinline__ float silu_of(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

// Raw input of a channel `at` tokens after the slice's first; before it, from the window.
__device__ __forceinline__ float conv_input(const Mamba2Args& p, const DeviceSlice& slice, int at, int channel) {
  if (at >= 0) return p.xbc[(slice.first_row + at) * p.in_stride + channel];
  return slice.recurrent[p.conv_offset + int64_t{at + p.taps - 1} * p.channels() + channel];
}

// Conv and SiLU of one channel of token t, the newest tap last.
__device__ __forceinline__ float conv_silu(const Mamba2Args& p, const DeviceSlice& slice, int t, int channel) {
  const float* w = p.conv + int64_t{channel} * p.taps;
  float sum = p.conv_bias != nullptr ? p.conv_bias[channel] : 0.0f;
  for (int j = 0; j < p.taps; ++j) sum = fmaf(w[j], conv_input(p, slice, t + j - (p.taps - 1), channel), sum);
  return silu_of(sum);
}

// The last taps - 1 inputs of a channel become its window. Rows move towards older places only: ascending is safe.
__device__ __forceinline__ void advance_window(const Mamba2Args& p, const DeviceSlice& slice, int channel) {
  float* window = slice.recurrent + p.conv_offset + channel;
  for (int i = 0; i < p.taps - 1; ++i) {
    window[int64_t{i} * p.channels()] = conv_input(p, slice, slice.n_tokens - (p.taps - 1) + i, channel);
  }
}

// Keeps the raw inputs of all tokens: columns [first, first + n) of x, B and C by the group's first block, the time
// step by the head's.
__device__ __forceinline__ void record_inputs(const Mamba2Args& p, const DeviceSlice& slice, int first, int n,
                                              bool leads_group, int head, bool leads_head) {
  const int tid = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int group = head / (p.n_heads / p.n_groups);
  for (int t = 0; t < slice.n_tokens; ++t) {
    float* record = replay_record(p, slice, t);
    for (int i = tid; i < n; i += threads) record[first + i] = conv_input(p, slice, t, first + i);
    for (int i = tid; leads_group && i < 2 * p.d_state; i += threads) {
      const int channel = bc_channel(p, group, i);
      record[channel] = conv_input(p, slice, t, channel);
    }
    if (leads_head && tid == 0) record[p.channels() + head] = p.dt[(slice.first_row + t) * p.in_stride + head];
  }
}

// Weights of a conv of four taps.
struct Taps {
  float bias, w[4];

  __device__ __forceinline__ void load(const Mamba2Args& p, int channel) {
    const float4 four = *reinterpret_cast<const float4*>(p.conv + int64_t{channel} * 4);
    w[0] = four.x, w[1] = four.y, w[2] = four.z, w[3] = four.w;
    bias = p.conv_bias != nullptr ? p.conv_bias[channel] : 0.0f;
  }
  // In the order of conv_silu.
  __device__ __forceinline__ float silu(float a, float b, float c, float newest) const {
    return silu_of(fmaf(w[3], newest, fmaf(w[2], c, fmaf(w[1], b, fmaf(w[0], a, bias)))));
  }
};

// Raw inputs of a tile that a thread has asked for.
template <int kState>
struct RawInputs {
  static constexpr int kKept = 2 * kState / kThreads;  // channels of B and C of a thread
  static constexpr int kTurns = kTile / kWarps;        // tokens of a tile of which a warp has the x
  float bc[kKept][kTile], x[kTurns][4], z[kTurns], dt;
};

// The taps and the window: a thread has the same channels of B and C for all tokens, and one column of x for some of
// them.
template <int kState>
__device__ __forceinline__ void load_past(const Mamba2Args& p, const DeviceSlice& slice, int group, int x_channel,
                                          int tid, int warp, Taps (&bc_taps)[RawInputs<kState>::kKept],
                                          float (&past)[RawInputs<kState>::kKept][3], Taps& x_taps,
                                          RawInputs<kState>& raw) {
  const float* window = slice.recurrent + p.conv_offset;
#pragma unroll
  for (int i = 0; i < RawInputs<kState>::kKept; ++i) {
    const int channel = bc_channel(p, group, tid + i * kThreads);
    bc_taps[i].load(p, channel);
#pragma unroll
    for (int j = 0; j < 3; ++j) past[i][j] = window[int64_t{j} * p.channels() + channel];
  }
  x_taps.load(p, x_channel);
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    raw.x[0][j] = warp + j < 3 ? window[int64_t{warp + j} * p.channels() + x_channel] : 0.0f;
  }
}

// The tokens of a tile go through a block in three steps: raw inputs are asked for (while the tile before is worked
// on), the conv is staged in shared memory, the recurrence runs.
template <int kState>
struct Mix {
  static constexpr int kRows = kState / 32;  // of a lane: a warp has an eighth of the rows, four at a time
  static constexpr int kKept = RawInputs<kState>::kKept, kTurns = RawInputs<kState>::kTurns;
  const Mamba2Args& p;
  const DeviceSlice& slice;
  int tid, lane, warp;
  int head, group, x_channel;
  int tile_tokens;
  const float* rows;      // of xbc
  int column, first_row;  // a lane owns four columns of every fourth row of its warp's
  float* bc;              // [t][B | C], in shared memory like the next
  float* xs;              // [t][kColumns]
  float* steps;           // [t][time step, decay, nothing, nothing]
  float* parts;           // [t][warp][kColumns]

  // Starts loading the tile from token `begin` on.
  __device__ void ask_for(int begin, RawInputs<kState>& raw) const {
    const int n = min(tile_tokens, slice.n_tokens - begin);
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      const float* from = rows + begin * p.in_stride + bc_channel(p, group, tid + i * kThreads);
#pragma unroll
      for (int t = 0; t < kTile; ++t) {
        if (t < n) raw.bc[i][t] = from[t * p.in_stride];
      }
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int t = turn * kWarps + warp;
      if (t >= n) continue;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = begin + t + j - 3;
        if (at >= 0) raw.x[turn][j] = rows[at * p.in_stride + x_channel];
      }
      raw.z[turn] = p.z[(slice.first_row + begin + t) * p.in_stride + x_channel];
    }
    if (tid < n) raw.dt = p.dt[(slice.first_row + begin + tid) * p.in_stride + head];
  }

  // The conv of B, C and x of n tokens, and their time steps. z is kept for the outputs.
  __device__ __forceinline__ void stage(int n, const RawInputs<kState>& raw, const Taps (&bc_taps)[kKept],
                                        float (&past)[kKept][3], const Taps& x_taps, float (&z)[kTurns], float a,
                                        float dt_bias) const {
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
#pragma unroll
      for (int t = 0; t < kTile; ++t) {
        if (t >= n) break;
        const float newest = raw.bc[i][t];
        bc[t * 2 * kState + tid + i * kThreads] = bc_taps[i].silu(past[i][0], past[i][1], past[i][2], newest);
        past[i][0] = past[i][1], past[i][1] = past[i][2], past[i][2] = newest;
      }
    }
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int t = turn * kWarps + warp;
      const float(&x)[4] = raw.x[turn];
      z[turn] = raw.z[turn];
      if (t < n) xs[t * kColumns + lane] = x_taps.silu(x[0], x[1], x[2], x[3]);
    }
    if (tid < n) {
      const float step = softplus(raw.dt + dt_bias);
      steps[4 * tid] = step;
      steps[4 * tid + 1] = expf(step * a);
    }
  }

  // The last inputs of the last tile, of n tokens, become the window of x. Nobody else reads this part of the window,
  // and all warps have what they need of it.
  __device__ __forceinline__ void store_value_window(bool is_last, int n, const RawInputs<kState>& raw) const {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if (!is_last || turn * kWarps + warp != n - 1) continue;
      float* to = slice.recurrent + p.conv_offset + x_channel;
      to[0] = raw.x[turn][1];
      to[p.channels()] = raw.x[turn][2];
      to[2 * int64_t{p.channels()}] = raw.x[turn][3];
    }
  }

  // S <- decay S + B (step x)^T;   y = S^T C   of token t
  __device__ __forceinline__ void recur(int t, float4 (&s)[kRows]) const {
    const float2 step = *reinterpret_cast<const float2*>(steps + 4 * t);  // and the decay
    const float4 x = *reinterpret_cast<const float4*>(xs + t * kColumns + column);
    const float4 added = make_float4(step.x * x.x, step.x * x.y, step.x * x.z, step.x * x.w);
    const float* b = bc + t * 2 * kState + first_row;
    float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float b_row = b[4 * i], c_row = b[kState + 4 * i];
      s[i].x = fmaf(b_row, added.x, step.y * s[i].x);
      s[i].y = fmaf(b_row, added.y, step.y * s[i].y);
      s[i].z = fmaf(b_row, added.z, step.y * s[i].z);
      s[i].w = fmaf(b_row, added.w, step.y * s[i].w);
      y.x = fmaf(s[i].x, c_row, y.x);
      y.y = fmaf(s[i].y, c_row, y.y);
      y.z = fmaf(s[i].z, c_row, y.z);
      y.w = fmaf(s[i].w, c_row, y.w);
    }
    parts[t * kThreads + warp * kColumns + column + kept_quarter(lane)] = sum_quarters(y, lane);
  }

  // A warp finishes a token, a lane a column.
  __device__ __forceinline__ void finish(int begin, int n, const float (&z)[kTurns], float skip) const {
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int t = turn * kWarps + warp;
      if (t >= n) continue;
      const int64_t row = slice.first_row + begin + t;
      const float* part = parts + t * kThreads + lane;
      float y = 0.0f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) y += part[w * kColumns];
      p.out[row * p.out_stride + x_channel] = fmaf(skip, xs[t * kColumns + lane], y) * silu_of(z[turn]);
    }
  }
};

template <int kState>
__global__ void __launch_bounds__(kThreads, 2) mix_kernel(Mamba2Args p) {
  constexpr int kRows = Mix<kState>::kRows, kKept = Mix<kState>::kKept, kTurns = Mix<kState>::kTurns;
  SIMT_SHARED(int, last, 1);
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x), first_column = block * kColumns, head = first_column / p.d_head;
  const int group = head / (p.n_heads / p.n_groups), group_blocks = p.d_inner() / p.n_groups / kColumns;
  const DeviceSlice slice = p.batch.slices[blockIdx.y];
  const int n_tokens = slice.n_tokens;
  if (n_tokens == 0) {
    simt::wait_for_previous();
    return;
  }
  const int tile_tokens = min(p.max_tokens, kTile);
  float* bc = simt::dynamic_shared<float>();
  float* xs = bc + tile_tokens * 2 * kState;
  float* steps = xs + tile_tokens * kColumns;
  float* parts = steps + tile_tokens * 4;
  const int column = lane % 8 * 4, first_row = warp * (kState / kWarps) + lane / 8;
  float* state = slice.recurrent + p.matrix_offset + (int64_t{head} * kState + first_row) * p.d_head +
                 (first_column % p.d_head + column);
  float4 s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = *reinterpret_cast<const float4*>(state + int64_t{4 * i} * p.d_head);
  Taps bc_taps[kKept], x_taps;
  float past[kKept][3];
  RawInputs<kState> raw;
  raw.dt = 0.0f;
  const int x_channel = first_column + lane;
  load_past<kState>(p, slice, group, x_channel, tid, warp, bc_taps, past, x_taps, raw);
  const float a = p.a[head], dt_bias = p.dt_bias[head], skip = p.d[head];
  simt::wait_for_previous();
  simt::allow_next();

  const float* rows = p.xbc + slice.first_row * p.in_stride;
  const Mix<kState> mix{p,           slice, tid,    lane,      warp, head, group, x_channel,
                        tile_tokens, rows,  column, first_row, bc,   xs,   steps, parts};
  mix.ask_for(0, raw);
  if (slice.replay != nullptr) {
    record_inputs(p, slice, first_column, kColumns, block % group_blocks == 0, head, first_column % p.d_head == 0);
  }
  for (int begin = 0; begin < n_tokens; begin += tile_tokens) {
    const int n = min(tile_tokens, n_tokens - begin);
    const bool is_last = begin + n == n_tokens;
    float z[kTurns];
    mix.stage(n, raw, bc_taps, past, x_taps, z, a, dt_bias);
    __syncthreads();
    mix.store_value_window(is_last, n, raw);
    if (!is_last) mix.ask_for(begin + n, raw);
#pragma unroll 2
    for (int t = 0; t < n; ++t) mix.recur(t, s);
    __syncthreads();
    mix.finish(begin, n, z, skip);
    if (!is_last) __syncthreads();
  }

  // The last block of the group finds the windows of B and C read.
  __threadfence();
  __syncthreads();
  if (tid == 0) {
    int32_t* counter = p.arrivals + static_cast<int>(blockIdx.y) * p.n_groups + group;
    last[0] = atomicAdd(counter, 1) == group_blocks - 1 ? 1 : 0;
    if (last[0] != 0) *counter = 0;
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) *reinterpret_cast<float4*>(state + int64_t{4 * i} * p.d_head) = s[i];
  __syncthreads();
  if (last[0] == 0) return;
  __threadfence();
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    float* to = slice.recurrent + p.conv_offset + bc_channel(p, group, tid + i * kThreads);
#pragma unroll
    for (int j = 0; j < 3; ++j) to[int64_t{j} * p.channels()] = past[i][j];
  }
}

// Any size, with the state in memory: the path of shapes that nobody has tuned.
__global__ void __launch_bounds__(kAnyThreads) any_size_kernel(Mamba2Args p, DeviceSlice own) {
  SIMT_SHARED(int, last, 1);
  float* x = simt::dynamic_shared<float>();  // [d_head]
  float* bc = x + p.d_head;                  // [B | C]
  const int head = static_cast<int>(blockIdx.x), tid = static_cast<int>(threadIdx.x);
  const int group_heads = p.n_heads / p.n_groups, group = head / group_heads;
  simt::wait_for_previous();
  simt::allow_next();
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  if (slice.n_tokens == 0) return;
  float* state = slice.recurrent + p.matrix_offset + int64_t{head} * p.d_state * p.d_head;
  if (slice.replay != nullptr) {
    record_inputs(p, slice, head * p.d_head, p.d_head, head % group_heads == 0, head, true);
  }
  for (int t = 0; t < slice.n_tokens; ++t) {
    const int64_t row = slice.first_row + t;
    for (int i = tid; i < p.d_head; i += kAnyThreads) x[i] = conv_silu(p, slice, t, head * p.d_head + i);
    for (int i = tid; i < 2 * p.d_state; i += kAnyThreads) bc[i] = conv_silu(p, slice, t, bc_channel(p, group, i));
    __syncthreads();
    const float step = softplus(p.dt[row * p.in_stride + head] + p.dt_bias[head]), decay = expf(step * p.a[head]);
    for (int i = tid; i < p.d_head; i += kAnyThreads) {
      float y = 0.0f;
      for (int j = 0; j < p.d_state; ++j) {
        const float updated = fmaf(bc[j], step * x[i], decay * state[j * p.d_head + i]);
        state[j * p.d_head + i] = updated;
        y = fmaf(updated, bc[p.d_state + j], y);
      }
      if (p.out != nullptr) {
        const int at = head * p.d_head + i;
        p.out[row * p.out_stride + at] = fmaf(p.d[head], x[i], y) * silu_of(p.z[row * p.in_stride + at]);
      }
    }
    __syncthreads();
  }
  __threadfence();
  __syncthreads();
  if (tid == 0) {
    int32_t* counter = p.arrivals + static_cast<int>(blockIdx.y) * p.n_groups + group;
    last[0] = atomicAdd(counter, 1) == group_heads - 1 ? 1 : 0;
    if (last[0] != 0) *counter = 0;
  }
  __syncthreads();
  for (int i = tid; i < p.d_head; i += kAnyThreads) advance_window(p, slice, head * p.d_head + i);
  for (int i = tid; last[0] != 0 && i < 2 * p.d_state; i += kAnyThreads) {
    advance_window(p, slice, bc_channel(p, group, i));
  }
}

// out[row] <- RMSNorm of each group, in place.
__global__ void __launch_bounds__(kNormThreads) norm_kernel(Mamba2Args p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int width = p.d_inner() / p.n_groups, first = static_cast<int>(blockIdx.y) * width;
  float* out = p.out + static_cast<int64_t>(blockIdx.x) * p.out_stride + first;
  float squares = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kNormThreads) squares = fmaf(out[i], out[i], squares);
  const float inverse = 1.0f / sqrtf(simt::block_sum(squares) / static_cast<float>(width) + p.eps);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kNormThreads)
    out[i] = out[i] * inverse * p.norm[first + i];
}

Status launch_any_size(const Stream& stream, const Mamba2Args& args, const DeviceSlice& own, int n_slices) {
  const dim3 grid(static_cast<unsigned>(args.n_heads), static_cast<unsigned>(n_slices));
  const size_t bytes = static_cast<size_t>(args.d_head + 2 * args.d_state) * sizeof(float);
  return simt::launch(any_size_kernel, {grid, kAnyThreads, bytes, stream, args.dependent}, args, own);
}

// The outputs of all slices, gated but not under the norm.
Status launch_mix(const Stream& stream, const Mamba2Args& args) {
  if (!has_fast_path(args)) return launch_any_size(stream, args, DeviceSlice{}, args.batch.n_slices);
  const size_t of_token = static_cast<size_t>(2 * args.d_state + kColumns + 4 + kThreads) * sizeof(float);
  const size_t bytes = of_token * static_cast<size_t>(min(args.max_tokens, kTile));
  const dim3 grid(static_cast<unsigned>(args.d_inner() / kColumns), static_cast<unsigned>(args.batch.n_slices));
  const simt::Launch at{grid, kThreads, bytes, stream, args.dependent};
  return args.d_state == 128 ? simt::launch(mix_kernel<128>, at, args) : simt::launch(mix_kernel<256>, at, args);
}

Status launch_norm(const Stream& stream, const Mamba2Args& args) {
  const dim3 grid(static_cast<unsigned>(args.batch.n_rows), static_cast<unsigned>(args.n_groups));
  return simt::launch(norm_kernel, {grid, kNormThreads, 0, stream, args.dependent}, args);
}

Status decode(const Stream& stream, const Mamba2Args& args) {
  if (args.norm == nullptr || mamba2_can_leave_norm(args)) {
    TRY(launch_fast_decode(stream, args, DeviceSlice{}, args.batch.n_slices));
    if (args.norm == nullptr || args.leave_norm) return Ok{};
    return finish_heads(stream, {.batch = args.batch,
                                 .max_tokens = args.max_tokens,
                                 .x = args.out,
                                 .stride = args.out_stride,
                                 .squares = args.scratch,
                                 .width = args.d_inner(),
                                 .head_width = args.group_width(),
                                 .eps = args.eps,
                                 .dependent = args.dependent});
  }
  Mamba2Args without = args;
  without.norm = nullptr;
  TRY(launch_fast_decode(stream, without, DeviceSlice{}, args.batch.n_slices));
  return launch_norm(stream, args);
}

}  // namespace
}  // namespace mamba2

bool mamba2_can_leave_norm(const Mamba2Args& layer) {
  return mamba2::has_fast_path(layer) && can_leave_heads(layer.group_width());
}

int64_t mamba2_arrivals(const Mamba2Args& layer, int max_slices) { return int64_t{max_slices} * layer.n_groups; }

int64_t mamba2_scratch_floats(const Mamba2Args& layer, int max_decode_rows) {
  return mamba2_can_leave_norm(layer) ? int64_t{max_decode_rows} * (layer.d_inner() / kSquaresColumns) : 0;
}

uint64_t mamba2_bytes(const Mamba2Args& layer, int n_slices, int n_rows) {
  const uint64_t state = uint64_t(layer.d_inner()) * layer.d_state;
  const uint64_t window = uint64_t(layer.taps - 1) * layer.channels();
  const uint64_t row = uint64_t(layer.channels()) + 2 * layer.d_inner() + layer.n_heads;
  return sizeof(float) * (2 * n_slices * (state + window) + n_rows * row);
}

Status mamba2_mix(const Stream& stream, const Mamba2Args& args) {
  CHECK(args.n_heads % args.n_groups == 0 && args.taps >= 1 && args.max_tokens >= 1);
  if (args.is_decode && mamba2::has_fast_path(args)) return mamba2::decode(stream, args);
  TRY(mamba2::launch_mix(stream, args));
  return args.norm != nullptr ? mamba2::launch_norm(stream, args) : Ok{};
}

Status mamba2_replay(const Stream& stream, const Mamba2Args& args, float* recurrent, const float* recorded,
                     int n_tokens) {
  Mamba2Args one = args;
  one.batch = {};
  one.out = nullptr;
  one.z = nullptr;
  one.in_stride = args.replay_stride;
  one.dependent = false;
  DeviceSlice slice{};
  slice.recurrent = recurrent;
  for (int first = 0; first < n_tokens; first += mamba2::kMaxDecodeTokens) {
    one.xbc = recorded + first * args.replay_stride + args.replay_offset;
    one.dt = one.xbc + args.channels();
    one.max_tokens = slice.n_tokens = min(n_tokens - first, mamba2::kMaxDecodeTokens);
    TRY(mamba2::has_fast_path(one) ? mamba2::launch_fast_decode(stream, one, slice, 1)
                                   : mamba2::launch_any_size(stream, one, slice, 1));
  }
  return Ok{};
}

}  // namespace chimere::cuda
