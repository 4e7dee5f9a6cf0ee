// attention_decode.cu  Attention of the decode class: softmax(q k scale) v over splits of the context, then their sum.
// Shapes    as attention.cu, head_dim 64, 128 or 256 for keys and values; partials [rows, n_heads, splits, d] f32
// Bytes     a slice: its context's keys and values once per 16 / group tokens; 33 MB a layer at 16K of f16 for 2 heads
//           of 256
// Launch    splits: grid (splits, n_kv_heads x tiles of 16 query rows, slices), block 256, smem 80 KB for heads of 256
//           in f16: a tile of 64 tokens, so that blocks find room beside those of the projections; scores: a warp 8
//           tokens; outputs: a warp d/8 columns. sum, beyond kFoldedSplits splits: grid (tokens, n_heads, slices),
//           block 256
// Order     A block stores the new keys and values that lie in its split before it reads them: no launch of their own.
//           In f16 they go straight to its first tile. Old tokens, norm weights and angles are asked for before waiting
//           for the kernel before, and all rows that come from it at once after.
// Numerics  q, k, v and weights f16, sums and softmax f32. Split and tile borders depend on a row's position alone.
// Measured  H200, 16 heads of 256 on 2 KV heads, short context, in a chain: 5.3 us, for 1 and for 32 slices
#include "backend/cuda/kernels/attention/attention_decode_heads.h"
#include "backend/cuda/kernels/attention/attention_decode_tiles.h"
#include "backend/cuda/kernels/attention/attention_fast.h"
#include "backend/cuda/kernels/attention/attention_heads.h"
#include "backend/cuda/kernels/attention/attention_splits.h"

namespace chimere::cuda::attention_detail {
namespace {

constexpr int kFoldedSplits = 8;  // up to this many, the last block to finish sums them

// The query rows of a thread block: up to kQueryRows of the slice's rows token * group + head of the group, which all
// read the same KV head.
struct BlockRows {
  int group, kv_head, first_row;

  __device__ __forceinline__ explicit BlockRows(const AttentionArgs& p) {
    group = p.n_heads / p.n_kv_heads;
    const int n_tiles = static_cast<int>(gridDim.y) / p.n_kv_heads;
    kv_head = static_cast<int>(blockIdx.y) / n_tiles;
    first_row = static_cast<int>(blockIdx.y) % n_tiles * kQueryRows;
  }
  // How many of them a slice of n_tokens has; none if that is not positive.
  __device__ __forceinline__ int count(int n_tokens) const {
    const int rows_left = n_tokens * group - first_row;
    return rows_left < kQueryRows ? rows_left : kQueryRows;
  }
  __device__ __forceinline__ int token(int r) const { return (first_row + r) / group; }
  // Token and head of row r.
  __device__ __forceinline__ int2 place(int r) const {
    const int row = first_row + r, t = row / group;
    return make_int2(t, kv_head * group + row - t * group);
  }
};

// The most splits that a row of tokens first .. last has: where their size grows, all earlier rows have kMaxSplits.
__device__ __forceinline__ int most_splits(int pos, int first_token, int last_token) {
  const int first = splits_of(pos + first_token + 1), last = splits_of(pos + last_token + 1);
  return first > last ? first : last;
}

// Starts copying the gates of the block's rows over the queries and keys, which have been used by then.
template <int D>
__device__ __forceinline__ void issue_gates(const AttentionArgs& p, const DeviceSlice& slice, const QueryRows& rows,
                                            int n_rows, std::byte* gates, int tid) {
#pragma unroll 1
  for (int c = tid; c < n_rows * (D / 4); c += kThreads) {
    const int2 place = rows.place[c / (D / 4)];
    const float* from = query(p, slice.first_row + place.x, place.y) + D;
    simt::cp_async16(gates + c * 16, from + c % (D / 4) * 4);
  }
}

// o <- softmax(scores) values over the n tiles of a split, not yet divided by the sum of its weights. Tiles are copied
// kStages ahead; after the last scores the gates follow, if they are wanted.
template <int D, bool kHalves>
__device__ __forceinline__ void attend_tiles(const SplitTiles<D, kHalves>& tiles, const DeviceSlice& slice,
                                             std::byte* const* pages, int n, QueryRows& rows, int n_rows,
                                             bool gates_follow, float* scores, __half* weights, float (&o)[D / 64][4],
                                             int tid) {
  constexpr int kStages = DecodeMemory<D, kHalves>::kStages;
  const AttentionArgs& p = tiles.p;
#pragma unroll
  for (int b = 0; b < D / 64; ++b) o[b][0] = o[b][1] = o[b][2] = o[b][3] = 0.0f;

#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    const int thread = forgotten(tid);
    const bool has_ahead = i + kStages < n;
    const std::byte* ahead = has_ahead ? pages[i + kStages] : nullptr;
    simt::cp_async_wait<2 * kStages - 1>();
    __syncthreads();
    const std::byte* keys = tiles.decoded(p.k_type, tiles.k_stage(i), p.k_row_bytes, i, thread);

    make_scores<D>(tiles.shared, keys, scores, thread);
    __syncthreads();
    if (has_ahead) {
      tiles.issue_keys(i + kStages, ahead, thread);
    } else if (gates_follow) {
      issue_gates<D>(p, slice, rows, n_rows, tiles.shared, thread);
    }
    simt::cp_async_commit();

    make_weights(p, slice.pos, n_rows, tiles.begin + i * kPageTokens, tiles.end, scores, weights, rows, thread);
    simt::cp_async_wait<2 * kStages - 1>();
    __syncthreads();
    const std::byte* values = tiles.decoded(p.v_type, tiles.v_stage(i), p.v_row_bytes, i, thread);

    add_values<D>(o, values, weights, rows.keep, thread);
    if (has_ahead) {
      __syncthreads();
      tiles.issue_values(i + kStages, ahead, thread);
    }
    simt::cp_async_commit();
  }
}

// What a thread block found for its rows in one split. A thread has two columns, from `column` on, of each block of
// eight and of two rows: o[b][0] and o[b][1] of one, o[b][2] and o[b][3] of the row eight further.
template <int D>
struct SplitResult {
  static constexpr int kBlocks = D / 64;
  const AttentionArgs& p;
  const DeviceSlice& slice;
  const QueryRows& rows;
  int n_rows, split, column;

  // The rows of tokens begin_token .. end_token. Those that see a page at most, tokens before `last_direct`, have no
  // other split: theirs are outputs already. `gates` [kQueryRows][D]; decode_row[0] is the decode row of token 0, and
  // not set if there is one split.
  __device__ __forceinline__ void store(float (&o)[kBlocks][4], int begin_token, int end_token, int last_direct,
                                        const int* decode_row, const float* gates, int lane) const {
#pragma unroll 1
    for (int r = lane / 4; r < kQueryRows; r += 8) {
      const int t = rows.place[r].x, q_head = rows.place[r].y;
      if (r < n_rows && t >= begin_token && t < end_token && t >= last_direct) {
        store_partial(o, r, q_head, decode_row[0] + t);
      } else if (r < n_rows && t >= begin_token && t < end_token && split == 0) {
        store_output(o, r, q_head, slice.first_row + t, gates + r * D + column);
      }
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {  // the second row moves to the place of the first
        o[b][0] = o[b][2];
        o[b][1] = o[b][3];
      }
    }
  }

 private:
  // To be summed with the row's other splits.
  __device__ __forceinline__ void store_partial(const float (&o)[kBlocks][4], int r, int q_head, int decode_row) const {
    const int64_t index = partial_index(p, decode_row, q_head) + split;
    float* to = p.scratch + index * D + column;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) *reinterpret_cast<float2*>(to + b * 8) = make_float2(o[b][0], o[b][1]);
    if (column == 0) *partial_stats(p, index) = make_float2(rows.max[r], rows.sum[r]);
  }

  // Divided by the sum of the weights, the sink's among them, and gated.
  __device__ __forceinline__ void store_output(const float (&o)[kBlocks][4], int r, int q_head, int batch_row,
                                               const float* gates) const {
    const float sink = sink_of(p, q_head), top = fmaxf(rows.max[r], sink), factor = exp2f(rows.max[r] - top);
    const float total = rows.sum[r] * factor + (p.sinks != nullptr ? exp2f(sink - top) : 0.0f);
    const float scale = factor / total;
    float* to = p.out + batch_row * p.out_stride + int64_t{q_head} * D + column;
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const float2 gate = p.gated ? *reinterpret_cast<const float2*>(gates + b * 8) : make_float2(0.0f, 0.0f);
      *reinterpret_cast<float2*>(to + b * 8) =
          make_float2(finished(p, o[b][0], scale, gate.x), finished(p, o[b][1], scale, gate.y));
    }
  }
};

// Whether this is the last of the n_blocks that share some rows; it then sees what the others stored. `is_last` is in
// shared memory.
__device__ __forceinline__ bool is_last_block(const AttentionArgs& p, int n_blocks, int* is_last, int tid) {
  __threadfence();
  __syncthreads();
  if (tid == 0) {
    int32_t* counter = p.arrivals + blockIdx.z * gridDim.y + blockIdx.y;
    *is_last = atomicAdd(counter, 1) == n_blocks - 1 ? 1 : 0;
    if (*is_last != 0) *counter = 0;
  }
  __syncthreads();
  if (*is_last == 0) return false;
  __threadfence();
  return true;
}

template <int D, bool kHalves>
__global__ void __launch_bounds__(kThreads, kHalves ? 3 : 2) split_kernel(AttentionArgs p, bool folded) {
  constexpr int kStages = DecodeMemory<D, kHalves>::kStages;
  constexpr int kBlocks = D / 64;  // per warp, of eight output columns each
  constexpr int kScoreFloats = kQueryRows * kStride, kHeadFloats = kWarps * D;
  constexpr int kTileFloats = kScoreFloats + kScoreFloats / 2;  // scores and weights
  SIMT_SHARED(float4, work, (kTileFloats > kHeadFloats ? kTileFloats : kHeadFloats) / 4);
  SIMT_SHARED(QueryRows, rows, 1);
  SIMT_SHARED(int, decode_row, 1);  // of the slice's first token
  SIMT_SHARED(int, is_last, 1);
  std::byte* shared = simt::dynamic_shared<std::byte>();
  float* heads = reinterpret_cast<float*>(work);  // [kWarps][D], before there are scores
  float* scores = heads;
  __half* weights = reinterpret_cast<__half*>(scores + kScoreFloats);

  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const BlockRows block(p);
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  const int kv_head = block.kv_head, n_rows = block.count(slice.n_tokens);
  if (slice.n_tokens > kMaxDecodeTokens || n_rows <= 0) {
    simt::wait_for_previous();
    return;
  }
  const int first_token = block.token(0), last_token = block.token(n_rows - 1);
  const int n_splits = most_splits(slice.pos, first_token, last_token);
  if (static_cast<int>(blockIdx.x) >= n_splits) {
    simt::wait_for_previous();
    return;
  }
  if (tid < kQueryRows) rows[0].place[tid] = block.place(tid);
  if (n_splits > 1 && warp == 0) {
    const int before = first_decode_row(p.batch, static_cast<int>(blockIdx.z), lane);
    if (lane == 0) decode_row[0] = before;
  }
  SplitTiles<D, kHalves> tiles(p, shared, kv_head, slice.pos);
  const HeadPreparation<D> preparation{reinterpret_cast<float*>(shared + tiles.memory.decoded)};
  bool prepared = false;  // the queries are in shared memory
  // Tokens with equal split size together; the size grows so rarely that there is nearly always one such run.
  for (int begin_token = first_token; begin_token <= last_token;) {
    const int size = split_tokens(slice.pos + begin_token + 1);
    int end_token = begin_token + 1;
    while (end_token <= last_token && split_tokens(slice.pos + end_token + 1) == size) ++end_token;
    const int kv_len = slice.pos + end_token;  // of the run's last token

    for (int split = static_cast<int>(blockIdx.x); split * size < kv_len; split += static_cast<int>(gridDim.x)) {
      const int split_begin = split * size;
      tiles.take(split_begin, size, kv_len, first_seen_by(p, slice.pos + begin_token));
      const int n = simt::div_up(tiles.end - tiles.begin, kPageTokens);
      std::byte* const* pages = slice.kv_pages + tiles.begin / kPageTokens;

      __syncthreads();  // the tiles and statistics of the previous split are no longer needed
      std::byte* first_page = n > 0 ? pages[0] : nullptr;
      tiles.issue_first(pages, first_page, n, false, tid);
      if (tid < kQueryRows) {
        rows[0].max[tid] = kLowest;
        rows[0].sum[tid] = 0.0f;
      }

      // What comes from the previous kernel: the new keys and values of the split, and the queries.
      const SplitHeads<D, kHalves> items(p, slice, tiles, rows[0], kv_head, split_begin, prepared, n_rows);
      if (items.n_items > 0) preparation.gather(p, slice, tid, kThreads);
      if (!prepared) {
        clear_missing_queries<D>(shared, n_rows, tid);
        simt::wait_for_previous();
        simt::allow_next();
      }
      prepared = true;
      float next[D / 32] = {};
      if (warp < items.n_items) preparation.load(items.source(warp), lane, next);
      __syncthreads();
      items.prepare(preparation, next, first_page, heads + warp * D, warp, lane);
      __syncthreads();
      tiles.issue_first(pages, first_page, n, true, tid);
      for (int i = 0; i < 2 * kStages; ++i) simt::cp_async_commit();  // all in the first group

      const int last_direct = kPageTokens - slice.pos;  // tokens before it see one split: they are finished here
      const bool gates_follow = p.gated && split == 0 && last_direct > 0;
      float o[kBlocks][4];
      attend_tiles(tiles, slice, pages, n, rows[0], n_rows, gates_follow, scores, weights, o, tid);

      if (gates_follow) {
        simt::cp_async_wait<0>();
        __syncthreads();
        prepared = false;  // the queries have been overwritten
      }
      const SplitResult<D> result{p, slice, rows[0], n_rows, split, warp * kBlocks * 8 + lane % 4 * 2};
      result.store(o, begin_token, end_token, last_direct, decode_row, reinterpret_cast<const float*>(shared), lane);
    }
    begin_token = end_token;
  }

  if (!folded || n_splits == 1) return;
  const int n_blocks = n_splits < static_cast<int>(gridDim.x) ? n_splits : static_cast<int>(gridDim.x);
  if (!is_last_block(p, n_blocks, is_last, tid)) return;
#pragma unroll 1
  for (int r = warp; r < n_rows; r += kWarps) {
    const int t = rows[0].place[r].x, kv_len = slice.pos + t + 1;
    if (kv_len <= kPageTokens) continue;
    sum_splits<D>(p, slice.first_row + t, decode_row[0] + t, rows[0].place[r].y, splits_of(kv_len), lane);
  }
}

template <int D>
__global__ void __launch_bounds__(kThreads) sum_kernel(AttentionArgs p) {
  static_assert(kWarps * kChain == kMaxSplits && D <= kThreads);
  constexpr int kQuads = D < 128 ? 1 : D / 128;
  SIMT_SHARED(float4, chains, kWarps * D / 4);
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int t = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  const int decode_row = first_decode_row(p.batch, static_cast<int>(blockIdx.z), lane) + t;
  simt::wait_for_previous();
  simt::allow_next();
  const int kv_len = slice.pos + t + 1;
  if (slice.n_tokens > kMaxDecodeTokens || t >= slice.n_tokens || kv_len <= kPageTokens) return;
  const int n = splits_of(kv_len);
  const int64_t index = partial_index(p, decode_row, head), row = slice.first_row + t;
  const float gate = p.gated && tid < D ? query(p, row, head)[D + tid] : 0.0f;
  // A warp takes a chain; everything that a thread will need is loaded at once.
  const bool has_columns = lane * 4 < D;
  const float4* partials = reinterpret_cast<const float4*>(p.scratch + index * D) + lane;
  const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  float4 x[kChain][kQuads], chain[kQuads];
#pragma unroll
  for (int i = 0; i < kChain; ++i) {
    const int s = warp * kChain + i;
#pragma unroll
    for (int j = 0; j < kQuads; ++j) x[i][j] = s < n && has_columns ? partials[s * (D / 4) + j * 32] : zero;
  }
  const SplitFactors factors(p, index, n, head, lane);
#pragma unroll
  for (int j = 0; j < kQuads; ++j) chain[j] = zero;
#pragma unroll
  for (int i = 0; i < kChain; ++i) {
    const float factor = factors.of(warp * kChain + i);
#pragma unroll
    for (int j = 0; j < kQuads; ++j) add_scaled(chain[j], factor, x[i][j]);
  }
#pragma unroll
  for (int j = 0; j < kQuads; ++j) {
    if (has_columns) chains[warp * (D / 4) + j * 32 + lane] = chain[j];
  }
  __syncthreads();
  if (tid < D) {
    const float* of_chain = reinterpret_cast<const float*>(chains) + tid;
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < kWarps; ++c) sum += of_chain[c * D];
    p.out[row * p.out_stride + head * D + tid] = finished(p, sum, factors.scale, gate);
  }
}

template <int D, bool kHalves>
Status launch(const Stream& stream, const AttentionArgs& args) {
  const int group = args.n_heads / args.n_kv_heads;
  const int n_pages = simt::div_up(args.max_decode_kv, kPageTokens);
  const int n_tiles = simt::div_up(args.max_decode_tokens * group, kQueryRows);
  const int n_splits = n_pages < kMaxSplits ? n_pages : kMaxSplits;
  const bool folded = n_splits <= kFoldedSplits;
  const dim3 grid(static_cast<unsigned>(n_splits), static_cast<unsigned>(args.n_kv_heads * n_tiles),
                  static_cast<unsigned>(args.batch.n_slices));
  const size_t bytes = static_cast<size_t>(DecodeMemory<D, kHalves>::bytes(args));
  TRY(simt::launch(split_kernel<D, kHalves>, {grid, kThreads, bytes, stream, args.dependent}, args, folded));
  if (folded) return Ok{};
  const dim3 rows(static_cast<unsigned>(args.max_decode_tokens), static_cast<unsigned>(args.n_heads),
                  static_cast<unsigned>(args.batch.n_slices));
  return simt::launch(sum_kernel<D>, {rows, kThreads, 0, stream, args.dependent}, args);
}

template <int D>
Status launch(const Stream& stream, const AttentionArgs& args) {
  const bool halves = args.k_type == DType::F16 && args.v_type == DType::F16;
  return halves ? launch<D, true>(stream, args) : launch<D, false>(stream, args);
}

}  // namespace

Status decode_attention(const Stream& stream, const AttentionArgs& args) {
  if (args.head_dim_k == 256) return launch<256>(stream, args);
  return args.head_dim_k == 128 ? launch<128>(stream, args) : launch<64>(stream, args);
}

}  // namespace chimere::cuda::attention_detail
