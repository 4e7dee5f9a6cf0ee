// gdn_prefill.cu  Gated DeltaNet, prefill class: what comes before and after the recurrence, and the exact recurrence.
// Shapes    as gdn.cu; working memory [rows, channels + 2 n_value] f32
// Bytes     prepare: 2 x 4 channels a row, and 3 rows in 16 twice; scan: q and k once per 32 columns of a value head,
//           mostly from L2;
//           finish: 12 n_value d per row
// Launch    prepare: a warp per head vector and 16 rows; scan: grid (n_value, d / 32, slices), 4 warps of 8 columns,
//           a lane holds d/4 rows of a column in registers, inputs come 16 tokens ahead through cp.async;
//           finish: a warp per row and head
// Numerics  f32, the recurrence token by token: the result does not depend on the cuts
#include "backend/cuda/kernels/recurrence/gdn_prefill.h"

#include "backend/cuda/kernels/recurrence/gdn_device.h"
#include "base/check.h"

namespace chimere::cuda::gdn {
namespace {

constexpr int kPrepareRows = 16;
constexpr int kPrepareWarps = 8;
constexpr int kColumns = 32;      // of a scan block
constexpr int kStageTokens = 16;  // of a scan stage

// A warp's channels of one head vector, row after row: with the usual four taps, weights and the last inputs stay in
// registers.
template <int D>
struct Conv {
  static constexpr int kTaps = 4;
  float weights[D / 32][kTaps];
  float past[D / 32][kTaps - 1];
  int channel;
  int last_row = -2;

  __device__ Conv(const GdnArgs& p, int first_channel) : channel(first_channel) {
    if (p.taps != kTaps) return;
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
#pragma unroll
      for (int j = 0; j < kTaps; ++j) weights[i][j] = p.conv[(channel + i * 32) * kTaps + j];
    }
  }
  // REQUIRES: rows in ascending order
  __device__ void next(const GdnArgs& p, const DeviceSlice& slice, int row, float (&u)[D / 32]) {
    const int t = row - slice.first_row;
    if (p.taps != kTaps) {
#pragma unroll
      for (int i = 0; i < D / 32; ++i) u[i] = conv_silu(p, slice, t, channel + i * 32);
      return;
    }
    const bool goes_on = t > 0 && row == last_row + 1;
    last_row = row;
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      if (!goes_on) {
#pragma unroll
        for (int j = 0; j < kTaps - 1; ++j) past[i][j] = conv_input(p, slice, t + j - (kTaps - 1), channel + i * 32);
      }
      const float newest = p.qkv[row * p.qkv_stride + channel + i * 32];
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kTaps - 1; ++j) sum = fmaf(weights[i][j], past[i][j], sum);
      u[i] = silu(fmaf(weights[i][kTaps - 1], newest, sum));
      past[i][0] = past[i][1];
      past[i][1] = past[i][2];
      past[i][2] = newest;
    }
  }
};

// With kHalves, q and k are kept as halves, in the first half of their place.
template <int D, bool kHalves>
__global__ void __launch_bounds__(32 * kPrepareWarps) prepare_kernel(GdnArgs p) {
  simt::allow_next();
  simt::wait_for_previous();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int vector = static_cast<int>(blockIdx.y) * kPrepareWarps + warp;  // q heads, k heads, v heads
  if (vector >= 2 * p.n_key_heads + p.n_value_heads) return;
  const int first = static_cast<int>(blockIdx.x) * kPrepareRows;
  Conv<D> conv(p, vector * D + lane);
  for (int row = first; row < first + kPrepareRows && row < p.batch.n_rows; ++row) {
    const int index = p.batch.row_slice[row];
    const DeviceSlice slice = p.batch.slices[index];
    if (slice.n_tokens <= kMaxDecodeTokens) continue;
    const int t = row - slice.first_row;
    float u[D / 32];
    conv.next(p, slice, row, u);
    float scale = 1.0f;
    if (vector < 2 * p.n_key_heads) {
      float squares = 0.0f;
#pragma unroll
      for (int i = 0; i < D / 32; ++i) squares = fmaf(u[i], u[i], squares);
      scale = 1.0f / sqrtf(simt::warp_sum(squares) + kNormEps);
    }
    if (vector < p.n_key_heads) scale /= sqrtf(static_cast<float>(D));
    float* to = p.scratch + row * prepared_stride(p);
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      const int at = vector * D + i * 32 + lane;
      if (kHalves && vector < 2 * p.n_key_heads) {
        reinterpret_cast<__half*>(to)[at] = __float2half_rn(u[i] * scale);
      } else {
        to[at] = u[i] * scale;
      }
    }
    const int head = vector - 2 * p.n_key_heads;
    if (head >= 0 && lane == 0) {
      to[p.channels() + head] = log_decay(p, head, p.alpha[row * p.alpha_stride + head]);
      to[p.channels() + p.n_value_heads + head] = sigmoid(p.beta[row * p.beta_stride + head]);
    }
    if (slice.replay != nullptr) {
      float* record = replay_record(p, slice, t);
      for (int i = lane; i < D; i += 32) record[vector * D + i] = conv_input(p, slice, t, vector * D + i);
      if (head >= 0 && lane == 0) {
        record[p.channels() + head] = p.alpha[row * p.alpha_stride + head];
        record[p.channels() + p.n_value_heads + head] = p.beta[row * p.beta_stride + head];
      }
    }
  }
}

template <int D>
__global__ void __launch_bounds__(128) scan_kernel(GdnArgs p) {
  constexpr int kRows = D / 4;
  constexpr int kStage4 = kStageTokens * (2 * D + kColumns) / 4;  // float4s of a stage: [t][q | k], then v [t][columns]
  SIMT_SHARED(float4, stages, 2 * kStage4);
  SIMT_SHARED(float, gates, 2 * 2 * kStageTokens);
  SIMT_SHARED(float, kq, kStageTokens);
  simt::allow_next();
  simt::wait_for_previous();
  const int head = static_cast<int>(blockIdx.x), tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  if (slice.n_tokens <= kMaxDecodeTokens) return;
  const int n = slice.n_tokens;
  const int first_column = static_cast<int>(blockIdx.y) * kColumns;
  const int64_t stride = prepared_stride(p);
  const float* rows = p.scratch + slice.first_row * stride;
  const int q_channel = key_head(p, head) * D, k_channel = q_channel + p.n_key_heads * D;
  const int v_channel = (2 * p.n_key_heads + head) * D + first_column;

  const auto load = [&](int stage) {
    float4* to = stages + stage % 2 * kStage4;
    const int from = stage * kStageTokens, count = n - from < kStageTokens ? n - from : kStageTokens;
    for (int i = tid; i < count * 2 * D / 4; i += 128) {
      const int t = i / (D / 2), x = i % (D / 2) * 4;
      simt::cp_async16(to + i, rows + (from + t) * stride + (x < D ? q_channel + x : k_channel + x - D));
    }
    for (int i = tid; i < count * kColumns / 4; i += 128) {
      const int t = i / (kColumns / 4), x = i % (kColumns / 4) * 4;
      simt::cp_async16(to + kStageTokens * 2 * D / 4 + i, rows + (from + t) * stride + v_channel + x);
    }
    if (tid < count) {
      const float* gate = rows + (from + tid) * stride + p.channels() + head;
      gates[(stage % 2 * kStageTokens + tid) * 2] = expf(gate[0]);
      gates[(stage % 2 * kStageTokens + tid) * 2 + 1] = gate[p.n_value_heads];
    }
  };

  const int group = lane / 8, column = warp * 8 + lane % 8;
  float* state = slice.recurrent + p.matrix_offset + int64_t{head} * D * D + first_column + column;
  float* out = p.out + slice.first_row * p.out_stride + head * D + first_column + column;
  float s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = state[((i / 4) * 16 + group * 4 + i % 4) * D];

  // The state lags one token: its update and the next token's two products are one pass over the rows,
  //   S <- decay S + k delta;   seen = decay' S^T k';   o' = decay' S^T q' + (k' q') delta'
  float k_last[kRows];
  float decay_last = 1.0f, delta_last = 0.0f;
#pragma unroll
  for (int i = 0; i < kRows; ++i) k_last[i] = 0.0f;

  const int n_stages = (n + kStageTokens - 1) / kStageTokens;
  load(0);
  simt::cp_async_commit();
  for (int stage = 0; stage < n_stages; ++stage) {
    if (stage + 1 < n_stages) load(stage + 1);
    simt::cp_async_commit();
    simt::cp_async_wait<1>();
    __syncthreads();
    const float4* data = stages + stage % 2 * kStage4;
    const float* values = reinterpret_cast<const float*>(data + kStageTokens * 2 * D / 4);
    const int from = stage * kStageTokens, count = n - from < kStageTokens ? n - from : kStageTokens;
    {
      const float4* q = data + tid / 8 * 2 * D / 4;
      float dot = 0.0f;
      if (tid / 8 < count) {
        for (int i = tid % 8; i < D / 4; i += 8) {
          const float4 q4 = q[i], k4 = q[i + D / 4];
          dot = fmaf(q4.x, k4.x, fmaf(q4.y, k4.y, fmaf(q4.z, k4.z, fmaf(q4.w, k4.w, dot))));
        }
      }
      dot = simt::warp_sum<8>(dot);
      if (tid % 8 == 0) kq[tid / 8] = dot;
    }
    __syncthreads();
    for (int t = 0; t < count; ++t) {
      const float4* q = data + t * 2 * D / 4 + group;
      const float4* k = q + D / 4;
      const float decay = gates[(stage % 2 * kStageTokens + t) * 2],
                  beta = gates[(stage % 2 * kStageTokens + t) * 2 + 1];
      const float v = values[t * kColumns + column];
      float seen[4] = {0.0f, 0.0f, 0.0f, 0.0f}, o[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
      for (int i = 0; i < kRows; i += 4) {
        const float4 k4 = k[i], q4 = q[i];
        s[i] = fmaf(k_last[i], delta_last, decay_last * s[i]);
        s[i + 1] = fmaf(k_last[i + 1], delta_last, decay_last * s[i + 1]);
        s[i + 2] = fmaf(k_last[i + 2], delta_last, decay_last * s[i + 2]);
        s[i + 3] = fmaf(k_last[i + 3], delta_last, decay_last * s[i + 3]);
        seen[0] = fmaf(s[i], k4.x, seen[0]);
        seen[1] = fmaf(s[i + 1], k4.y, seen[1]);
        seen[2] = fmaf(s[i + 2], k4.z, seen[2]);
        seen[3] = fmaf(s[i + 3], k4.w, seen[3]);
        o[0] = fmaf(s[i], q4.x, o[0]);
        o[1] = fmaf(s[i + 1], q4.y, o[1]);
        o[2] = fmaf(s[i + 2], q4.z, o[2]);
        o[3] = fmaf(s[i + 3], q4.w, o[3]);
        k_last[i] = k4.x;
        k_last[i + 1] = k4.y;
        k_last[i + 2] = k4.z;
        k_last[i + 3] = k4.w;
      }
      float all_seen = (seen[0] + seen[1]) + (seen[2] + seen[3]), all_o = (o[0] + o[1]) + (o[2] + o[3]);
      all_seen += __shfl_xor_sync(simt::kAllLanes, all_seen, 8);
      all_o += __shfl_xor_sync(simt::kAllLanes, all_o, 8);
      all_seen += __shfl_xor_sync(simt::kAllLanes, all_seen, 16);
      all_o += __shfl_xor_sync(simt::kAllLanes, all_o, 16);
      delta_last = beta * (v - decay * all_seen);
      decay_last = decay;
      if (group == 0) out[(from + t) * p.out_stride] = fmaf(kq[t], delta_last, decay * all_o);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    state[((i / 4) * 16 + group * 4 + i % 4) * D] = fmaf(k_last[i], delta_last, decay_last * s[i]);
  }
}

// Gated norm of the scan's outputs, in place; the blocks after the rows' own move the conv windows on.
template <int D>
__global__ void __launch_bounds__(32 * kPrepareWarps) finish_kernel(GdnArgs p) {
  simt::allow_next();
  simt::wait_for_previous();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = static_cast<int>(blockIdx.x);
  if (row >= p.batch.n_rows) {
    const DeviceSlice slice = p.batch.slices[row - p.batch.n_rows];
    if (slice.n_tokens <= kMaxDecodeTokens) return;
    const int step = static_cast<int>(gridDim.y * blockDim.x);
    for (int c = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); c < p.channels(); c += step) {
      advance_window(p, slice, c);
    }
    return;
  }
  const int head = static_cast<int>(blockIdx.y) * kPrepareWarps + warp;
  if (head >= p.n_value_heads || p.batch.slices[p.batch.row_slice[row]].n_tokens <= kMaxDecodeTokens) return;
  float* out = p.out + row * p.out_stride + head * D;
  const float* z = p.z + row * p.z_stride + head * D;
  float o[D / 32];
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < D / 32; ++i) {
    o[i] = out[i * 32 + lane];
    squares = fmaf(o[i], o[i], squares);
  }
  const float inv = 1.0f / sqrtf(simt::warp_sum(squares) / static_cast<float>(D) + p.eps);
#pragma unroll
  for (int i = 0; i < D / 32; ++i) out[i * 32 + lane] = o[i] * inv * p.norm[i * 32 + lane] * silu(z[i * 32 + lane]);
}

template <int D>
Status launch(const Stream& stream, const GdnArgs& args) {
  const auto blocks = [](int n, int size) { return static_cast<unsigned>(simt::div_up(n, size)); };
  const unsigned n_vectors = blocks(2 * args.n_key_heads + args.n_value_heads, kPrepareWarps);
  const unsigned n_heads = static_cast<unsigned>(args.n_value_heads);
  const unsigned n_slices = static_cast<unsigned>(args.batch.n_slices);
  const unsigned n_rows = static_cast<unsigned>(args.batch.n_rows);
  constexpr unsigned kBlock = 32 * kPrepareWarps;
  const bool in_chunks = !args.exact && args.n_prefill_slices <= args.max_prefill_slices;
  TRY(simt::launch(in_chunks ? prepare_kernel<D, true> : prepare_kernel<D, false>,
                   {dim3(blocks(args.batch.n_rows, kPrepareRows), n_vectors), kBlock, 0, stream, args.dependent},
                   args));
  if (in_chunks) {
    TRY(launch_chunks(stream, args));
  } else {
    TRY(simt::launch(scan_kernel<D>, {dim3(n_heads, D / kColumns, n_slices), 128, 0, stream, args.dependent}, args));
  }
  return simt::launch(
      finish_kernel<D>,
      {dim3(n_rows + n_slices, blocks(args.n_value_heads, kPrepareWarps)), kBlock, 0, stream, args.dependent}, args);
}

}  // namespace

Status launch_prefill(const Stream& stream, const GdnArgs& args) {
  CHECK(args.scratch != nullptr);
  return args.d_head == 128 ? launch<128>(stream, args) : launch<64>(stream, args);
}

}  // namespace chimere::cuda::gdn
