// attention.cu  op::Attention: which kernels a layer takes, and the exact ones, in float32 for any head size.
// Shapes    q [rows, n_heads (1 or 2) dk], k [rows, n_kv dk], v [rows, n_kv dv], out [rows, n_heads dv] f32;
//           pages of 64 rows per KV head
//           in f32, f16, q8_0 or q4_0
// Bytes     a row: its context's keys and values once per query head (the group shares them through L2)
// Launch    prepare: a warp a row and head; attend: grid (rows, n_heads), block 128, smem 4 (dk + dv + 64) bytes
// Numerics  f32 sums, softmax over tiles of 64 tokens in order
#include "backend/cuda/kernels/attention/attention.h"

#include "backend/cuda/kernels/attention/attention_device.h"
#include "backend/cuda/kernels/attention/attention_fast.h"
#include "base/check.h"

namespace chimere::cuda {
namespace attention_detail {
namespace {

constexpr int kWarps = 4;
constexpr int kTile = 64;

// queries [row][n_heads][dk] prepared, and the new keys and values stored.
__global__ void __launch_bounds__(32 * kWarps) exact_prepare_kernel(AttentionArgs p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = static_cast<int>(blockIdx.x), item = static_cast<int>(blockIdx.y) * kWarps + warp;
  if (item >= p.n_heads + p.n_kv_heads) return;
  float* head = simt::dynamic_shared<float>() + warp * p.head_dim_k;
  if (item >= p.n_heads) {
    const DeviceSlice slice = p.batch.slices[p.batch.row_slice[row]];
    store_token(p, slice, row - slice.first_row, item - p.n_heads, head, lane);
    return;
  }
  prepare_head(p, query(p, row, item), p.q_norm, p.batch.row_pos[row], head, lane);
  float* to = p.scratch + (int64_t{row} * p.n_heads + item) * p.head_dim_k;
  for (int i = lane; i < p.head_dim_k; i += 32) to[i] = head[i];
}

// A warp a row and KV head.
__global__ void __launch_bounds__(32 * kWarps) store_kernel(AttentionArgs p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y) * kWarps + warp;
  if (head >= p.n_kv_heads) return;
  const DeviceSlice slice = p.batch.slices[p.batch.row_slice[row]];
  store_token(p, slice, row - slice.first_row, head, simt::dynamic_shared<float>() + warp * p.head_dim_k, lane);
}

__global__ void __launch_bounds__(32 * kWarps) exact_attend_kernel(AttentionArgs p) {
  simt::wait_for_previous();
  simt::allow_next();
  float* q = simt::dynamic_shared<float>();  // [dk]
  float* o = q + p.head_dim_k;               // [dv]
  float* weights = o + p.head_dim_v;         // [kTile]
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int row = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int kv_head = head / (p.n_heads / p.n_kv_heads);
  const DeviceSlice slice = p.batch.slices[p.batch.row_slice[row]];
  const int n = p.bidirectional ? slice.pos + slice.n_tokens : p.batch.row_pos[row] + 1;
  const int lowest = first_seen_by(p, p.batch.row_pos[row]);
  for (int i = tid; i < p.head_dim_k; i += 32 * kWarps) {
    q[i] = p.scratch[(int64_t{row} * p.n_heads + head) * p.head_dim_k + i];
  }
  for (int i = tid; i < p.head_dim_v; i += 32 * kWarps) o[i] = 0.0f;
  float max_score = kLowest, sum = 0.0f;
  for (int first = lowest / kTile * kTile; first < n; first += kTile) {
    const int skipped = lowest > first ? lowest - first : 0;
    const int count = n - first < kTile ? n - first : kTile;
    __syncthreads();
    const std::byte* keys = k_page(p, slice, first, kv_head);
    for (int t = skipped + warp; t < count; t += kWarps) {
      float dot = 0.0f;
      for (int i = lane; i < p.head_dim_k; i += 32) {
        dot = fmaf(q[i], load_element(p.k_type, keys + t * p.k_row_bytes, i), dot);
      }
      dot = simt::warp_sum(dot);
      if (lane == 0) weights[t] = dot * p.scale;
    }
    __syncthreads();
    float top = max_score;
    for (int t = skipped; t < count; ++t) top = fmaxf(top, weights[t]);
    const float keep = expf(max_score - top);
    max_score = top;
    __syncthreads();
    if (tid >= skipped && tid < count) weights[tid] = expf(weights[tid] - top);
    __syncthreads();
    sum *= keep;
    for (int t = skipped; t < count; ++t) sum += weights[t];
    const std::byte* values = v_page(p, slice, first, kv_head);
    for (int i = tid; i < p.head_dim_v; i += 32 * kWarps) {
      float x = o[i] * keep;
      for (int t = skipped; t < count; ++t)
        x = fmaf(weights[t], load_element(p.v_type, values + t * p.v_row_bytes, i), x);
      o[i] = x;
    }
  }
  float keep = 1.0f;
  if (p.sinks != nullptr) {
    const float top = fmaxf(max_score, p.sinks[head]);
    keep = expf(max_score - top);
    sum = sum * keep + expf(p.sinks[head] - top);
  }
  const float* gate = query(p, row, head) + p.head_dim_k;
  for (int i = tid; i < p.head_dim_v; i += 32 * kWarps) {
    const float x = o[i] * keep / sum;
    p.out[row * p.out_stride + int64_t{head} * p.head_dim_v + i] = p.gated ? x * sigmoid(gate[i]) : x;
  }
}

static_assert(kTile == kPageTokens, "a tile is a page");

Status store(const Stream& stream, const AttentionArgs& args) {
  const dim3 grid(static_cast<unsigned>(args.batch.n_rows),
                  static_cast<unsigned>(simt::div_up(args.n_kv_heads, kWarps)));
  const size_t bytes = static_cast<size_t>(kWarps * args.head_dim_k) * sizeof(float);
  return simt::launch(store_kernel, {grid, 32 * kWarps, bytes, stream, args.dependent}, args);
}

Status exact_attention(const Stream& stream, const AttentionArgs& args) {
  const unsigned n_rows = static_cast<unsigned>(args.batch.n_rows);
  const unsigned items = static_cast<unsigned>(simt::div_up(args.n_heads + args.n_kv_heads, kWarps));
  const size_t prepare_bytes = static_cast<size_t>(kWarps * args.head_dim_k) * sizeof(float);
  const size_t attend_bytes = static_cast<size_t>(args.head_dim_k + args.head_dim_v + kTile) * sizeof(float);
  TRY(simt::launch(exact_prepare_kernel, {dim3(n_rows, items), 32 * kWarps, prepare_bytes, stream, args.dependent},
                   args));
  return simt::launch(
      exact_attend_kernel,
      {dim3(n_rows, static_cast<unsigned>(args.n_heads)), 32 * kWarps, attend_bytes, stream, args.dependent}, args);
}

}  // namespace
}  // namespace attention_detail

uint64_t attention_bytes(const AttentionArgs& layer, int64_t kv_rows, int n_rows) {
  const uint64_t kv = layer.n_kv_heads * (layer.k_row_bytes + layer.v_row_bytes);
  const uint64_t in = uint64_t(layer.n_heads) * layer.head_dim_k * (layer.gated ? 2 : 1) +
                      uint64_t(layer.n_kv_heads) * (layer.head_dim_k + layer.head_dim_v);
  const uint64_t row = in + uint64_t(layer.n_heads) * layer.head_dim_v;
  return kv * (kv_rows + n_rows) + sizeof(float) * row * n_rows;
}

int64_t attention_scratch_floats(const AttentionArgs& layer, int max_rows, int max_decode_rows) {
  if (layer.q == nullptr) return 0;
  const int64_t queries = int64_t{max_rows} * layer.n_heads * layer.head_dim_k;
  if (!attention_detail::has_fast_path(layer)) return queries;
  const int64_t partials = attention_detail::partial_floats(layer) * max_decode_rows;
  return partials + (queries + 1) / 2;
}

int64_t attention_arrivals(const AttentionArgs& layer, int max_slices) {
  return layer.q != nullptr && attention_detail::has_fast_path(layer) ? int64_t{max_slices} * layer.n_heads : 0;
}

Status attention(const Stream& stream, const AttentionArgs& args) {
  if (args.q == nullptr) return attention_detail::store(stream, args);
  CHECK(args.n_heads % args.n_kv_heads == 0 && (!args.gated || args.head_dim_k == args.head_dim_v));
  CHECK(!args.bidirectional || (args.has_decode != args.has_prefill && (args.window == 0 || args.has_decode)));
  if (!attention_detail::has_fast_path(args) || (args.bidirectional && args.has_decode)) {
    return attention_detail::exact_attention(stream, args);
  }
  if (args.has_decode) TRY(attention_detail::decode_attention(stream, args));
  if (args.has_prefill) TRY(attention_detail::prefill_attention(stream, args));
  return Ok{};
}

}  // namespace chimere::cuda
