// gdn.cu  Gated DeltaNet, decode class: conv + SiLU, L2 norms, gates, delta rule, RMSNorm, SiLU(z), in one launch.
// Shapes    qkv [rows, (2 n_key + n_value) d], z and out [rows, n_value d], alpha and beta [rows, n_value], all f32;
//           state [n_value][d][d] and conv window [taps - 1][channels] f32 in the slice's blob
// Bytes     a slice: 8 n_value d^2 (state read and written once whatever the number of tokens) + rows; 4.2 MB for 32
//           heads of 128
// Launch    d = 64, 128 and four taps: grid (n_value d / 32, slices), block 128, the state in registers: a block owns
// 32
//           columns of a head, a warp a quarter of the rows, whole lines of them; a barrier a token. 64 registers, so
//           that two blocks find room on a multiprocessor beside those of the projections before, eight alone.
//           Blocks of a head share nothing but the RMS of its output: it is left to the reader (head_squares.h), or to
//           a launch of its own. Else: grid (n_value, slices), block 128, the state stays in memory.
// Smem      11 KB and 1.3 KB a token for d = 128
// Order     The state, the conv weights and the window do not depend on the kernel before: they are read before waiting
//           for it. A window of q and k is read by all blocks of a key head: the last to arrive moves it on.
// Numerics  f32; a token's sums have one order for every batch and every number of tokens
// Rejected  a head a block, 512 threads: 5.3 us for one slice of 32 heads of 128 in a chain, but 9.4 in a model, where
// a
//           block finds no room until the kernel before has left; 55 us for 32 slices, two blocks a multiprocessor
#include "backend/cuda/kernels/gdn.h"

#include <climits>

#include "backend/cuda/kernels/gdn_device.h"
#include "backend/cuda/kernels/gdn_prefill.h"
#include "backend/cuda/kernels/head_squares.h"
#include "base/check.h"

namespace chimere::cuda {
namespace gdn {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = kSquaresColumns;  // of a head that a block has

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
__device__ __forceinline__ float sum_quarters(float4 x, int lane) {
  const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
  float first = upper ? x.z : x.x, second = upper ? x.w : x.y;
  first += __shfl_xor_sync(simt::kAllLanes, upper ? x.x : x.z, 16);
  second += __shfl_xor_sync(simt::kAllLanes, upper ? x.y : x.w, 16);
  return (odd ? second : first) + __shfl_xor_sync(simt::kAllLanes, odd ? first : second, 8);
}

__device__ __forceinline__ float4 add_scaled(float4 sum, float4 v, float by) {
  return make_float4(fmaf(v.x, by, sum.x), fmaf(v.y, by, sum.y), fmaf(v.z, by, sum.z), fmaf(v.w, by, sum.w));
}

// To a few units in the last place, in few instructions.
__device__ __forceinline__ float quick_sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }

// log(1 + exp(x)) without branches: log(1 + e) = 2 artanh(e / (2 + e)), and e / (2 + e) is at most 1 / 3.
__device__ __forceinline__ float quick_softplus(float x) {
  const float e = expf(-fabsf(x)), y = __fdividef(e, 2.0f + e), square = y * y;
  float sum = 1.0f / 13.0f;
#pragma unroll
  for (int i = 11; i > 0; i -= 2) sum = fmaf(sum, square, 1.0f / static_cast<float>(i));
  return fmaf(2.0f * y, sum, fmaxf(x, 0.0f));
}

// Warps that have something to do beside the recurrence.
constexpr int kWindowWarp = 0, kOutWarp = 1, kValueWarp = 2;

// What a block has of a token in shared memory: q, k and its columns of v, at first before the conv, then after it;
// likewise z, then norm * silu(z).
template <int D>
constexpr int kSlots = 2 * D + 2 * kColumns;

template <int D>
__global__ void __launch_bounds__(kThreads, 8) decode_kernel(const __grid_constant__ GdnArgs p, DeviceSlice own) {
  static_assert(D == 64 || D == 128);
  constexpr int kParts = D / kColumns;  // blocks of a head
  constexpr int kRows = D / 16;         // of a lane
  constexpr int kSlots = gdn::kSlots<D>;
  constexpr int kConvSlots = 2 * D + kColumns;
  SIMT_SHARED(float4, taps, kConvSlots);
  SIMT_SHARED(float4, window4, 3 * kConvSlots / 4);
  SIMT_SHARED(float4, parts4, 2 * 2 * kThreads / 4);
  SIMT_SHARED(float4, dots4, 2 * kWarps);             // [t % 2][quarter of the rows] q q, k k, q k
  SIMT_SHARED(float2, gates, kThreads);               // [warp][t] decay, beta
  float* window = reinterpret_cast<float*>(window4);  // [3][slot]
  float* parts = reinterpret_cast<float*>(parts4);    // [t % 2][S^T k | S^T q][quarter of the rows][kColumns]
  float* tokens = simt::dynamic_shared<float>();      // [t][slot]

  const int tid = static_cast<int>(threadIdx.x), lane = tid & 31, warp = static_cast<int>(threadIdx.x / 32);
  const int head = static_cast<int>(blockIdx.x / kParts), part = static_cast<int>(blockIdx.x % kParts);
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  const int n = slice.n_tokens;
  if (n > p.max_decode_tokens || n == 0) {
    simt::wait_for_previous();
    return;
  }

  // A warp owns a quarter of the rows, and reads whole lines of them. A lane owns four columns of d/16 rows.
  const int column = (lane & 7) * 4, first_row = warp * (D / 4) + (lane >> 3) * kRows;
  const int first_value = head * D + part * kColumns;
  float* state = slice.recurrent + p.matrix_offset + (int64_t{head} * D + first_row) * D + part * kColumns + column;
  float4 s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = *reinterpret_cast<const float4*>(state + i * D);

  // A thread has an element of q and the same of k, some have one of v. Nobody else touches their taps and windows.
  const int key = key_head(p, head);
  const int channel[3] = {key * D + tid, (p.n_key_heads + key) * D + tid, 2 * p.n_key_heads * D + first_value + lane};
  const int slot[3] = {tid, D + tid, 2 * D + lane};
  const bool has_key = D == kThreads || tid < D;
  const bool has[3] = {has_key, has_key, warp == kValueWarp};
#pragma unroll
  for (int c = 0; c < 3; ++c) {
    if (!has[c]) continue;
    simt::cp_async16(taps + slot[c], p.conv + int64_t{channel[c]} * 4);
    const float* from = slice.recurrent + p.conv_offset + channel[c];
#pragma unroll
    for (int j = 0; j < 3; ++j) simt::cp_async4(window + j * kConvSlots + slot[c], from + j * p.channels());
  }
  simt::cp_async_commit();
  // What all blocks of a key head have is recorded by one of them.
  const bool keeps_key = part == 0 && leads_key_head(p, head);
  const float norm = p.norm[part * kColumns + lane], a = p.a[head], dt_bias = p.dt_bias[head];
  simt::wait_for_previous();
  simt::allow_next();

  const bool makes_out = p.out != nullptr && warp == kOutWarp;
  const int z_slot = 2 * D + kColumns + lane;
#pragma unroll 1
  for (int t = 0; t < n; ++t) {
    const int64_t row = slice.first_row + t;
    float* token = tokens + t * kSlots;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      if (has[c]) simt::cp_async4(token + slot[c], p.qkv + row * p.qkv_stride + channel[c]);
    }
    if (makes_out) simt::cp_async4(token + z_slot, p.z + row * p.z_stride + first_value + lane);
  }
  simt::cp_async_commit();
  // A lane has the gates of a token.
  const int64_t gate_row = slice.first_row + min(lane, n - 1);
  const float alpha = p.alpha[gate_row * p.alpha_stride + head], beta = p.beta[gate_row * p.beta_stride + head];
  const auto take_in = [&](int t) {
    float* token = tokens + t * kSlots;
    float raw[3] = {};
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      if (!has[c]) continue;
      const float4 w = taps[slot[c]];
      float* past = window + slot[c];
      const float second = past[kConvSlots], third = past[2 * kConvSlots];
      raw[c] = token[slot[c]];
      const float sum = fmaf(w.w, raw[c], fmaf(w.z, third, fmaf(w.y, second, w.x * past[0])));
      token[slot[c]] = sum * quick_sigmoid(sum);
      past[0] = second, past[kConvSlots] = third, past[2 * kConvSlots] = raw[c];
    }
    if (makes_out) token[z_slot] = norm * token[z_slot] * quick_sigmoid(token[z_slot]);
    if (slice.replay == nullptr) return;
    float* record = replay_record(p, slice, t);
    if (has_key && keeps_key) record[channel[0]] = raw[0], record[channel[1]] = raw[1];
    if (has[2]) record[channel[2]] = raw[2];
  };
  // The first token apart, so that its conv and the gates, a long chain each, are one run of instructions.
  simt::cp_async_wait<0>();
  gates[tid] = make_float2(expf(a * quick_softplus(alpha + dt_bias)), quick_sigmoid(beta));
  take_in(0);
#pragma unroll 1
  for (int t = 1; t < n; ++t) take_in(t);
  if (slice.replay != nullptr && part == 0 && tid < n) {
    float* record = replay_record(p, slice, tid) + p.channels();
    record[head] = alpha;
    record[p.n_value_heads + head] = beta;
  }
  __syncthreads();

  // The answer is looked at only at the end, when it has long come. No fence: what has to be done before are loads, and
  // their values are in use already.
  int32_t* counter = p.arrivals + static_cast<int>(blockIdx.y) * p.n_key_heads + key;
  int before = 0;
  if (tid == kWindowWarp * 32) before = atomicAdd(counter, 1);
  if (has[2]) {  // nobody else reads the window of v
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      slice.recurrent[p.conv_offset + j * p.channels() + channel[2]] = window[j * kConvSlots + slot[2]];
    }
  }

#pragma unroll 1
  for (int t = 0; t < n; ++t) {
    // delta = beta (v - decay S^T k);   o = decay S^T q + (k q) delta;   S <- decay S + k delta^T
    // with q and k of length one, by which sums are divided rather than their terms.
    const float* token = tokens + t * kSlots;
    const float4* q4 = reinterpret_cast<const float4*>(token + first_row);
    float4 seen = make_float4(0, 0, 0, 0), asked = seen, dot = seen;
    const auto add_row = [&](float4 row, float q, float k) {
      seen = add_scaled(seen, row, k);
      asked = add_scaled(asked, row, q);
      dot = make_float4(fmaf(q, q, dot.x), fmaf(k, k, dot.y), fmaf(q, k, dot.z), 0.0f);
    };
#pragma unroll
    for (int i = 0; i < kRows; i += 4) {
      const float4 q = q4[i / 4], k = q4[D / 4 + i / 4];
      add_row(s[i], q.x, k.x);
      add_row(s[i + 1], q.y, k.y);
      add_row(s[i + 2], q.z, k.z);
      add_row(s[i + 3], q.w, k.w);
    }
    float* part_sums = parts + t % 2 * 2 * kThreads;
    const int kept = (lane & 16) / 8 + (lane & 8) / 8;  // of four sums
    part_sums[warp * kColumns + column + kept] = sum_quarters(seen, lane);
    part_sums[kThreads + warp * kColumns + column + kept] = sum_quarters(asked, lane);
    const float quarter = sum_quarters(dot, lane);
    if (column == 0) reinterpret_cast<float*>(dots4 + t % 2 * kWarps + warp)[kept] = quarter;
    const float decay = gates[warp * 32 + t].x, by = gates[warp * 32 + t].y;
    __syncthreads();

    dot = dots4[t % 2 * kWarps];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) dot = add_scaled(dot, dots4[t % 2 * kWarps + w], 1.0f);
    const float q_scale = rsqrtf(dot.x + kNormEps) * (D == 128 ? 0.08838834764831845f : 0.125f);  // 1 / sqrt(D)
    const float k_scale = rsqrtf(dot.y + kNormEps), k_decay = k_scale * decay;
    const auto total = [&](int first) {
      return (part_sums[first] + part_sums[first + kColumns]) +
             (part_sums[first + 2 * kColumns] + part_sums[first + 3 * kColumns]);
    };
    // Every warp has o, of a column a lane; one stores it.
    const float own_delta = by * fmaf(-k_decay, total(lane), token[2 * D + lane]);
    const float o = fmaf(dot.z * q_scale * k_scale, own_delta, q_scale * decay * total(kThreads + lane));
    const float squares = simt::warp_sum(o * o);
    if (makes_out) {
      const int64_t row = slice.first_row + t;
      p.out[row * p.out_stride + first_value + lane] = o * token[z_slot];
      if (lane == 0) p.scratch[row * (p.n_value_heads * kParts) + blockIdx.x] = squares;
    }
    const float4* four = parts4 + (t % 2 * 2 * kThreads + column) / 4;
    const float4 a = four[0], b = four[kColumns / 4], c = four[2 * kColumns / 4], d = four[3 * kColumns / 4];
    const float4 value = *reinterpret_cast<const float4*>(token + 2 * D + column);
    const float scaled = by * k_scale;
    const float4 delta = make_float4(scaled * fmaf(-k_decay, (a.x + b.x) + (c.x + d.x), value.x),
                                     scaled * fmaf(-k_decay, (a.y + b.y) + (c.y + d.y), value.y),
                                     scaled * fmaf(-k_decay, (a.z + b.z) + (c.z + d.z), value.z),
                                     scaled * fmaf(-k_decay, (a.w + b.w) + (c.w + d.w), value.w));
#pragma unroll
    for (int i = 0; i < kRows; i += 4) {
      const float4 k = q4[D / 4 + i / 4];
      s[i] = add_scaled(times_all(s[i], decay), delta, k.x);
      s[i + 1] = add_scaled(times_all(s[i + 1], decay), delta, k.y);
      s[i + 2] = add_scaled(times_all(s[i + 2], decay), delta, k.z);
      s[i + 3] = add_scaled(times_all(s[i + 3], decay), delta, k.w);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) *reinterpret_cast<float4*>(state + i * D) = s[i];

  if (warp != kWindowWarp) return;
  if ((__shfl_sync(simt::kAllLanes, before, 0) + 1) * p.n_key_heads != p.n_value_heads * kParts) return;
  if (lane == 0) *counter = 0;
  float* to = slice.recurrent + p.conv_offset + key * D + 4 * lane;
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    if (4 * lane >= D) break;
    float* row = to + j * p.channels();
    *reinterpret_cast<float4*>(row) = window4[(j * kConvSlots) / 4 + lane];
    *reinterpret_cast<float4*>(row + p.n_key_heads * D) = window4[(j * kConvSlots + D) / 4 + lane];
  }
}

// 1 / rms of each head, where nobody else multiplies it in: a warp over pieces of 128 columns of a row.
__global__ void __launch_bounds__(kThreads) finish_norm_kernel(GdnArgs p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int64_t row = blockIdx.x;
  if (p.batch.slices[p.batch.row_slice[row]].n_tokens > kMaxDecodeTokens) return;
  const int width = p.n_value_heads * p.d_head, n_squares = width / kSquaresColumns, lane = simt::lane_id();
  for (int first = simt::warp_id() * 128; first < width; first += kWarps * 128) {
    const int at = first / kSquaresColumns + lane % 4;
    const float inverses = head_inverse(at < n_squares ? p.scratch[row * n_squares + at] : 0.0f, p.d_head, p.eps);
    const float inverse = __shfl_sync(simt::kAllLanes, inverses, lane / 8);
    if (first + 4 * lane >= width) continue;
    auto* out = reinterpret_cast<float4*>(p.out + row * p.out_stride + first) + lane;
    *out = times_all(*out, inverse);
  }
}

// Any head size, any number of taps and of tokens up to max_tokens, with the state in memory: the path of sizes that
// nobody has tuned.
__global__ void __launch_bounds__(kThreads) any_size_kernel(GdnArgs p, DeviceSlice own, int max_tokens) {
  SIMT_SHARED(int, last, 1);
  float* u = simt::dynamic_shared<float>();  // [q | k | v], each d
  const int head = static_cast<int>(blockIdx.x), tid = static_cast<int>(threadIdx.x), d = p.d_head;
  const int threads = static_cast<int>(blockDim.x);
  float* o = u + 3 * d;
  simt::wait_for_previous();
  simt::allow_next();
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  if (slice.n_tokens == 0 || slice.n_tokens > max_tokens) return;
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

// Heads whose recurrence of many tokens has kernels of its own (gdn_prefill.h).
bool has_prefill(const GdnArgs& args) { return args.d_head == 64 || args.d_head == 128; }

bool has_fast_decode(const GdnArgs& args) { return has_prefill(args) && args.taps == 4; }

Status launch_decode(const Stream& stream, const GdnArgs& args, const DeviceSlice& own, int n_slices) {
  const auto heads = static_cast<unsigned>(args.n_value_heads), slices = static_cast<unsigned>(n_slices);
  if (!has_fast_decode(args)) {
    const size_t shared = static_cast<size_t>(4 * args.d_head) * sizeof(float);
    const int max_tokens = has_prefill(args) ? kMaxDecodeTokens : INT_MAX;
    return simt::launch(any_size_kernel, {dim3(heads, slices), kThreads, shared, stream, args.dependent}, args, own,
                        max_tokens);
  }
  const auto blocks = heads * static_cast<unsigned>(args.d_head / kColumns);
  const int of_token = args.d_head == 128 ? kSlots<128> : kSlots<64>;
  const simt::Launch at{dim3(blocks, slices), kThreads, sizeof(float) * of_token * args.max_decode_tokens, stream,
                        args.dependent};
  TRY(args.d_head == 128 ? simt::launch(decode_kernel<128>, at, args, own)
                         : simt::launch(decode_kernel<64>, at, args, own));
  if (args.leave_norm || args.out == nullptr) return Ok{};
  return simt::launch(finish_norm_kernel,
                      {static_cast<unsigned>(args.batch.n_rows), kThreads, 0, stream, args.dependent}, args);
}

}  // namespace
}  // namespace gdn

uint64_t gdn_bytes(const GdnArgs& layer, int n_slices, int n_rows) {
  const uint64_t state = uint64_t(layer.n_value_heads) * layer.d_head * layer.d_head;
  const uint64_t window = uint64_t(layer.taps - 1) * layer.channels();
  const uint64_t row = uint64_t(layer.channels()) + 2 * layer.n_value_heads * (layer.d_head + 1);
  return sizeof(float) * (2 * n_slices * (state + window) + n_rows * row);
}

bool gdn_can_leave_norm(const GdnArgs& layer) { return gdn::has_fast_decode(layer); }

int64_t gdn_arrivals(const GdnArgs& layer, int max_slices) { return int64_t{max_slices} * layer.n_key_heads; }

int64_t gdn_scratch_floats(const GdnArgs& layer, int max_rows, int max_prefill_slices) {
  if (!gdn::has_prefill(layer)) return 0;
  const int64_t records = gdn::max_chunks(max_rows, max_prefill_slices) * layer.n_value_heads;
  return int64_t{max_rows} * gdn::prepared_stride(layer) + (layer.exact ? 0 : records * gdn::kRecordFloats);
}

Status gdn_mix(const Stream& stream, const GdnArgs& args) {
  CHECK(args.n_value_heads % args.n_key_heads == 0 && args.taps >= 1 &&
        args.max_decode_tokens <= gdn::kMaxDecodeTokens);
  const bool all_at_once = !gdn::has_prefill(args);
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
    one.max_decode_tokens = slice.n_tokens;
    TRY(gdn::launch_decode(stream, one, slice, 1));
  }
  return Ok{};
}

}  // namespace chimere::cuda
