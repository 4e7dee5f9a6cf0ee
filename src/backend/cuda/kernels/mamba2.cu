// mamba2.cu  Mamba-2: conv + SiLU, decay, update, output, D skip, SiLU(z) gate and grouped RMSNorm.
// Shapes    z, out [rows, d_inner], xbc [rows, d_inner + 2 n_groups d_state], dt [rows, n_heads], all f32; state
//           [n_heads][d_state][d_head] and conv window [taps - 1][channels] f32 in the slice's blob
// Bytes     a slice: 8 n_heads d_state d_head (state read and written once whatever the number of tokens) + rows;
//           4.2 MB for 64 heads of 64 x 128
// Launch    d_state = 128, 256 and d_head % 32 = 0: grid (d_inner / 32, slices), block 256: a block owns 32 columns of
//           one head, a warp an eighth of the rows, whole lines of them; tokens in tiles of 16 whose conv is staged in
//           shared memory (at most 50 KiB). Else: grid (n_heads, slices), block 128, the state stays in memory.
// Order     The state, the conv weights and the window do not depend on the kernel before: they are read before waiting
//           for it. B and C are read by all blocks of a group: the last of them to arrive moves their window on.
// Numerics  f32; a token's sums have one order for every pass and every number of tokens
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/mamba2.h"

#include "base/check.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = 32;  // of a block
constexpr int kTile = 16;     // tokens
constexpr int kAnyThreads = 128;
constexpr int kNormThreads = 128;

__device__ __forceinline__ float silu_of(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

__device__ __forceinline__ DeviceSlice slice_of(const Mamba2Args& p, const DeviceSlice& own, int i) {
  return p.batch.slices != nullptr ? p.batch.slices[i] : own;
}

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

__device__ __forceinline__ float* replay_record(const Mamba2Args& p, const DeviceSlice& slice, int t) {
  return slice.replay + t * p.replay_stride + p.replay_offset;
}

// Channel of element i of [B | C] of a group.
__device__ __forceinline__ int bc_channel(const Mamba2Args& p, int group, int i) {
  const int first =
      i < p.d_state ? p.d_inner() + group * p.d_state : p.d_inner() + (p.n_groups + group - 1) * p.d_state;
  return first + i;
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

// What a thread knows of a channel before the newest input is there: with the usual four taps, the window in
// registers, so that it can be moved on without being read again.
struct ConvAhead {
  float past[3];
  float older = 0.0f, newest = 0.0f;

  __device__ __forceinline__ void load(const Mamba2Args& p, const DeviceSlice& slice, int channel) {
    const float* w = p.conv + int64_t{channel} * p.taps;
    const float* window = slice.recurrent + p.conv_offset + channel;
    older = p.conv_bias != nullptr ? p.conv_bias[channel] : 0.0f;
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      past[j] = window[int64_t{j} * p.channels()];
      older = fmaf(w[j], past[j], older);
    }
    newest = w[3];
  }
  // Of the first token, as conv_silu has it.
  __device__ __forceinline__ float first(float input) const { return silu_of(fmaf(newest, input, older)); }
  __device__ __forceinline__ void advance(const Mamba2Args& p, const DeviceSlice& slice, int channel) const {
    const int n = slice.n_tokens;
    float* window = slice.recurrent + p.conv_offset + channel;
    window[0] = n >= 3 ? conv_input(p, slice, n - 3, channel) : n == 2 ? past[2] : past[1];
    window[p.channels()] = n >= 2 ? conv_input(p, slice, n - 2, channel) : past[2];
    window[2 * int64_t{p.channels()}] = conv_input(p, slice, n - 1, channel);
  }
};

// Squares of the outputs of a decode pass: [row][block].
__device__ __forceinline__ float* squares_of(const Mamba2Args& p, int64_t row, int block) {
  return p.scratch + row * (p.d_inner() / kColumns) + block;
}

template <int kState>
__global__ void __launch_bounds__(kThreads, 2) mix_kernel(Mamba2Args p, DeviceSlice own) {
  constexpr int kRows = kState / 32;  // of a lane: a warp has an eighth of the rows, four at a time
  constexpr int kKept = 2 * kState / kThreads;
  SIMT_SHARED(int, last, 1);
  SIMT_SHARED(float, inverse, kTile);
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x), first_column = block * kColumns, head = first_column / p.d_head;
  const int group = head / (p.n_heads / p.n_groups), group_blocks = p.d_inner() / p.n_groups / kColumns;
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  if (slice.n_tokens == 0) {
    simt::wait_for_previous();
    return;
  }
  const int tile_tokens = min(p.max_tokens, kTile);
  float* bc = simt::dynamic_shared<float>();   // [t][B | C]
  float* xs = bc + tile_tokens * 2 * kState;   // [t][kColumns]
  float* steps = xs + tile_tokens * kColumns;  // [t][time step, decay]
  float* parts = steps + tile_tokens * 4;      // [t][warp][kColumns]
  auto* parts4 = reinterpret_cast<float4*>(parts);

  // A lane owns four columns of every fourth row of its warp's.
  const int column = lane % 8 * 4, first_row = warp * (kState / kWarps) + lane / 8;
  float* state = slice.recurrent + p.matrix_offset + (int64_t{head} * kState + first_row) * p.d_head +
                 (first_column % p.d_head + column);
  float4 s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = *reinterpret_cast<const float4*>(state + int64_t{4 * i} * p.d_head);

  const bool four_taps = p.taps == 4;
  ConvAhead bc_ahead[kKept], x_ahead;
  if (four_taps) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) bc_ahead[i].load(p, slice, bc_channel(p, group, tid + i * kThreads));
    if (tid < kColumns) x_ahead.load(p, slice, first_column + tid);
  }
  const float a = p.a[head], dt_bias = p.dt_bias[head], skip = p.d[head];
  simt::wait_for_previous();
  simt::allow_next();

  if (slice.replay != nullptr) {
    record_inputs(p, slice, first_column, kColumns, block % group_blocks == 0, head, first_column % p.d_head == 0);
  }
  for (int begin = 0; begin < slice.n_tokens; begin += tile_tokens) {
    const int n = min(tile_tokens, slice.n_tokens - begin);
    for (int t = 0; t < n; ++t) {
      const bool is_first = four_taps && begin + t == 0;
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        const int at = tid + i * kThreads, channel = bc_channel(p, group, at);
        bc[t * 2 * kState + at] =
            is_first ? bc_ahead[i].first(conv_input(p, slice, 0, channel)) : conv_silu(p, slice, begin + t, channel);
      }
    }
    for (int i = tid; i < n * kColumns; i += kThreads) {
      const int t = i / kColumns, channel = first_column + i % kColumns;
      xs[i] = four_taps && begin + t == 0 ? x_ahead.first(conv_input(p, slice, 0, channel))
                                          : conv_silu(p, slice, begin + t, channel);
    }
    if (tid >= kThreads - 32 && tid - (kThreads - 32) < n) {
      const int t = tid - (kThreads - 32);
      const float step = softplus(p.dt[(slice.first_row + begin + t) * p.in_stride + head] + dt_bias);
      steps[2 * t] = step;
      steps[2 * t + 1] = expf(step * a);
    }
    __syncthreads();

    for (int t = 0; t < n; ++t) {
      const float step = steps[2 * t], decay = steps[2 * t + 1];
      const float4 x = *reinterpret_cast<const float4*>(xs + t * kColumns + column);
      const float4 added = make_float4(step * x.x, step * x.y, step * x.z, step * x.w);
      const float* b = bc + t * 2 * kState + first_row;
      float4 y = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float b_row = b[4 * i], c_row = b[kState + 4 * i];
        s[i].x = fmaf(b_row, added.x, decay * s[i].x);
        s[i].y = fmaf(b_row, added.y, decay * s[i].y);
        s[i].z = fmaf(b_row, added.z, decay * s[i].z);
        s[i].w = fmaf(b_row, added.w, decay * s[i].w);
        y.x = fmaf(s[i].x, c_row, y.x);
        y.y = fmaf(s[i].y, c_row, y.y);
        y.z = fmaf(s[i].z, c_row, y.z);
        y.w = fmaf(s[i].w, c_row, y.w);
      }
#pragma unroll
      for (int distance = 8; distance <= 16; distance *= 2) {
        y.x += __shfl_xor_sync(simt::kAllLanes, y.x, distance);
        y.y += __shfl_xor_sync(simt::kAllLanes, y.y, distance);
        y.z += __shfl_xor_sync(simt::kAllLanes, y.z, distance);
        y.w += __shfl_xor_sync(simt::kAllLanes, y.w, distance);
      }
      if (lane < 8) parts4[(t * kWarps + warp) * (kColumns / 4) + lane] = y;
    }
    __syncthreads();

    // A warp finishes a token, a lane a column.
    for (int t = warp; t < n && p.out != nullptr; t += kWarps) {
      const int64_t row = slice.first_row + begin + t;
      const float* part = parts + t * kThreads + lane;
      float y = 0.0f;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) y += part[w * kColumns];
      y = fmaf(skip, xs[t * kColumns + lane], y) * silu_of(p.z[row * p.in_stride + first_column + lane]);
      p.out[row * p.out_stride + first_column + lane] = y;
      if (p.norm != nullptr && p.is_decode) {
        const float squares = simt::warp_sum(y * y);
        if (lane == 0) *squares_of(p, row, block) = squares;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) *reinterpret_cast<float4*>(state + int64_t{4 * i} * p.d_head) = s[i];

  // The last block of the group finds all windows read and all outputs written.
  __threadfence();
  __syncthreads();
  if (tid == 0) {
    int32_t* counter = p.arrivals + static_cast<int>(blockIdx.y) * p.n_groups + group;
    last[0] = atomicAdd(counter, 1) == group_blocks - 1 ? 1 : 0;
    if (last[0] != 0) *counter = 0;
  }
  __syncthreads();
  if (tid < kColumns) {
    if (four_taps) {
      x_ahead.advance(p, slice, first_column + tid);
    } else {
      advance_window(p, slice, first_column + tid);
    }
  }
  if (last[0] == 0) return;
  __threadfence();
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    const int channel = bc_channel(p, group, tid + i * kThreads);
    if (four_taps) {
      bc_ahead[i].advance(p, slice, channel);
    } else {
      advance_window(p, slice, channel);
    }
  }
  if (p.norm == nullptr || !p.is_decode || p.out == nullptr) return;
  const int width = group_blocks * kColumns, first = group * width;
  for (int begin = 0; begin < slice.n_tokens; begin += kTile) {
    const int n = min(kTile, slice.n_tokens - begin);
    for (int t = warp; t < n; t += kWarps) {
      float squares = 0.0f;
      for (int b = lane; b < group_blocks; b += 32) {
        squares += __ldcg(squares_of(p, slice.first_row + begin + t, group * group_blocks + b));
      }
      squares = simt::warp_sum(squares);
      if (lane == 0) inverse[t] = 1.0f / sqrtf(squares / static_cast<float>(width) + p.eps);
    }
    __syncthreads();
    for (int t = 0; t < n; ++t) {
      float* out = p.out + (slice.first_row + begin + t) * p.out_stride + first;
      for (int i = tid; i < width; i += kThreads) out[i] = __ldcg(out + i) * inverse[t] * p.norm[first + i];
    }
    __syncthreads();
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

bool has_fast_path(const Mamba2Args& a) { return (a.d_state == 128 || a.d_state == 256) && a.d_head % kColumns == 0; }

Status launch_mix(const Stream& stream, const Mamba2Args& args, const DeviceSlice& own, int n_slices) {
  const auto slices = static_cast<unsigned>(n_slices);
  if (!has_fast_path(args)) {
    const size_t bytes = static_cast<size_t>(args.d_head + 2 * args.d_state) * sizeof(float);
    return simt::launch(any_size_kernel,
                        {dim3(static_cast<unsigned>(args.n_heads), slices), kAnyThreads, bytes, stream, args.dependent},
                        args, own);
  }
  const size_t of_token = static_cast<size_t>(2 * args.d_state + kColumns + 4 + kThreads) * sizeof(float);
  const size_t bytes = of_token * static_cast<size_t>(min(args.max_tokens, kTile));
  const simt::Launch at{dim3(static_cast<unsigned>(args.d_inner() / kColumns), slices), kThreads, bytes, stream,
                        args.dependent};
  return args.d_state == 128 ? simt::launch(mix_kernel<128>, at, args, own)
                             : simt::launch(mix_kernel<256>, at, args, own);
}

}  // namespace

int64_t mamba2_arrivals(const Mamba2Args& layer, int max_slices) { return int64_t{max_slices} * layer.n_groups; }

int64_t mamba2_scratch_floats(const Mamba2Args& layer, int max_decode_rows) {
  return has_fast_path(layer) ? int64_t{max_decode_rows} * (layer.d_inner() / kColumns) : 0;
}

uint64_t mamba2_bytes(const Mamba2Args& layer, int n_slices, int n_rows) {
  const uint64_t state = uint64_t(layer.d_inner()) * layer.d_state;
  const uint64_t window = uint64_t(layer.taps - 1) * layer.channels();
  const uint64_t row = uint64_t(layer.channels()) + 2 * layer.d_inner() + layer.n_heads;
  return sizeof(float) * (2 * n_slices * (state + window) + n_rows * row);
}

Status mamba2_mix(const Stream& stream, const Mamba2Args& args) {
  CHECK(args.n_heads % args.n_groups == 0 && args.taps >= 1 && args.max_tokens >= 1);
  TRY(launch_mix(stream, args, DeviceSlice{}, args.batch.n_slices));
  if (args.norm == nullptr || (args.is_decode && has_fast_path(args))) return Ok{};
  return simt::launch(norm_kernel,
                      {dim3(static_cast<unsigned>(args.batch.n_rows), static_cast<unsigned>(args.n_groups)),
                       kNormThreads, 0, stream, args.dependent},
                      args);
}

Status mamba2_replay(const Stream& stream, const Mamba2Args& args, float* recurrent, const float* recorded,
                     int n_tokens) {
  Mamba2Args one = args;
  one.batch = {};
  one.out = nullptr;
  one.z = nullptr;
  one.xbc = recorded + args.replay_offset;
  one.dt = one.xbc + args.channels();
  one.in_stride = args.replay_stride;
  one.max_tokens = n_tokens;
  one.dependent = false;
  DeviceSlice slice{};
  slice.recurrent = recurrent;
  slice.n_tokens = n_tokens;
  return n_tokens > 0 ? launch_mix(stream, one, slice, 1) : Ok{};
}

}  // namespace chimere::cuda
