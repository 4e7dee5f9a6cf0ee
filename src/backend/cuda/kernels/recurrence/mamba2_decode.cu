// mamba2_decode.cu  Mamba-2 of decode slices with states of 128 or 256 and four taps: conv + SiLU, decay, update,
//                   output, D skip, SiLU(z), in one launch
// Shapes    z, out [rows, d_inner], xbc [rows, d_inner + 2 n_groups d_state], dt [rows, n_heads], all f32; state
//           [n_heads][d_state][d_head] and conv window [3][channels] f32 in the slice's blob; d_head % 32 = 0
// Bytes     a slice: 8 n_heads d_state d_head (state read and written once whatever the number of tokens) + rows;
//           4.2 MB for 64 heads of 64 x 128
// Launch    grid (d_head / 32, n_heads, slices), block 128, the state in registers: a block owns 32 columns of a head,
//           a warp a quarter of the rows, in whole cache lines.
//           There is a barrier after the conv and one before the outputs, none between tokens. States of 128 take 64
//           registers, so that two blocks fit on an SM beside those of the preceding projections, and eight fit alone.
//           Blocks of a group share nothing but the RMS of its output, which is left to the reader or to a launch of
//           its own (head_squares.h).
// Smem      11 KB and 1.8 KB a token for d_state = 128
// Order     The state, the conv weights and the window do not depend on the previous kernel and are read before waiting
//           for it. All blocks of a group read the window of B and C; the last to arrive shifts it.
// Numerics  f32; a token's sums have one order for every batch and every number of tokens
// Measured  H200, 64 heads of 64 x 128, one slice, in a chain: 3.2 us
// Rejected  256 threads and the norm by the last block of a group: 5.9 us, and no room on the SM beside the projections
#include "backend/cuda/kernels/recurrence/mamba2_decode.h"

#include "backend/cuda/kernels/common/head_squares.h"
#include "backend/cuda/kernels/common/quick_math.h"
#include "backend/cuda/kernels/recurrence/mamba2_device.h"
#include "backend/cuda/kernels/recurrence/quarter_sums.h"
#include "base/check.h"

namespace chimere::cuda::mamba2 {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = kSquaresColumns;  // of a head that a block has

// Warps that have something to do beside the recurrence; the last finishes the first token.
constexpr int kValueWarp = 0, kGateWarp = 1, kWindowWarp = 2;

// What a block has of a token in shared memory: B, C and its columns of x, at first before the conv, then after it;
// likewise z, then silu(z); at last what each warp has of the output.
template <int kState>
struct Slots {
  static constexpr int kX = 2 * kState, kConv = kX + kColumns, kZ = kConv, kParts = kZ + kColumns,
                       kAll = kParts + kThreads;
};

struct Memory {
  float4* taps;    // [slot]
  float4* window;  // [3][slot / 4]
  float* bias;     // [slot]
  float* norm;     // [kColumns]
  float* skip;     // [1]
  float2* steps;   // [warp][t] time step, decay
  float* tokens;   // [t][slot]
};

// The block's columns of a head.
struct Place {
  int tid, lane, warp;
  int part, head, first_column;
};

// The conv of B, C and x, from the inputs to the slots. A thread has elements of B and C, some have one of x. Nobody
// else touches their taps and windows.
template <int kState>
struct Conv {
  using At = Slots<kState>;
  static constexpr int kRuns = At::kX / kThreads + 1;  // of slots before the conv: of B and C, then that of x
  const Mamba2Args& p;
  const DeviceSlice& slice;
  const Memory& memory;
  Place at;
  int group, first_b, first_c;

  // Of the first slot of a run of kThreads, whose channels are neighbours too.
  __device__ __forceinline__ int channel_of(int run) const {
    if (run == kRuns - 1) return at.first_column;
    return run * kThreads < kState ? first_b + run * kThreads : first_c + run * kThreads - kState;
  }
  __device__ __forceinline__ bool has(int run) const { return run < kRuns - 1 || at.warp == kValueWarp; }
  __device__ __forceinline__ float* window() const { return reinterpret_cast<float*>(memory.window); }
  __device__ __forceinline__ float* token(int t) const { return memory.tokens + t * At::kAll; }

  // What does not come from the previous kernel.
  __device__ __forceinline__ void ask_for_past() const {
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      if (!has(run)) continue;
      const int slot = run * kThreads + at.tid;
      simt::cp_async16(memory.taps + slot, p.conv + int64_t{4} * (channel_of(run) + at.tid));
      const float* from = slice.recurrent + p.conv_offset + channel_of(run) + at.tid;
#pragma unroll
      for (int j = 0; j < 3; ++j) simt::cp_async4(window() + j * At::kConv + slot, from + j * p.channels());
      if (p.conv_bias != nullptr) {
        simt::cp_async4(memory.bias + slot, p.conv_bias + channel_of(run) + at.tid);
      } else {
        memory.bias[slot] = 0.0f;
      }
    }
    if (at.warp == kGateWarp && p.norm != nullptr) {
      simt::cp_async4(memory.norm + at.lane, p.norm + at.first_column + at.lane);
    }
    if (at.tid == 0) simt::cp_async4(memory.skip, p.d + at.head);
    simt::cp_async_commit();
  }

  __device__ __forceinline__ void ask_for_tokens(bool has_gate) const {
#pragma unroll 1
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int64_t row = slice.first_row + t;
      float* to = token(t);
#pragma unroll
      for (int run = 0; run < kRuns; ++run) {
        if (has(run)) {
          simt::cp_async4(to + run * kThreads + at.tid, p.xbc + row * p.in_stride + channel_of(run) + at.tid);
        }
      }
      if (has_gate) simt::cp_async4(to + At::kZ + at.lane, p.z + row * p.in_stride + at.first_column + at.lane);
    }
    simt::cp_async_commit();
  }

  // What all blocks of a group have is recorded by one of them, likewise of a head. A lane brings the time step of a
  // token.
  __device__ __forceinline__ void record_inputs(unsigned group_heads, float dt) const {
    const bool leads_head = at.part == 0, leads_group = leads_head && blockIdx.y == group * group_heads;
#pragma unroll 1
    for (int t = 0; t < slice.n_tokens; ++t) {
      float* record = replay_record(p, slice, t);
#pragma unroll 1
      for (int run = leads_group ? 0 : kRuns - 1; run < kRuns; ++run) {
        if (has(run)) record[channel_of(run) + at.tid] = memory.tokens[t * At::kAll + run * kThreads + at.tid];
      }
    }
    if (leads_head && at.tid < slice.n_tokens) replay_record(p, slice, at.tid)[p.channels() + at.head] = dt;
  }

  // The raw inputs of token t become what the recurrence takes.
  __device__ __forceinline__ void take_in(int t, bool has_gate) const {
    float* of_token = token(t);
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      if (!has(run)) continue;
      const int slot = run * kThreads + at.tid;
      const float4 w = memory.taps[slot];
      float* past = window() + slot;
      const float second = past[At::kConv], third = past[2 * At::kConv], raw = of_token[slot];
      const float sum = fmaf(w.w, raw, fmaf(w.z, third, fmaf(w.y, second, fmaf(w.x, past[0], memory.bias[slot]))));
      of_token[slot] = sum * quick_sigmoid(sum);
      past[0] = second, past[At::kConv] = third, past[2 * At::kConv] = raw;
    }
    if (has_gate) of_token[At::kZ + at.lane] *= quick_sigmoid(of_token[At::kZ + at.lane]);
  }

  // Nobody else reads the window of x.
  __device__ __forceinline__ void store_value_window() const {
    if (at.warp != kValueWarp) return;
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      slice.recurrent[p.conv_offset + j * p.channels() + at.first_column + at.lane] =
          window()[j * At::kConv + At::kX + at.lane];
    }
  }

  // By a warp of the last of the blocks that read the windows of B and C.
  __device__ __forceinline__ void store_group_windows() const {
#pragma unroll 1
    for (int run = 0; run < kRuns - 1; ++run) {
      float* to = slice.recurrent + p.conv_offset + channel_of(run) + 4 * at.lane;
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        *reinterpret_cast<float4*>(to + j * p.channels()) =
            memory.window[(j * At::kConv + run * kThreads) / 4 + at.lane];
      }
    }
  }
};

// S <- decay S + B (step x)^T;   y = S^T C   of one token, the lane's columns and rows: b4 has their B, and their C
// kState / 4 further.
template <int kState>
__device__ __forceinline__ float4 recur(float4 (&s)[kState / 16], const float4* b4, float2 step, const float* x) {
  const float4 added = times_all(*reinterpret_cast<const float4*>(x), step.x);
  float4 y = make_float4(0, 0, 0, 0);
  const auto take_row = [&](float4& row, float b, float c) {
    row = add_scaled(times_all(row, step.y), added, b);
    y = add_scaled(y, row, c);
  };
#pragma unroll
  for (int i = 0; i < kState / 16; i += 4) {
    const float4 b = b4[i / 4], c = b4[kState / 4 + i / 4];
    take_row(s[i], b.x, c.x);
    take_row(s[i + 1], b.y, c.y);
    take_row(s[i + 2], b.z, c.z);
    take_row(s[i + 3], b.w, c.w);
  }
  return y;
}

template <int kState>
__global__ void __launch_bounds__(kThreads, kState == 128 ? 8 : 4)
    decode_kernel(const __grid_constant__ Mamba2Args p, DeviceSlice own, unsigned group_heads) {
  static_assert(kState == 128 || kState == 256);
  using At = Slots<kState>;
  constexpr int kRows = kState / 16;  // of a lane
  SIMT_SHARED(float4, taps, At::kConv);
  SIMT_SHARED(float4, window, 3 * At::kConv / 4);
  SIMT_SHARED(float, bias, At::kConv);
  SIMT_SHARED(float, norm, kColumns);
  SIMT_SHARED(float, skip, 1);
  SIMT_SHARED(float2, steps, kThreads);
  const Memory memory{taps, window, bias, norm, skip, steps, simt::dynamic_shared<float>()};
  const int tid = static_cast<int>(threadIdx.x), lane = tid & 31, warp = static_cast<int>(threadIdx.x / 32);
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.z));
  const int n = slice.n_tokens;
  if (n == 0) {
    simt::wait_for_previous();
    return;
  }

  // A warp owns a quarter of the rows, and reads whole lines of them. A lane owns four columns of d_state / 16 rows.
  const int part = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const Place at{tid, lane, warp, part, head, head * p.d_head + part * kColumns};
  const int column = (lane & 7) * 4, first_row = warp * (kState / 4) + (lane >> 3) * kRows;
  float* state =
      slice.recurrent + p.matrix_offset + (int64_t{head} * kState + first_row) * p.d_head + (part * kColumns + column);
  float4 s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = *reinterpret_cast<const float4*>(state + i * p.d_head);
  const auto group = static_cast<int>(blockIdx.y / group_heads);
  const int first_b = p.d_inner() + group * kState, first_c = first_b + p.n_groups * kState;
  const Conv<kState> conv{p, slice, memory, at, group, first_b, first_c};
  conv.ask_for_past();
  const float a = p.a[head], dt_bias = p.dt_bias[head];
  simt::wait_for_previous();
  simt::allow_next();

  const bool has_gate = p.out != nullptr && warp == kGateWarp;
  conv.ask_for_tokens(has_gate);
  // A lane has the time step of a token.
  const float dt = p.dt[(slice.first_row + min(lane, n - 1)) * p.in_stride + head];
  // The first token apart, so that its conv and the time steps, a long chain each, are one run of instructions.
  simt::cp_async_wait<0>();
  if (slice.replay != nullptr) conv.record_inputs(group_heads, dt);
  const float step = quick_softplus(dt + dt_bias);
  steps[tid] = make_float2(step, expf(step * a));
  conv.take_in(0, has_gate);
#pragma unroll 1
  for (int t = 1; t < n; ++t) conv.take_in(t, has_gate);
  __syncthreads();

  // The answer is looked at only at the end, when it has long come. No fence: what has to be done before are loads, and
  // their values are in use already.
  int32_t* counter = p.arrivals + static_cast<int>(blockIdx.z) * p.n_groups + group;
  unsigned before = 0;
  if (tid == kWindowWarp * 32) before = static_cast<unsigned>(atomicAdd(counter, 1));
  conv.store_value_window();

#pragma unroll 1
  for (int t = 0; t < n; ++t) {
    float* token = conv.token(t);
    const float4* b4 = reinterpret_cast<const float4*>(token + first_row);
    const float2 step = steps[warp * 32 + t];
    const float4 y = recur<kState>(s, b4, step, token + At::kX + column);
    token[At::kParts + warp * kColumns + column + kept_quarter(lane)] = sum_quarters(y, lane);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) *reinterpret_cast<float4*>(state + i * p.d_head) = s[i];
  __syncthreads();

  // A warp finishes a token, a lane a column.
#pragma unroll 1
  for (int t = p.out != nullptr ? kWarps - 1 - warp : n; t < n; t += kWarps) {
    const float* token = conv.token(t) + lane;
    const float* sums = token + At::kParts;
    const float sum = (sums[0] + sums[kColumns]) + (sums[2 * kColumns] + sums[3 * kColumns]);
    const float y = fmaf(skip[0], token[At::kX], sum) * token[At::kZ];
    const int64_t row = slice.first_row + t;
    p.out[row * p.out_stride + at.first_column + lane] = p.norm != nullptr ? y * norm[lane] : y;
    const float squares = simt::warp_sum(y * y);
    if (lane == 0 && p.norm != nullptr) p.scratch[(row * p.n_heads + head) * gridDim.x + part] = squares;
  }

  if (warp != kWindowWarp || __shfl_sync(simt::kAllLanes, before, 0) + 1 != group_heads * gridDim.x) return;
  if (lane == 0) *counter = 0;
  conv.store_group_windows();
}

}  // namespace

bool has_fast_path(const Mamba2Args& args) {
  return (args.d_state == 128 || args.d_state == 256) && args.d_head % kColumns == 0 && args.taps == 4;
}

Status launch_fast_decode(const Stream& stream, const Mamba2Args& args, const DeviceSlice& own, int n_slices) {
  CHECK(args.max_tokens <= kMaxDecodeTokens);
  const int of_token = args.d_state == 128 ? Slots<128>::kAll : Slots<256>::kAll;
  const dim3 grid(static_cast<unsigned>(args.d_head / kColumns), static_cast<unsigned>(args.n_heads),
                  static_cast<unsigned>(n_slices));
  const simt::Launch at{grid, kThreads, sizeof(float) * of_token * args.max_tokens, stream, args.dependent};
  const auto group_heads = static_cast<unsigned>(args.n_heads / args.n_groups);
  return args.d_state == 128 ? simt::launch(decode_kernel<128>, at, args, own, group_heads)
                             : simt::launch(decode_kernel<256>, at, args, own, group_heads);
}

}  // namespace chimere::cuda::mamba2
