// gdn_decode.cu  Gated DeltaNet of decode slices with heads of 64 or 128 and four taps: conv + SiLU, L2 norms, gates,
//                delta rule, RMSNorm, SiLU(z), in one launch
// Shapes    qkv [rows, (2 n_key + n_value) d], z and out [rows, n_value d], alpha and beta [rows, n_value], all f32;
//           state [n_value][d][d] and conv window [3][channels] f32 in the slice's blob
// Bytes     a slice: 8 n_value d^2 (state read and written once whatever the number of tokens) + rows; 4.2 MB for 32
//           heads of 128
// Launch    grid (n_value d / 32, slices), block 128, the state in registers: a block owns 32 columns of a head, a warp
//           a quarter of the rows, in whole cache lines; one barrier per token. 64 registers, so that two blocks fit on
//           an SM beside those of the preceding projections, and eight fit alone. Blocks of a head share nothing but
//           the RMS of its output, which is left to the reader or to a launch of its own (head_squares.h).
// Smem      11 KB and 1.3 KB a token for d = 128
// Order     The state, the conv weights and the window do not depend on the previous kernel and are read before waiting
//           for it. All blocks of a key head read the window of q and k; the last to arrive shifts it.
// Numerics  f32; a token's sums have one order for every batch and every number of tokens
// Measured  H200, 32 heads of 128, in a chain: 3.0 us for one slice, 43 us for 32 (3.2 TB/s)
// Rejected  one block of 512 threads per head: 5.3 us for a slice of 32 heads of 128 in a chain, but 9.4 in a model,
//           where a block fits only when the previous kernel has left the SM; 55 us for 32 slices, two blocks per SM
#include "backend/cuda/kernels/recurrence/gdn_decode.h"

#include "backend/cuda/kernels/common/head_squares.h"
#include "backend/cuda/kernels/common/quick_math.h"
#include "backend/cuda/kernels/recurrence/gdn_device.h"
#include "backend/cuda/kernels/recurrence/quarter_sums.h"

namespace chimere::cuda::gdn {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = kSquaresColumns;  // of a head per block

// Warps with an extra task beside the recurrence.
constexpr int kWindowWarp = 0, kOutWarp = 1, kValueWarp = 2;

// What a block keeps of a token in shared memory: q, k and its columns of v, first before the conv, then after it; and
// z, then norm * silu(z).
template <int D>
struct Slots {
  static constexpr int kV = 2 * D, kConv = kV + kColumns, kZ = kConv, kAll = kZ + kColumns;
};

struct Memory {
  float4* taps;    // [slot]
  float4* window;  // [3][slot / 4]
  float4* parts;   // [t % 2][S^T k | S^T q][quarter of the rows][kColumns / 4]
  float4* dots;    // [t % 2][quarter of the rows] q q, k k, q k
  float2* gates;   // [warp][t] decay, beta
  float* tokens;   // [t][slot]
};

// A thread has one element of q and the same of k, some also one of v. No other thread uses their taps and windows.
template <int D>
struct Channels {
  using At = Slots<D>;
  int channel[3], slot[3];
  bool has[3];

  __device__ __forceinline__ Channels(const GdnArgs& p, int key, int first_value, int tid, int lane, int warp)
      : channel{key * D + tid, (p.n_key_heads + key) * D + tid, 2 * p.n_key_heads * D + first_value + lane},
        slot{tid, D + tid, At::kV + lane},
        has{D == kThreads || tid < D, D == kThreads || tid < D, warp == kValueWarp} {}

  // Starts copying taps and windows: they do not come from the previous kernel.
  __device__ __forceinline__ void ask_for_past(const GdnArgs& p, const DeviceSlice& slice, const Memory& memory) const {
    float* window = reinterpret_cast<float*>(memory.window);
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      if (!has[c]) continue;
      simt::cp_async16(memory.taps + slot[c], p.conv + int64_t{channel[c]} * 4);
      const float* from = slice.recurrent + p.conv_offset + channel[c];
#pragma unroll
      for (int j = 0; j < 3; ++j) simt::cp_async4(window + j * At::kConv + slot[c], from + j * p.channels());
    }
  }

  // Nobody else reads the window of v.
  __device__ __forceinline__ void store_value_window(const GdnArgs& p, const DeviceSlice& slice,
                                                     const Memory& memory) const {
    const float* window = reinterpret_cast<const float*>(memory.window);
    if (has[2]) {
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        slice.recurrent[p.conv_offset + j * p.channels() + channel[2]] = window[j * At::kConv + slot[2]];
      }
    }
  }
};

// By a warp of the last of the blocks that read the windows of q and k of a key head.
template <int D>
__device__ __forceinline__ void store_key_windows(const GdnArgs& p, const DeviceSlice& slice, int key,
                                                  const float4* window, int lane) {
  constexpr int kConvSlots = Slots<D>::kConv;
  float* to = slice.recurrent + p.conv_offset + key * D + 4 * lane;
#pragma unroll
  for (int j = 0; j < 3; ++j) {
    if (4 * lane >= D) break;
    float* row = to + j * p.channels();
    *reinterpret_cast<float4*>(row) = window[(j * kConvSlots) / 4 + lane];
    *reinterpret_cast<float4*>(row + p.n_key_heads * D) = window[(j * kConvSlots + D) / 4 + lane];
  }
}

// The tokens' inputs on their way through the conv.
template <int D>
struct Intake {
  using At = Slots<D>;
  const GdnArgs& p;
  const DeviceSlice& slice;
  const Memory& memory;
  const Channels<D>& own;
  bool keeps_key;  // inputs that all blocks of a key head share are recorded by one of them
  float norm;
  bool makes_out;
  int z_slot;

  // Starts copying all tokens of the slice.
  __device__ __forceinline__ void ask_for_tokens(int first_value, int lane) const {
#pragma unroll 1
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int64_t row = slice.first_row + t;
      float* token = memory.tokens + t * At::kAll;
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        if (own.has[c]) simt::cp_async4(token + own.slot[c], p.qkv + row * p.qkv_stride + own.channel[c]);
      }
      if (makes_out) simt::cp_async4(token + z_slot, p.z + row * p.z_stride + first_value + lane);
    }
  }

  // The raw inputs of token t become what the delta rule takes, and are recorded where that is asked for.
  __device__ __forceinline__ void take_in(int t) const {
    float* token = memory.tokens + t * At::kAll;
    float raw[3] = {};
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      if (!own.has[c]) continue;
      const float4 w = memory.taps[own.slot[c]];
      float* past = reinterpret_cast<float*>(memory.window) + own.slot[c];
      const float second = past[At::kConv], third = past[2 * At::kConv];
      raw[c] = token[own.slot[c]];
      const float sum = fmaf(w.w, raw[c], fmaf(w.z, third, fmaf(w.y, second, w.x * past[0])));
      token[own.slot[c]] = sum * quick_sigmoid(sum);
      past[0] = second, past[At::kConv] = third, past[2 * At::kConv] = raw[c];
    }
    if (makes_out) token[z_slot] = norm * token[z_slot] * quick_sigmoid(token[z_slot]);
    if (slice.replay == nullptr) return;
    float* record = replay_record(p, slice, t);
    if (own.has[0] && keeps_key) record[own.channel[0]] = raw[0], record[own.channel[1]] = raw[1];
    if (own.has[2]) record[own.channel[2]] = raw[2];
  }
};

// The delta rule of token t,
//   delta = beta (v - decay S^T k);   o = decay S^T q + (k q) delta;   S <- decay S + k delta^T
// with q and k normalised: the sums are divided by the lengths rather than the terms.
template <int D>
struct DeltaRule {
  static constexpr int kRows = D / 16;  // of a lane
  const Memory& memory;
  int t, column, lane, warp;
  const float* token;
  const float4* q4;  // the lane's rows; those of k lie D / 4 further

  __device__ __forceinline__ float* part_sums() const {
    return reinterpret_cast<float*>(memory.parts) + t % 2 * 2 * kThreads;
  }

  // What the warp's rows add to S^T k, S^T q and the dots. A barrier has to follow.
  __device__ __forceinline__ void sum_rows(const float4 (&s)[kRows]) const {
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
    float* sums = part_sums();
    const int kept = kept_quarter(lane);
    sums[warp * kColumns + column + kept] = sum_quarters(seen, lane);
    sums[kThreads + warp * kColumns + column + kept] = sum_quarters(asked, lane);
    const float quarter = sum_quarters(dot, lane);
    if (column == 0) reinterpret_cast<float*>(memory.dots + t % 2 * kWarps + warp)[kept] = quarter;
  }

  // q q, k k and q k, once all warps have left their sums.
  __device__ __forceinline__ float4 dots() const {
    float4 dot = memory.dots[t % 2 * kWarps];
#pragma unroll
    for (int w = 1; w < kWarps; ++w) dot = add_scaled(dot, memory.dots[t % 2 * kWarps + w], 1.0f);
    return dot;
  }

  // o, one column per lane, in every warp.
  __device__ __forceinline__ float output(float q_scale, float k_scale, float qk, float decay, float beta) const {
    const float k_decay = k_scale * decay;
    const float* sums = part_sums();
    const auto total = [&](int first) {
      return (sums[first] + sums[first + kColumns]) + (sums[first + 2 * kColumns] + sums[first + 3 * kColumns]);
    };
    const float delta = beta * fmaf(-k_decay, total(lane), token[Slots<D>::kV + lane]);
    return fmaf(qk * q_scale * k_scale, delta, q_scale * decay * total(kThreads + lane));
  }

  __device__ __forceinline__ void update(float4 (&s)[kRows], float k_scale, float decay, float beta) const {
    const float k_decay = k_scale * decay;
    const float4* four = memory.parts + (t % 2 * 2 * kThreads + column) / 4;
    const float4 a = four[0], b = four[kColumns / 4], c = four[2 * kColumns / 4], d = four[3 * kColumns / 4];
    const float4 value = *reinterpret_cast<const float4*>(token + Slots<D>::kV + column);
    const float scaled = beta * k_scale;
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
};

template <int D>
__global__ void __launch_bounds__(kThreads, 8) decode_kernel(const __grid_constant__ GdnArgs p, DeviceSlice own) {
  static_assert(D == 64 || D == 128);
  using At = Slots<D>;
  constexpr int kParts = D / kColumns;  // blocks of a head
  constexpr int kRows = D / 16;         // of a lane
  SIMT_SHARED(float4, taps, At::kConv);
  SIMT_SHARED(float4, window, 3 * At::kConv / 4);
  SIMT_SHARED(float4, parts, 2 * 2 * kThreads / 4);
  SIMT_SHARED(float4, dots, 2 * kWarps);
  SIMT_SHARED(float2, gates, kThreads);
  const Memory memory{taps, window, parts, dots, gates, simt::dynamic_shared<float>()};

  const int tid = static_cast<int>(threadIdx.x), lane = tid & 31, warp = static_cast<int>(threadIdx.x / 32);
  const int head = static_cast<int>(blockIdx.x / kParts), part = static_cast<int>(blockIdx.x % kParts);
  const DeviceSlice slice = slice_of(p, own, static_cast<int>(blockIdx.y));
  const int n = slice.n_tokens;
  if (n > p.max_decode_tokens || n == 0) {
    simt::wait_for_previous();
    return;
  }

  // A warp owns a quarter of the rows and reads whole cache lines of them. A lane owns four columns of d/16 rows.
  const int column = (lane & 7) * 4, first_row = warp * (D / 4) + (lane >> 3) * kRows;
  const int first_value = head * D + part * kColumns;
  float* state = slice.recurrent + p.matrix_offset + (int64_t{head} * D + first_row) * D + part * kColumns + column;
  float4 s[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) s[i] = *reinterpret_cast<const float4*>(state + i * D);

  const int key = key_head(p, head);
  const Channels<D> channels(p, key, first_value, tid, lane, warp);
  channels.ask_for_past(p, slice, memory);
  simt::cp_async_commit();
  const bool keeps_key = part == 0 && leads_key_head(p, head);
  const float norm = p.norm[part * kColumns + lane], a = p.a[head], dt_bias = p.dt_bias[head];
  simt::wait_for_previous();
  simt::allow_next();

  const bool makes_out = p.out != nullptr && warp == kOutWarp;
  const Intake<D> intake{p, slice, memory, channels, keeps_key, norm, makes_out, At::kZ + lane};
  intake.ask_for_tokens(first_value, lane);
  simt::cp_async_commit();
  // Each lane computes the gates of one token.
  const int64_t gate_row = slice.first_row + min(lane, n - 1);
  const float alpha = p.alpha[gate_row * p.alpha_stride + head], beta = p.beta[gate_row * p.beta_stride + head];
  // The first token separately, so that its conv and the gates, a long dependency chain each, overlap.
  simt::cp_async_wait<0>();
  gates[tid] = make_float2(expf(a * quick_softplus(alpha + dt_bias)), quick_sigmoid(beta));
  intake.take_in(0);
#pragma unroll 1
  for (int t = 1; t < n; ++t) intake.take_in(t);
  if (slice.replay != nullptr && part == 0 && tid < n) {
    float* record = replay_record(p, slice, tid) + p.channels();
    record[head] = alpha;
    record[p.n_value_heads + head] = beta;
  }
  __syncthreads();

  // The result of the atomic is used only at the end, when it has long arrived. No fence is needed: only loads have to
  // precede it, and their values have been used already.
  int32_t* counter = p.arrivals + static_cast<int>(blockIdx.y) * p.n_key_heads + key;
  int before = 0;
  if (tid == kWindowWarp * 32) before = atomicAdd(counter, 1);
  channels.store_value_window(p, slice, memory);

#pragma unroll 1
  for (int t = 0; t < n; ++t) {
    const float* token = memory.tokens + t * At::kAll;
    const DeltaRule<D> rule{memory, t, column, lane, warp, token, reinterpret_cast<const float4*>(token + first_row)};
    rule.sum_rows(s);
    const float decay = gates[warp * 32 + t].x, by = gates[warp * 32 + t].y;
    __syncthreads();
    const float4 dot = rule.dots();
    const float q_scale = rsqrtf(dot.x + kNormEps) * (D == 128 ? 0.08838834764831845f : 0.125f);  // 1 / sqrt(D)
    const float k_scale = rsqrtf(dot.y + kNormEps);
    const float o = rule.output(q_scale, k_scale, dot.z, decay, by);
    const float squares = simt::warp_sum(o * o);
    if (makes_out) {  // one warp stores it
      const int64_t row = slice.first_row + t;
      p.out[row * p.out_stride + first_value + lane] = o * token[At::kZ + lane];
      if (lane == 0) p.scratch[row * (p.n_value_heads * kParts) + blockIdx.x] = squares;
    }
    rule.update(s, k_scale, decay, by);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) *reinterpret_cast<float4*>(state + i * D) = s[i];

  if (warp != kWindowWarp) return;
  if ((__shfl_sync(simt::kAllLanes, before, 0) + 1) * p.n_key_heads != p.n_value_heads * kParts) return;
  if (lane == 0) *counter = 0;
  store_key_windows<D>(p, slice, key, window, lane);
}

}  // namespace

bool has_fast_decode(const GdnArgs& args) { return (args.d_head == 64 || args.d_head == 128) && args.taps == 4; }

Status launch_fast_decode(const Stream& stream, const GdnArgs& args, const DeviceSlice& own, int n_slices) {
  const auto blocks = static_cast<unsigned>(args.n_value_heads * args.d_head / kColumns);
  const int of_token = args.d_head == 128 ? Slots<128>::kAll : Slots<64>::kAll;
  const simt::Launch at{dim3(blocks, static_cast<unsigned>(n_slices)), kThreads,
                        sizeof(float) * of_token * args.max_decode_tokens, stream, args.dependent};
  TRY(args.d_head == 128 ? simt::launch(decode_kernel<128>, at, args, own)
                         : simt::launch(decode_kernel<64>, at, args, own));
  if (args.leave_norm || args.out == nullptr) return Ok{};
  return finish_heads(stream, {.batch = args.batch,
                               .max_tokens = kMaxDecodeTokens,
                               .x = args.out,
                               .stride = args.out_stride,
                               .squares = args.scratch,
                               .width = args.n_value_heads * args.d_head,
                               .head_width = args.d_head,
                               .eps = args.eps,
                               .dependent = args.dependent});
}

}  // namespace chimere::cuda::gdn
