// mamba1.cu  Mamba-1: causal conv + SiLU; then s[n][c] <- exp(dt a) s + dt B x, out = (C s + D x) silu(z)
// Shapes    x, dt, z, out [rows, channels], B and C [rows, d_state], all f32; state [d_state][channels] and window
//           [taps - 1][channels] f32 in the slice's blob; any sizes
// Bytes     a slice: 8 d_state channels (the state, once whatever the number of tokens when it fits registers) + rows
// Launch    grid (channels / 64, slices), block 64: a thread a channel, tokens in order. Up to 16 states a channel stay
//           in registers, more stay in memory
// Numerics  f32; one order of sums for every pass and every number of tokens
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/recurrence/mamba1.h"

#include "base/check.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 64;
constexpr int kTile = 16;  // tokens whose B and C are staged at once
constexpr int kRegisters = 16;

__device__ __forceinline__ float silu_of(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

template <class Args>
__device__ __forceinline__ DeviceSlice slice_of(const Args& p, const DeviceSlice& own) {
  return p.batch.slices != nullptr ? p.batch.slices[blockIdx.y] : own;
}

__global__ void __launch_bounds__(kThreads) conv_kernel(CausalConvArgs p, DeviceSlice own) {
  simt::wait_for_previous();
  simt::allow_next();
  const DeviceSlice slice = slice_of(p, own);
  const int channel = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (channel >= p.channels) return;
  const float* in = p.in + slice.first_row * p.in_stride + channel;
  const float* w = p.conv + int64_t{channel} * p.taps;
  float* window = slice.recurrent + p.conv_offset + channel;
  const auto input = [&](int at) {
    return at >= 0 ? in[at * p.in_stride] : window[int64_t{at + p.taps - 1} * p.channels];
  };
  for (int t = 0; t < slice.n_tokens; ++t) {
    if (slice.replay != nullptr) {
      slice.replay[t * p.replay_stride + p.replay_offset + channel] = in[t * p.in_stride];
    }
    if (p.out == nullptr) continue;
    float sum = p.bias != nullptr ? p.bias[channel] : 0.0f;
    for (int j = 0; j < p.taps; ++j) sum = fmaf(w[j], input(t + j - (p.taps - 1)), sum);
    p.out[(slice.first_row + t) * p.out_stride + channel] = silu_of(sum);
  }
  // Rows move towards older places only: ascending is safe.
  for (int i = 0; slice.n_tokens > 0 && i < p.taps - 1; ++i) {
    window[int64_t{i} * p.channels] = input(slice.n_tokens - (p.taps - 1) + i);
  }
}

// B and C of the tile's tokens, under their norms: bc [t][B | C].
__device__ __forceinline__ void stage_tile(const SelectiveScanArgs& p, const DeviceSlice& slice, int begin, int n,
                                           float* bc) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int item = warp; item < 2 * n; item += kThreads / 32) {
    const int t = item / 2;
    const bool is_c = item % 2 == 1;
    float* to = bc + item * p.d_state;
    if (is_c && p.c == nullptr) {
      for (int i = lane; i < p.d_state; i += 32) to[i] = 0.0f;
      continue;
    }
    const int64_t row = slice.first_row + begin + t;
    const float* from = is_c ? p.c + row * p.c_stride : p.b + row * p.b_stride;
    const float* norm = is_c ? p.c_norm : p.b_norm;
    float squares = 0.0f;
    for (int i = lane; i < p.d_state; i += 32) squares = fmaf(from[i], from[i], squares);
    const float inverse = 1.0f / sqrtf(simt::warp_sum(squares) / static_cast<float>(p.d_state) + p.eps);
    for (int i = lane; i < p.d_state; i += 32) to[i] = norm != nullptr ? from[i] * inverse * norm[i] : from[i];
  }
}

// kStates: of a channel, in registers; 0: any number, in memory.
template <int kStates>
__global__ void __launch_bounds__(kThreads) scan_kernel(SelectiveScanArgs p, DeviceSlice own) {
  float* bc = simt::dynamic_shared<float>();
  const DeviceSlice slice = slice_of(p, own);
  const int channel = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const bool is_mine = channel < p.channels && slice.n_tokens > 0;
  float* state = slice.recurrent + p.matrix_offset + channel;
  constexpr int kKept = kStates > 0 ? kStates : 1;
  float kept[kKept], rate[kKept];
  if (kStates > 0 && is_mine) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      if (i >= p.d_state) break;
      kept[i] = state[int64_t{i} * p.channels];
      rate[i] = p.a[int64_t{channel} * p.d_state + i];
    }
  }
  simt::wait_for_previous();
  simt::allow_next();
  for (int begin = 0; begin < slice.n_tokens; begin += kTile) {
    const int n = min(kTile, slice.n_tokens - begin);
    __syncthreads();
    stage_tile(p, slice, begin, n, bc);
    __syncthreads();
    if (!is_mine) continue;
    for (int t = 0; t < n; ++t) {
      const int64_t row = slice.first_row + begin + t;
      const float x = p.x[row * p.x_stride + channel], raw = p.dt[row * p.dt_stride + channel];
      const float step = softplus(raw);
      const float *b = bc + 2 * t * p.d_state, *c = b + p.d_state;
      float y = 0.0f;
      if constexpr (kStates > 0) {
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
          if (i >= p.d_state) break;
          kept[i] = fmaf(step * x, b[i], expf(step * rate[i]) * kept[i]);
          y = fmaf(kept[i], c[i], y);
        }
      } else {
        for (int i = 0; i < p.d_state; ++i) {
          float& s = state[int64_t{i} * p.channels];
          s = fmaf(step * x, b[i], expf(step * p.a[int64_t{channel} * p.d_state + i]) * s);
          y = fmaf(s, c[i], y);
        }
      }
      if (slice.replay != nullptr) {
        float* record = slice.replay + (begin + t) * p.replay_stride + p.replay_offset;
        record[channel] = x;
        record[p.channels + channel] = raw;
        for (int i = channel; i < p.d_state; i += p.channels) record[2 * p.channels + i] = p.b[row * p.b_stride + i];
      }
      if (p.out != nullptr) {
        p.out[row * p.out_stride + channel] = fmaf(p.d[channel], x, y) * silu_of(p.z[row * p.z_stride + channel]);
      }
    }
  }
  if (kStates > 0 && is_mine) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      if (i >= p.d_state) break;
      state[int64_t{i} * p.channels] = kept[i];
    }
  }
}

template <class Args>
dim3 grid_of(const Args& args, int n_slices) {
  return dim3(static_cast<unsigned>(simt::div_up(args.channels, kThreads)), static_cast<unsigned>(n_slices));
}

Status launch_scan(const Stream& stream, const SelectiveScanArgs& args, const DeviceSlice& own, int n_slices) {
  const size_t bytes = static_cast<size_t>(kTile * 2 * args.d_state) * sizeof(float);
  const simt::Launch at{grid_of(args, n_slices), kThreads, bytes, stream, args.dependent};
  return args.d_state <= kRegisters ? simt::launch(scan_kernel<kRegisters>, at, args, own)
                                    : simt::launch(scan_kernel<0>, at, args, own);
}

DeviceSlice replayed_slice(float* recurrent, int n_tokens) {
  DeviceSlice slice{};
  slice.recurrent = recurrent;
  slice.n_tokens = n_tokens;
  return slice;
}

}  // namespace

Status causal_conv(const Stream& stream, const CausalConvArgs& args) {
  CHECK(args.taps >= 1);
  return simt::launch(conv_kernel, {grid_of(args, args.batch.n_slices), kThreads, 0, stream, args.dependent}, args,
                      DeviceSlice{});
}

Status causal_conv_replay(const Stream& stream, const CausalConvArgs& args, float* recurrent, const float* recorded,
                          int n_tokens) {
  CausalConvArgs one = args;
  one.batch = {};
  one.in = recorded + args.replay_offset;
  one.in_stride = args.replay_stride;
  one.out = nullptr;
  one.dependent = false;
  return simt::launch(conv_kernel, {grid_of(one, 1), kThreads, 0, stream, false}, one,
                      replayed_slice(recurrent, n_tokens));
}

Status selective_scan(const Stream& stream, const SelectiveScanArgs& args) {
  return launch_scan(stream, args, DeviceSlice{}, args.batch.n_slices);
}

Status selective_scan_replay(const Stream& stream, const SelectiveScanArgs& args, float* recurrent,
                             const float* recorded, int n_tokens) {
  SelectiveScanArgs one = args;
  one.batch = {};
  one.x = recorded + args.replay_offset;
  one.dt = one.x + args.channels;
  one.b = one.dt + args.channels;
  one.c = nullptr;
  one.x_stride = one.dt_stride = one.b_stride = args.replay_stride;
  one.out = nullptr;
  one.dependent = false;
  return launch_scan(stream, one, replayed_slice(recurrent, n_tokens), 1);
}

}  // namespace chimere::cuda
