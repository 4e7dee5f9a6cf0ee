// gdn.cu  Gated DeltaNet: which kernels a batch takes, and the one for shapes without a tuned kernel.
// Shapes    qkv [rows, (2 n_key + n_value) d], z and out [rows, n_value d], alpha and beta [rows, n_value], all f32;
//           state [n_value][d][d] and conv window [taps - 1][channels] f32 in the slice's blob
// Launch    heads of 64 and 128: gdn_prefill.h, and with four taps gdn_decode.h. Else: grid (n_value, slices), block
//           128, token by token, the state in memory
// Order     All value heads of a key head read its window; the last of them to arrive shifts it.
// Numerics  f32; a token's sums have one order for every batch and every number of tokens
#include "backend/cuda/kernels/recurrence/gdn.h"

#include <climits>

#include "backend/cuda/kernels/recurrence/gdn_decode.h"
#include "backend/cuda/kernels/recurrence/gdn_device.h"
#include "backend/cuda/kernels/recurrence/gdn_prefill.h"
#include "base/check.h"

namespace chimere::cuda {
namespace gdn {
namespace {

constexpr int kThreads = 128;

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

Status launch_decode(const Stream& stream, const GdnArgs& args, const DeviceSlice& own, int n_slices) {
  if (has_fast_decode(args)) return launch_fast_decode(stream, args, own, n_slices);
  const dim3 grid(static_cast<unsigned>(args.n_value_heads), static_cast<unsigned>(n_slices));
  const size_t shared = static_cast<size_t>(4 * args.d_head) * sizeof(float);
  const int max_tokens = has_prefill(args) ? kMaxDecodeTokens : INT_MAX;
  return simt::launch(any_size_kernel, {grid, kThreads, shared, stream, args.dependent}, args, own, max_tokens);
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
  one.dependent = true;  // what a layer reads before it waits, no other layer writes
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
