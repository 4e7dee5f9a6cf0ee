// gdn.cu  Gated DeltaNet, decode class: conv + SiLU, L2 norms, gates, delta rule, RMSNorm, SiLU(z), in one launch.
// Shapes    qkv [rows, (2 n_key + n_value) d], z and out [rows, n_value d], alpha and beta [rows, n_value], all f32;
//           state [n_value][d][d] and conv window [taps - 1][channels] f32 in the slice's blob
// Bytes     a slice: 8 n_value d^2 (state read and written once whatever the number of tokens) + rows; 4.2 MB for 32
//           heads of 128
// Launch    grid (n_value, slices). d = 64, 128: block 4 d, the state in registers: a warp owns 32 columns of a quarter
//           of the rows, so that it moves whole lines; a barrier a token. Else: block 128, the state stays in memory.
// Order     The state, the conv weights and the window do not depend on the kernel before: they are read before waiting
//           for it. A window is read by all value heads of a key head: the last of them to arrive moves it on.
// Numerics  f32; a token's sums have one order for every batch and every number of tokens
// Measured  H200, 32 heads of 128, in a chain: 5.3 us for one slice, 55 us for 32 (2.4 TB/s)
#include "backend/cuda/kernels/gdn.h"

#include "backend/cuda/kernels/gdn_device.h"
#include "backend/cuda/kernels/gdn_prefill.h"
#include "base/check.h"

namespace chimere::cuda {
namespace gdn {
namespace {

__device__ __forceinline__ DeviceSlice slice_of(const GdnArgs& p, const DeviceSlice& own, int i) {
  return p.batch.slices != nullptr ? p.batch.slices[i] : own;
}

// Channel of element x of [q | k | v] as the head sees them, x < 3 d.
__device__ __forceinline__ int head_channel(const GdnArgs& p, int head, int x) {
  const int part = x / p.d_head, i = x % p.d_head;
  if (part == 0) return key_head(p, head) * p.d_head + i;
  if (part == 1) return (p.n_key_heads + key_head(p, head)) * p.d_head + i;
  return (2 * p.n_key_heads + head) * p.d_head + i;
}

// Keeps the raw inputs of all tokens; what a key head's value heads share is kept by one of them.
__device__ __forceinline__ void record_inputs(const GdnArgs& p, const DeviceSlice& slice, int head) {
  const int first = leads_key_head(p, head) ? 0 : 2 * p.d_head;
  for (int t = 0; t < slice.n_tokens; ++t) {
    float* record = replay_record(p, slice, t);
    for (int x = first + static_cast<int>(threadIdx.x); x < 3 * p.d_head; x += static_cast<int>(blockDim.x)) {
      const int channel = head_channel(p, head, x);
      record[channel] = conv_input(p, slice, t, channel);
    }
    if (threadIdx.x == 0) {
      record[p.channels() + head] = p.alpha[(slice.first_row + t) * p.alpha_stride + head];
      record[p.channels() + p.n_value_heads + head] = p.beta[(slice.first_row + t) * p.beta_stride + head];
    }
  }
}

// One thread tells that its block has read the window. Whether it is the last of the key head's blocks, which then owns
// the window.
__device__ __forceinline__ bool arrive(const GdnArgs& p, int slice, int head) {
  int32_t* counter = p.arrivals + slice * p.n_key_heads + key_head(p, head);
  __threadfence();
  const bool last = atomicAdd(counter, 1) == p.n_value_heads / p.n_key_heads - 1;
  if (last) *counter = 0;
  return last;
}

// By the whole block: v channels are the head's own, q and k channels belong to the last of the key head.
__device__ __forceinline__ void advance_windows(const GdnArgs& p, const DeviceSlice& slice, int head, bool last) {
  const int first = last ? 0 : 2 * p.d_head;
  for (int x = first + static_cast<int>(threadIdx.x); x < 3 * p.d_head; x += static_cast<int>(blockDim.x)) {
    advance_window(p, slice, head_channel(p, head, x));
  }
}

// Sums over the four lanes that differ in bits 3 and 4, of four values each; a lane keeps the sum of value
// 2 (bit 4) + bit 3.
__device__ __forceinline__ float sum_quarters(const float (&x)[4], int lane) {
  const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
  float first = upper ? x[2] : x[0], second = upper ? x[3] : x[1];
  first += __shfl_xor_sync(simt::kAllLanes, upper ? x[0] : x[2], 16);
  second += __shfl_xor_sync(simt::kAllLanes, upper ? x[1] : x[3], 16);
  return (odd ? second : first) + __shfl_xor_sync(simt::kAllLanes, odd ? first : second, 8);
}

template <int D>
__global__ void __launch_bounds__(4 * D, 256 / D) decode_kernel(GdnArgs p, DeviceSlice own) {
  static_assert(D % 64 == 0);
  constexpr int kThreads = 4 * D;
  constexpr int kWarps = kThreads / 32;
  constexpr int kRows = D / 16;  // of a lane
  SIMT_SHARED(float4, qk4, kMaxDecodeTokens * 2 * D / 4);
  SIMT_SHARED(float4, v4, kMaxDecodeTokens * D / 4);
  SIMT_SHARED(float4, parts4, 2 * 2 * 4 * D / 4);
  SIMT_SHARED(float, o, kMaxDecodeTokens* D);
  SIMT_SHARED(float, gates, 3 * kMaxDecodeTokens);  // decay, beta, k q
  SIMT_SHARED(float, inv_norm, kMaxDecodeTokens);
  SIMT_SHARED(int, last, 1);
  float* qk = reinterpret_cast<float*>(qk4);        // [t][q | k][D]
  float* v = reinterpret_cast<float*>(v4);          // [t][D]
  float* parts = reinterpret_cast<float*>(parts4);  // [t % 2][S^T k | S^T q][quarter of the rows][D]

  const int head = static_cast<int>(blockIdx.x), tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  if (slice.n_tokens > kMaxDecodeTokens || slice.n_tokens == 0) {
    simt::wait_for_previous();
    return;
  }

  // A warp owns 32 columns of a quarter of the rows: it reads whole lines. A lane owns four columns of d/16 rows.
  const int quarter = warp / (D / 32), column = warp % (D / 32) * 32 + lane % 8 * 4;
  const int first_row = quarter * (D / 4) + lane / 8 * kRows;
  float* state = slice.recurrent + p.matrix_offset + (int64_t{head} * D + first_row) * D + column;
  float s[kRows][4];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float4 x = *reinterpret_cast<const float4*>(state + i * D);
    s[i][0] = x.x;
    s[i][1] = x.y;
    s[i][2] = x.z;
    s[i][3] = x.w;
  }

  // The first token's conv up to its newest input; with the usual four taps the window stays at hand for its update.
  const bool four_taps = p.taps == 4;
  const int channel = tid < 3 * D ? head_channel(p, head, tid) : 0;
  float* window = slice.recurrent + p.conv_offset + channel;
  float past[3] = {0.0f, 0.0f, 0.0f};
  float older = 0.0f, newest_weight = 0.0f;
  if (tid < 3 * D) {
    const float* w = p.conv + int64_t{channel} * p.taps;
    if (four_taps) {
#pragma unroll
      for (int j = 0; j < 3; ++j) past[j] = window[j * p.channels()];
      older = fmaf(w[2], past[2], fmaf(w[1], past[1], fmaf(w[0], past[0], 0.0f)));
    } else {
      for (int j = 0; j < p.taps - 1; ++j) older = fmaf(w[j], window[int64_t{j} * p.channels()], older);
    }
    newest_weight = w[p.taps - 1];
  }
  simt::wait_for_previous();
  simt::allow_next();

  const bool has_out = p.out != nullptr;
  const int n = slice.n_tokens;
  float first_z = 0.0f;
  if (has_out && tid < D) first_z = p.z[slice.first_row * p.z_stride + head * D + tid];
  for (int i = tid; i < n * 3 * D; i += kThreads) {
    const int t = i / (3 * D), x = i % (3 * D);
    const float u = t == 0 ? silu(fmaf(newest_weight, conv_input(p, slice, 0, channel), older))
                           : conv_silu(p, slice, t, head_channel(p, head, x));
    (x < 2 * D ? qk[t * 2 * D + x] : v[t * D + x - 2 * D]) = u;
  }
  if (tid >= 3 * D && tid < 3 * D + n) {
    const int t = tid - 3 * D;
    gates[3 * t] = expf(log_decay(p, head, p.alpha[(slice.first_row + t) * p.alpha_stride + head]));
    gates[3 * t + 1] = sigmoid(p.beta[(slice.first_row + t) * p.beta_stride + head]);
  }
  __syncthreads();

  // The answer is looked at only at the end, when it has long come. No fence: what has to be done before are loads, and
  // their values are in use already.
  int32_t* counter = p.arrivals + static_cast<int>(blockIdx.y) * p.n_key_heads + key_head(p, head);
  int before = 0;
  if (tid == kThreads - 32) before = atomicAdd(counter, 1);
  for (int t = warp; t < n; t += kWarps) {
    float* q = qk + t * 2 * D;
    float* k = q + D;
    float qq = 0.0f, kk = 0.0f, both = 0.0f;
    for (int e = lane; e < D; e += 32) {
      qq = fmaf(q[e], q[e], qq);
      kk = fmaf(k[e], k[e], kk);
      both = fmaf(q[e], k[e], both);
    }
    const float q_scale = 1.0f / sqrtf(simt::warp_sum(qq) + kNormEps) / sqrtf(static_cast<float>(D));
    const float k_scale = 1.0f / sqrtf(simt::warp_sum(kk) + kNormEps);
    both = simt::warp_sum(both);
    for (int e = lane; e < D; e += 32) {
      q[e] *= q_scale;
      k[e] *= k_scale;
    }
    if (lane == 0) gates[3 * t + 2] = both * q_scale * k_scale;
  }
  __syncthreads();

  // delta = beta (v - decay S^T k);   o = decay S^T q + (k q) delta;   S <- decay S + k delta^T
  for (int t = 0; t < n; ++t) {
    float q[kRows], k[kRows];
#pragma unroll
    for (int i = 0; i < kRows; i += 4) {
      const float4 q_four = qk4[(t * 2 * D + first_row + i) / 4], k_four = qk4[(t * 2 * D + D + first_row + i) / 4];
      q[i] = q_four.x, q[i + 1] = q_four.y, q[i + 2] = q_four.z, q[i + 3] = q_four.w;
      k[i] = k_four.x, k[i + 1] = k_four.y, k[i + 2] = k_four.z, k[i + 3] = k_four.w;
    }
    float seen[4] = {0.0f, 0.0f, 0.0f, 0.0f}, asked[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        seen[c] = fmaf(s[i][c], k[i], seen[c]);
        asked[c] = fmaf(s[i][c], q[i], asked[c]);
      }
    }
    float* part = parts + t % 2 * 8 * D;
    const int kept = column + (lane & 16) / 8 + (lane & 8) / 8;
    part[quarter * D + kept] = sum_quarters(seen, lane);
    part[(4 + quarter) * D + kept] = sum_quarters(asked, lane);
    __syncthreads();

    const float decay = gates[3 * t], beta = gates[3 * t + 1];
    const auto total = [&](int first, int x) {
      return (part[first * D + x] + part[(first + 1) * D + x]) +
             (part[(first + 2) * D + x] + part[(first + 3) * D + x]);
    };
    if (tid < D) {
      const float delta = beta * (v[t * D + tid] - decay * total(0, tid));
      o[t * D + tid] = fmaf(gates[3 * t + 2], delta, decay * total(4, tid));
    }
    const float4* four = parts4 + (t % 2 * 8 * D + column) / 4;
    const float4 a = four[0], b = four[D / 4], c = four[2 * D / 4], d = four[3 * D / 4];
    const float4 value = v4[(t * D + column) / 4];
    const float delta[4] = {
        beta * (value.x - decay * ((a.x + b.x) + (c.x + d.x))), beta * (value.y - decay * ((a.y + b.y) + (c.y + d.y))),
        beta * (value.z - decay * ((a.z + b.z) + (c.z + d.z))), beta * (value.w - decay * ((a.w + b.w) + (c.w + d.w)))};
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int c = 0; c < 4; ++c) s[i][c] = fmaf(k[i], delta[c], decay * s[i][c]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    *reinterpret_cast<float4*>(state + i * D) = make_float4(s[i][0], s[i][1], s[i][2], s[i][3]);
  }
  if (slice.replay != nullptr) record_inputs(p, slice, head);
  __syncthreads();

  if (has_out) {
    for (int t = warp; t < n; t += kWarps) {
      float squares = 0.0f;
      for (int e = lane; e < D; e += 32) squares = fmaf(o[t * D + e], o[t * D + e], squares);
      squares = simt::warp_sum(squares);
      if (lane == 0) inv_norm[t] = 1.0f / sqrtf(squares / static_cast<float>(D) + p.eps);
    }
    __syncthreads();
    for (int i = tid; i < n * D; i += kThreads) {
      const int t = i / D, x = i % D;
      const int64_t row = slice.first_row + t;
      const float z = t == 0 ? first_z : p.z[row * p.z_stride + head * D + x];
      p.out[row * p.out_stride + head * D + x] = o[i] * inv_norm[t] * p.norm[x] * silu(z);
    }
  }

  float next[3] = {past[1], past[2], 0.0f};
  if (four_taps && tid < 3 * D) {
    if (n == 2) next[0] = past[2];
    if (n >= 3) next[0] = conv_input(p, slice, n - 3, channel);
    if (n >= 2) next[1] = conv_input(p, slice, n - 2, channel);
    next[2] = conv_input(p, slice, n - 1, channel);
  }
  if (tid == kThreads - 32) {
    last[0] = before == p.n_value_heads / p.n_key_heads - 1 ? 1 : 0;
    if (last[0] != 0) *counter = 0;
  }
  __syncthreads();
  if (!four_taps) {
    advance_windows(p, slice, head, last[0] != 0);
  } else if (tid < 3 * D && (tid >= 2 * D || last[0] != 0)) {
#pragma unroll
    for (int j = 0; j < 3; ++j) window[j * p.channels()] = next[j];
  }
}

// Any head size and any number of tokens, with the state in memory: the path of sizes that nobody has tuned.
__global__ void __launch_bounds__(128) any_size_kernel(GdnArgs p, DeviceSlice own) {
  SIMT_SHARED(int, last, 1);
  float* u = simt::dynamic_shared<float>();  // [q | k | v], each d
  const int head = static_cast<int>(blockIdx.x), tid = static_cast<int>(threadIdx.x), d = p.d_head;
  const int threads = static_cast<int>(blockDim.x);
  float* o = u + 3 * d;
  simt::wait_for_previous();
  simt::allow_next();
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  if (slice.n_tokens == 0) return;
  float* state = slice.recurrent + p.matrix_offset + int64_t{head} * d * d;
  if (slice.replay != nullptr) record_inputs(p, slice, head);
  for (int t = 0; t < slice.n_tokens; ++t) {
    const int64_t row = slice.first_row + t;
    for (int x = tid; x < 3 * d; x += threads) u[x] = conv_silu(p, slice, t, head_channel(p, head, x));
    __syncthreads();
    float qq = 0.0f, kk = 0.0f;
    for (int x = tid; x < d; x += threads) {
      qq = fmaf(u[x], u[x], qq);
      kk = fmaf(u[d + x], u[d + x], kk);
    }
    const float q_scale = 1.0f / sqrtf(simt::block_sum(qq) + kNormEps) / sqrtf(static_cast<float>(d));
    const float k_scale = 1.0f / sqrtf(simt::block_sum(kk) + kNormEps);
    for (int x = tid; x < d; x += threads) {
      u[x] *= q_scale;
      u[d + x] *= k_scale;
    }
    __syncthreads();
    const float decay = expf(log_decay(p, head, p.alpha[row * p.alpha_stride + head]));
    const float beta = sigmoid(p.beta[row * p.beta_stride + head]);
    float squares = 0.0f;
    for (int x = tid; x < d; x += threads) {
      float seen = 0.0f, out = 0.0f;
      for (int i = 0; i < d; ++i) seen = fmaf(decay * state[i * d + x], u[d + i], seen);
      const float delta = beta * (u[2 * d + x] - seen);
      for (int i = 0; i < d; ++i) {
        const float updated = fmaf(u[d + i], delta, decay * state[i * d + x]);
        state[i * d + x] = updated;
        out = fmaf(updated, u[i], out);
      }
      o[x] = out;
      squares = fmaf(out, out, squares);
    }
    squares = simt::block_sum(squares);
    if (p.out != nullptr) {
      const float inv = 1.0f / sqrtf(squares / static_cast<float>(d) + p.eps);
      for (int x = tid; x < d; x += threads) {
        p.out[row * p.out_stride + head * d + x] =
            o[x] * inv * p.norm[x] * silu(p.z[row * p.z_stride + int64_t{head} * d + x]);
      }
    }
    __syncthreads();
  }
  if (tid == 0) last[0] = arrive(p, static_cast<int>(blockIdx.y), head) ? 1 : 0;
  __syncthreads();
  advance_windows(p, slice, head, last[0] != 0);
}

bool has_fast_path(const GdnArgs& args) { return args.d_head == 64 || args.d_head == 128; }

Status launch_decode(const Stream& stream, const GdnArgs& args, const DeviceSlice& own, int n_slices) {
  const dim3 grid(static_cast<unsigned>(args.n_value_heads), static_cast<unsigned>(n_slices));
  if (!has_fast_path(args)) {
    const size_t shared = static_cast<size_t>(4 * args.d_head) * sizeof(float);
    return simt::launch(any_size_kernel, {grid, 128, shared, stream, args.dependent}, args, own);
  }
  if (args.d_head == 128) return simt::launch(decode_kernel<128>, {grid, 512, 0, stream, args.dependent}, args, own);
  return simt::launch(decode_kernel<64>, {grid, 256, 0, stream, args.dependent}, args, own);
}

}  // namespace
}  // namespace gdn

uint64_t gdn_bytes(const GdnArgs& layer, int n_slices, int n_rows) {
  const uint64_t state = uint64_t(layer.n_value_heads) * layer.d_head * layer.d_head;
  const uint64_t window = uint64_t(layer.taps - 1) * layer.channels();
  const uint64_t row = uint64_t(layer.channels()) + 2 * layer.n_value_heads * (layer.d_head + 1);
  return sizeof(float) * (2 * n_slices * (state + window) + n_rows * row);
}

int64_t gdn_arrivals(const GdnArgs& layer, int max_slices) { return int64_t{max_slices} * layer.n_key_heads; }

int64_t gdn_scratch_floats(const GdnArgs& layer, int max_rows, int max_prefill_slices) {
  if (!gdn::has_fast_path(layer)) return 0;
  const int64_t records = gdn::max_chunks(max_rows, max_prefill_slices) * layer.n_value_heads;
  return int64_t{max_rows} * gdn::prepared_stride(layer) + (layer.exact ? 0 : records * gdn::kRecordFloats);
}

Status gdn_mix(const Stream& stream, const GdnArgs& args) {
  CHECK(args.n_value_heads % args.n_key_heads == 0 && args.taps >= 1);
  const bool all_at_once = !gdn::has_fast_path(args);
  if (args.has_decode || all_at_once) TRY(gdn::launch_decode(stream, args, DeviceSlice{}, args.batch.n_slices));
  if (args.n_prefill_slices > 0 && !all_at_once) TRY(gdn::launch_prefill(stream, args));
  return Ok{};
}

Status gdn_replay(const Stream& stream, const GdnArgs& args, float* recurrent, const float* recorded, int n_tokens) {
  GdnArgs one = args;
  one.batch = {};
  one.out = nullptr;
  one.dependent = false;
  one.qkv_stride = one.alpha_stride = one.beta_stride = args.replay_stride;
  for (int first = 0; first < n_tokens; first += gdn::kMaxDecodeTokens) {
    const float* record = recorded + first * args.replay_stride + args.replay_offset;
    one.qkv = record;
    one.alpha = record + args.channels();
    one.beta = one.alpha + args.n_value_heads;
    DeviceSlice slice{};
    slice.recurrent = recurrent;
    slice.n_tokens = n_tokens - first < gdn::kMaxDecodeTokens ? n_tokens - first : gdn::kMaxDecodeTokens;
    TRY(gdn::launch_decode(stream, one, slice, 1));
  }
  return Ok{};
}

}  // namespace chimere::cuda
