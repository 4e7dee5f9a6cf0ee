// attention_prefill.cu  Attention of the prefill class: rows prepared and stored, then one pass over the pages.
// Shapes    as attention.cu, head_dim 64, 128 or 256 for keys and values; prepared queries [rows, n_heads, d] f16
// Bytes     keys and values of the context once per 64 / group tokens of a slice, mostly from L2
// Launch    prepare: a warp a row and head. attend: grid (tiles of 64 query rows, n_kv_heads, slices), block 128,
//           a warp owns 16 rows of [token, head of the group];
//           smem: queries and 2 stages of 32 tokens, 96 KiB for d = 256
// Numerics  q, k, v and weights f16, sums and softmax f32, tiles of 32 tokens from position 0 on
#include "backend/cuda/kernels/attention/attention_fast.h"
#include "backend/cuda/kernels/attention/attention_tiles.h"

namespace chimere::cuda::attention_detail {
namespace {

using half_tiles::load_a;
using half_tiles::load_b;
using half_tiles::load_b_transposed;
using half_tiles::mma_pair;
using half_tiles::pack_halves;

constexpr int kQueryRows = 64;
constexpr int kStages = 2;
constexpr int kThreads = 128;
constexpr int kPrepareWarps = 4;
constexpr int kScoreBlocks = kTileTokens / 8;  // of a tile, eight tokens each

__device__ __forceinline__ __half* prepared_queries(const AttentionArgs& p) {
  const int64_t partials = int64_t{p.max_decode_rows} * p.n_heads * kMaxSplits * (p.head_dim_v + 2);
  return reinterpret_cast<__half*>(p.scratch + partials);
}

__global__ void __launch_bounds__(32 * kPrepareWarps) prepare_kernel(AttentionArgs p) {
  simt::allow_next();
  simt::wait_for_previous();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int row = static_cast<int>(blockIdx.x), item = static_cast<int>(blockIdx.y) * kPrepareWarps + warp;
  const DeviceSlice slice = p.batch.slices[p.batch.row_slice[row]];
  if (item >= p.n_heads + p.n_kv_heads || slice.n_tokens <= kMaxDecodeTokens) return;
  float* head = simt::dynamic_shared<float>() + warp * p.head_dim_k;
  if (item >= p.n_heads) {
    store_token(p, slice, row - slice.first_row, item - p.n_heads, head, lane);
    return;
  }
  prepare_head(p, query(p, row, item), p.q_norm, p.batch.row_pos[row], head, lane);
  const float scale = p.scale * kLog2E;  // scores come out as powers of two
  __half* to = prepared_queries(p) + (int64_t{row} * p.n_heads + item) * p.head_dim_k;
  for (int i = lane; i < p.head_dim_k; i += 32) to[i] = __float2half_rn(head[i] * scale);
}

// Starts copying the prepared queries of rows first_row .. first_row + kQueryRows of a slice; the last row stands in
// for rows past the end.
template <int D>
__device__ __forceinline__ void issue_queries(const AttentionArgs& p, const DeviceSlice& slice, int kv_head, int group,
                                              int first_row, int n_rows, int last_row, std::byte* to, int tid) {
  const __half* queries = prepared_queries(p);
  for (int i = tid; i < kQueryRows * D / 8; i += kThreads) {
    const int r = i / (D / 8), chunk = i % (D / 8), row = first_row + r < n_rows ? first_row + r : last_row;
    const int64_t at = (slice.first_row + row / group) * int64_t{p.n_heads} + kv_head * group + row % group;
    simt::cp_async16(to + tile_offset<D>(r, chunk), queries + at * D + chunk * 8);
  }
}

// s <- queries keys of a tile, for the 16 rows of a warp.
template <int D>
__device__ __forceinline__ void make_tile_scores(float (&s)[kScoreBlocks][4], const std::byte* queries,
                                                 const std::byte* keys, int warp, int lane) {
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t a[4];
    load_a<D>(a, queries, warp * 16, step, lane);
#pragma unroll
    for (int b = 0; b < kScoreBlocks; b += 2) {
      uint32_t k[4];
      load_b<D>(k, keys, b * 8, step, lane);
      mma_pair(s[b], s[b + 1], a, k);
    }
  }
}

// o <- o + weights values of a tile, for the 16 rows of a warp.
template <int D>
__device__ __forceinline__ void add_tile_values(float (&o)[D / 8][4], const float (&s)[kScoreBlocks][4],
                                                const std::byte* values, int lane) {
#pragma unroll
  for (int step = 0; step < kTileTokens / 16; ++step) {
    // The score fragments of sixteen tokens are just what the next product takes.
    const uint32_t a[4] = {pack_halves(s[2 * step][0], s[2 * step][1]), pack_halves(s[2 * step][2], s[2 * step][3]),
                           pack_halves(s[2 * step + 1][0], s[2 * step + 1][1]),
                           pack_halves(s[2 * step + 1][2], s[2 * step + 1][3])};
#pragma unroll
    for (int b = 0; b < D / 8; b += 2) {
      uint32_t v[4];
      load_b_transposed<D>(v, values, step * 16, b, lane);
      mma_pair(o[b], o[b + 1], a, v);
    }
  }
}

// The running softmax of the two rows that a lane has parts of, `low` and `low + 8` of its warp's sixteen. Four lanes
// share a row.
struct LaneRows {
  int seen[2], lowest[2];  // each sees positions lowest .. seen
  int first_seen;          // all rows of the warp see the positions before it, where there is no window
  float max_score[2] = {kLowest, kLowest};
  float sum[2] = {0.0f, 0.0f};  // of the weights of this lane's columns; the four lanes join at the end

  __device__ __forceinline__ LaneRows(const AttentionArgs& p, int pos, int slice_end, int group, int warp_row,
                                      int low) {
    seen[0] = p.bidirectional ? slice_end : pos + low / group + 1;
    seen[1] = p.bidirectional ? slice_end : pos + (low + 8) / group + 1;
    first_seen = p.bidirectional ? slice_end : pos + warp_row / group + 1;
    lowest[0] = first_seen_by(p, seen[0] - 1);
    lowest[1] = first_seen_by(p, seen[1] - 1);
  }

  // Masks the scores of the tile that begins at `first`, where a row does not see all of it.
  __device__ __forceinline__ void mask(const AttentionArgs& p, float (&s)[kScoreBlocks][4], int first, int lane) const {
    if (first + kTileTokens <= first_seen && p.window <= 0) return;
#pragma unroll
    for (int b = 0; b < kScoreBlocks; ++b) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int pos = first + b * 8 + lane % 4 * 2 + j % 2;
        if (pos >= seen[j / 2] || pos < lowest[j / 2]) s[b][j] = kLowest;
      }
    }
  }

  // Scores become weights; keep <- the factors by which earlier weights, and outputs with them, have shrunk.
  __device__ __forceinline__ void weigh(float (&s)[kScoreBlocks][4], float (&keep)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float top = max_score[half];
#pragma unroll
      for (int b = 0; b < kScoreBlocks; ++b) top = fmaxf(top, fmaxf(s[b][2 * half], s[b][2 * half + 1]));
      top = simt::warp_max<4>(top);
      keep[half] = exp2f(max_score[half] - top);
      max_score[half] = top;
      // Under a window a row may see nothing of a tile: what is masked then weighs nothing beside anything.
      top = fmaxf(top, 0.5f * kLowest);
      float part = 0.0f;
#pragma unroll
      for (int b = 0; b < kScoreBlocks; ++b) {
        s[b][2 * half] = exp2f(s[b][2 * half] - top);
        s[b][2 * half + 1] = exp2f(s[b][2 * half + 1] - top);
        part += s[b][2 * half] + s[b][2 * half + 1];
      }
      sum[half] = sum[half] * keep[half] + part;
    }
  }
};

// Outputs of a lane's rows, divided by the sum of the weights, the sink's among them, and gated.
template <int D>
__device__ __forceinline__ void store_outputs(const AttentionArgs& p, const DeviceSlice& slice, int kv_head, int group,
                                              int low, int n_rows, const LaneRows& rows, const float (&o)[D / 8][4],
                                              int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float total = simt::warp_sum<4>(rows.sum[half]), by = 1.0f;
    const int r = low + half * 8;
    if (r >= n_rows) continue;
    if (p.sinks != nullptr) {
      const float sink = p.sinks[kv_head * group + r % group] * kLog2E, top = fmaxf(rows.max_score[half], sink);
      by = exp2f(rows.max_score[half] - top);
      total = total * by + exp2f(sink - top);
    }
    const float inv = by / total;
    const int64_t row = slice.first_row + r / group;
    const int head = kv_head * group + r % group;
    float* out = p.out + row * p.out_stride + head * D + lane % 4 * 2;
    const float* gate = query(p, row, head) + D + lane % 4 * 2;
#pragma unroll
    for (int b = 0; b < D / 8; ++b) {
      float x = o[b][2 * half] * inv, y = o[b][2 * half + 1] * inv;
      if (p.gated) {
        x *= sigmoid(gate[b * 8]);
        y *= sigmoid(gate[b * 8 + 1]);
      }
      *reinterpret_cast<float2*>(out + b * 8) = make_float2(x, y);
    }
  }
}

template <int D>
__global__ void __launch_bounds__(kThreads) attend_kernel(AttentionArgs p) {
  constexpr int kBlocks = D / 8;  // of eight output columns
  std::byte* shared = simt::dynamic_shared<std::byte>();
  simt::allow_next();
  simt::wait_for_previous();
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int group = p.n_heads / p.n_kv_heads, kv_head = static_cast<int>(blockIdx.y);
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  const int n_rows = slice.n_tokens * group;
  // The longest tiles first.
  const int first_row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueryRows;
  if (slice.n_tokens <= kMaxDecodeTokens || first_row >= n_rows) return;
  const int last_row = first_row + kQueryRows < n_rows ? first_row + kQueryRows - 1 : n_rows - 1;
  const int slice_end = slice.pos + slice.n_tokens;
  const int end = p.bidirectional ? slice_end : slice.pos + last_row / group + 1;  // of what the tile sees
  const int n = simt::div_up(end, kTileTokens);
  const int n_skipped = first_seen_by(p, slice.pos + first_row / group) / kTileTokens;  // tiles that nobody sees
  const Tiles<D, kStages, kThreads> tiles{p, slice, kv_head, TileMemory<D>(p, kQueryRows), shared, tid};

  issue_queries<D>(p, slice, kv_head, group, first_row, n_rows, last_row, shared, tid);
  tiles.issue(n_skipped, n_skipped * kTileTokens, end);
  simt::cp_async_commit();

  const int warp_row = first_row + warp * 16, low = warp_row + lane / 4;
  LaneRows rows(p, slice.pos, slice_end, group, warp_row, low);
  float o[kBlocks][4];
#pragma unroll
  for (int b = 0; b < kBlocks; ++b) o[b][0] = o[b][1] = o[b][2] = o[b][3] = 0.0f;

  for (int i = n_skipped; i < n; ++i) {
    simt::cp_async_wait<0>();
    __syncthreads();
    if (i + 1 < n) tiles.issue(i + 1, (i + 1) * kTileTokens, end);
    simt::cp_async_commit();
    const int first = i * kTileTokens;
    tiles.decode(i, first, end);

    float s[kScoreBlocks][4] = {};
    make_tile_scores<D>(s, shared, tiles.keys(i), warp, lane);
    rows.mask(p, s, first, lane);
    float keep[2];
    rows.weigh(s, keep);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      o[b][0] *= keep[0];
      o[b][1] *= keep[0];
      o[b][2] *= keep[1];
      o[b][3] *= keep[1];
    }
    add_tile_values<D>(o, s, tiles.values(i), lane);
  }
  store_outputs<D>(p, slice, kv_head, group, low, n_rows, rows, o, lane);
}

template <int D>
Status launch(const Stream& stream, const AttentionArgs& args) {
  const int group = args.n_heads / args.n_kv_heads;
  const int max_tokens = args.max_prefill_tokens > 0 ? args.max_prefill_tokens : args.batch.n_rows;
  const unsigned items = static_cast<unsigned>(simt::div_up(args.n_heads + args.n_kv_heads, kPrepareWarps));
  TRY(simt::launch(prepare_kernel,
                   {dim3(static_cast<unsigned>(args.batch.n_rows), items), 32 * kPrepareWarps,
                    kPrepareWarps * D * sizeof(float), stream, args.dependent},
                   args));
  const dim3 grid(static_cast<unsigned>(simt::div_up(max_tokens * group, kQueryRows)),
                  static_cast<unsigned>(args.n_kv_heads), static_cast<unsigned>(args.batch.n_slices));
  const size_t bytes = static_cast<size_t>(TileMemory<D>(args, kQueryRows).bytes(kStages));
  return simt::launch(attend_kernel<D>, {grid, kThreads, bytes, stream, args.dependent}, args);
}

}  // namespace

Status prefill_attention(const Stream& stream, const AttentionArgs& args) {
  if (args.head_dim_k == 256) return launch<256>(stream, args);
  return args.head_dim_k == 128 ? launch<128>(stream, args) : launch<64>(stream, args);
}

}  // namespace chimere::cuda::attention_detail
