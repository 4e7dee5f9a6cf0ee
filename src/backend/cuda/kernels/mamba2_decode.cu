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
#include "backend/cuda/kernels/mamba2_decode.h"

#include "backend/cuda/kernels/head_squares.h"
#include "backend/cuda/kernels/mamba2_device.h"
#include "backend/cuda/kernels/quarter_sums.h"
#include "backend/cuda/kernels/quick_math.h"
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

template <int kState>
__global__ void __launch_bounds__(kThreads, kState == 128 ? 8 : 4)
    decode_kernel(const __grid_constant__ Mamba2Args p, DeviceSlice own, unsigned group_heads) {
  static_assert(kState == 128 || kState == 256);
  using At = Slots<kState>;
  constexpr int kRows = kState / 16;            // of a lane
  constexpr int kRuns = At::kX / kThreads + 1;  // of slots before the conv: of B and C, then that of x
  SIMT_SHARED(float4, taps, At::kConv);
  SIMT_SHARED(float4, window4, 3 * At::kConv / 4);
  SIMT_SHARED(float, bias, At::kConv);
  SIMT_SHARED(float, norm, kColumns);
  SIMT_SHARED(float, skip, 1);
  SIMT_SHARED(float2, steps, kThreads);               // [warp][t] time step, decay
  float* window = reinterpret_cast<float*>(window4);  // [3][slot]
  float* tokens = simt::dynamic_shared<float>();      // [t][slot]

  const int tid = static_cast<int>(threadIdx.x), lane = tid & 31, warp = static_cast<int>(threadIdx.x / 32);
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.z));
  const int n = slice.n_tokens;
  if (n == 0) {
    simt::wait_for_previous();
    return;
  }

  // A warp owns a quarter of the rows, and reads whole lines of them. A lane owns four columns of d_state / 16 rows.
  const int part = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int first_column = head * p.d_head + part * kColumns;
  const int column = (lane & 7) * 4, first_row = warp * (kState / 4) + (lane >> 3) * kRows;
  float* state =
      slice.recurrent + p.matrix_offset + (int64_t{head} * kState + first_row) * p.d_head + (part * kColumns + column);
  float4 s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = *reinterpret_cast<const float4*>(state + i * p.d_head);

  // A thread has elements of B and C, some have one of x. Nobody else touches their taps and windows.
  const auto group = static_cast<int>(blockIdx.y / group_heads);
  const int first_b = p.d_inner() + group * kState, first_c = first_b + p.n_groups * kState;
  const auto channel_of = [&](int run) {  // of the first slot of a run of kThreads, whose channels are neighbours too
    if (run == kRuns - 1) return first_column;
    return run * kThreads < kState ? first_b + run * kThreads : first_c + run * kThreads - kState;
  };
  const auto has = [&](int run) { return run < kRuns - 1 || warp == kValueWarp; };
#pragma unroll
  for (int run = 0; run < kRuns; ++run) {
    if (!has(run)) continue;
    const int slot = run * kThreads + tid;
    simt::cp_async16(taps + slot, p.conv + int64_t{4} * (channel_of(run) + tid));
    const float* from = slice.recurrent + p.conv_offset + channel_of(run) + tid;
#pragma unroll
    for (int j = 0; j < 3; ++j) simt::cp_async4(window + j * At::kConv + slot, from + j * p.channels());
    if (p.conv_bias != nullptr) {
      simt::cp_async4(bias + slot, p.conv_bias + channel_of(run) + tid);
    } else {
      bias[slot] = 0.0f;
    }
  }
  if (warp == kGateWarp && p.norm != nullptr) simt::cp_async4(norm + lane, p.norm + first_column + lane);
  if (tid == 0) simt::cp_async4(skip, p.d + head);
  simt::cp_async_commit();
  const float a = p.a[head], dt_bias = p.dt_bias[head];
  simt::wait_for_previous();
  simt::allow_next();

  const bool has_gate = p.out != nullptr && warp == kGateWarp;
#pragma unroll 1
  for (int t = 0; t < n; ++t) {
    const int64_t row = slice.first_row + t;
    float* token = tokens + t * At::kAll;
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      if (has(run)) simt::cp_async4(token + run * kThreads + tid, p.xbc + row * p.in_stride + channel_of(run) + tid);
    }
    if (has_gate) simt::cp_async4(token + At::kZ + lane, p.z + row * p.in_stride + first_column + lane);
  }
  simt::cp_async_commit();
  // A lane has the time step of a token.
  const float dt = p.dt[(slice.first_row + min(lane, n - 1)) * p.in_stride + head];
  const auto take_in = [&](int t) {
    float* token = tokens + t * At::kAll;
#pragma unroll
    for (int run = 0; run < kRuns; ++run) {
      if (!has(run)) continue;
      const int slot = run * kThreads + tid;
      const float4 w = taps[slot];
      float* past = window + slot;
      const float second = past[At::kConv], third = past[2 * At::kConv], raw = token[slot];
      const float sum = fmaf(w.w, raw, fmaf(w.z, third, fmaf(w.y, second, fmaf(w.x, past[0], bias[slot]))));
      token[slot] = sum * quick_sigmoid(sum);
      past[0] = second, past[At::kConv] = third, past[2 * At::kConv] = raw;
    }
    if (has_gate) token[At::kZ + lane] *= quick_sigmoid(token[At::kZ + lane]);
  };
  // The first token apart, so that its conv and the time steps, a long chain each, are one run of instructions.
  simt::cp_async_wait<0>();
  if (slice.replay != nullptr) {
    // What all blocks of a group have is recorded by one of them, likewise of a head.
    const bool leads_head = part == 0, leads_group = leads_head && blockIdx.y == group * group_heads;
#pragma unroll 1
    for (int t = 0; t < n; ++t) {
      float* record = replay_record(p, slice, t);
#pragma unroll 1
      for (int run = leads_group ? 0 : kRuns - 1; run < kRuns; ++run) {
        if (has(run)) record[channel_of(run) + tid] = tokens[t * At::kAll + run * kThreads + tid];
      }
    }
    if (leads_head && tid < n) replay_record(p, slice, tid)[p.channels() + head] = dt;
  }
  const float step = quick_softplus(dt + dt_bias);
  steps[tid] = make_float2(step, expf(step * a));
  take_in(0);
#pragma unroll 1
  for (int t = 1; t < n; ++t) take_in(t);
  __syncthreads();

  // The answer is looked at only at the end, when it has long come. No fence: what has to be done before are loads, and
  // their values are in use already.
  int32_t* counter = p.arrivals + static_cast<int>(blockIdx.z) * p.n_groups + group;
  unsigned before = 0;
  if (tid == kWindowWarp * 32) before = static_cast<unsigned>(atomicAdd(counter, 1));
  if (warp == kValueWarp) {  // nobody else reads the window of x
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      slice.recurrent[p.conv_offset + j * p.channels() + first_column + lane] = window[j * At::kConv + At::kX + lane];
    }
  }

#pragma unroll 1
  for (int t = 0; t < n; ++t) {
    // S <- decay S + B (step x)^T;   y = S^T C
    float* token = tokens + t * At::kAll;
    const float4* b4 = reinterpret_cast<const float4*>(token + first_row);
    const float2 step = steps[warp * 32 + t];
    const float4 added = times_all(*reinterpret_cast<const float4*>(token + At::kX + column), step.x);
    float4 y = make_float4(0, 0, 0, 0);
    const auto take_row = [&](float4& row, float b, float c) {
      row = add_scaled(times_all(row, step.y), added, b);
      y = add_scaled(y, row, c);
    };
#pragma unroll
    for (int i = 0; i < kRows; i += 4) {
      const float4 b = b4[i / 4], c = b4[kState / 4 + i / 4];
      take_row(s[i], b.x, c.x);
      take_row(s[i + 1], b.y, c.y);
      take_row(s[i + 2], b.z, c.z);
      take_row(s[i + 3], b.w, c.w);
    }
    token[At::kParts + warp * kColumns + column + kept_quarter(lane)] = sum_quarters(y, lane);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) *reinterpret_cast<float4*>(state + i * p.d_head) = s[i];
  __syncthreads();

  // A warp finishes a token, a lane a column.
#pragma unroll 1
  for (int t = p.out != nullptr ? kWarps - 1 - warp : n; t < n; t += kWarps) {
    const float* token = tokens + t * At::kAll + lane;
    const float* sums = token + At::kParts;
    const float sum = (sums[0] + sums[kColumns]) + (sums[2 * kColumns] + sums[3 * kColumns]);
    const float y = fmaf(skip[0], token[At::kX], sum) * token[At::kZ];
    const int64_t row = slice.first_row + t;
    p.out[row * p.out_stride + first_column + lane] = p.norm != nullptr ? y * norm[lane] : y;
    const float squares = simt::warp_sum(y * y);
    if (lane == 0 && p.norm != nullptr) p.scratch[(row * p.n_heads + head) * gridDim.x + part] = squares;
  }

  if (warp != kWindowWarp || __shfl_sync(simt::kAllLanes, before, 0) + 1 != group_heads * gridDim.x) return;
  if (lane == 0) *counter = 0;
#pragma unroll 1
  for (int run = 0; run < kRuns - 1; ++run) {
    float* to = slice.recurrent + p.conv_offset + channel_of(run) + 4 * lane;
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      *reinterpret_cast<float4*>(to + j * p.channels()) = window4[(j * At::kConv + run * kThreads) / 4 + lane];
    }
  }
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
