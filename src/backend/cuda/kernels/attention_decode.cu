// attention_decode.cu  Attention of the decode class: softmax(q k scale) v over splits of the context, then their sum.
// Shapes    as attention.cu, head_dim 64, 128 or 256 for keys and values; partials [rows, n_heads, splits, d] f32
// Bytes     a slice: its context's keys and values once per 16 / group tokens; 33 MB a layer at 16K of f16 for 2 heads
//           of 256
// Launch    splits: grid (splits, n_kv_heads x tiles of 16 query rows, slices), block 256, smem 2 or 3 stages of 32
//           tokens; scores: a warp 8 tokens and half the head; outputs: a warp d/8 columns. sum: grid (tokens, n_heads,
//           slices), block 256
// Order     A block stores the new keys and values that lie in its split before it reads them: no launch of their own.
//           Tiles of old tokens, norm weights and angles are ready before waiting for the kernel before.
// Numerics  q, k, v and weights f16, sums and softmax f32. Split and tile borders depend on a row's position alone.
// Measured  H200, 16 heads of 256 on 2 KV heads, short context, in a chain: 8.9 us for both launches, 12.1 for 32
// slices
#include "backend/cuda/kernels/attention_fast.h"
#include "backend/cuda/kernels/attention_tiles.h"

namespace chimere::cuda::attention_detail {
namespace {

using half_tiles::load_a;
using half_tiles::load_b_transposed;
using half_tiles::mma_pair;
using half_tiles::pack_halves;

constexpr int kQueryRows = 16;
constexpr int kWeightStride = 40;  // halves: rows of weights then start in different banks
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kScoreStride = kTileTokens + 1;

__device__ __forceinline__ int split_tokens(int kv_len) {
  return simt::div_up(simt::div_up(kv_len, kPageTokens), kMaxSplits) * kPageTokens;
}

// Decode rows of the batch before those of a slice. By a whole warp.
__device__ __forceinline__ int first_decode_row(const BatchView& batch, int slice, int lane) {
  int n = 0;
  for (int i = lane; i < slice; i += 32) {
    const int tokens = batch.slices[i].n_tokens;
    n += tokens <= kMaxDecodeTokens ? tokens : 0;
  }
  return simt::warp_sum(n);
}

// Of a decode row and head; the statistics of all rows lie behind the outputs of all rows.
__device__ __forceinline__ int64_t partial_index(const AttentionArgs& p, int decode_row, int head) {
  return (int64_t{decode_row} * p.n_heads + head) * kMaxSplits;
}
__device__ __forceinline__ float* partial_stats(const AttentionArgs& p, int64_t index) {
  return p.scratch + int64_t{p.max_decode_rows} * p.n_heads * kMaxSplits * p.head_dim_v + index * 2;
}

// prepare_head() with everything that does not come from the kernel before already in registers: norm weights, and the
// rotation at one position, nearly always the one asked for.
template <int D>
struct Preparation {
  float q_norm[D / 32], k_norm[D / 32];
  float sin[D / 64], cos[D / 64];
  int known_pos;

  __device__ Preparation(const AttentionArgs& p, int pos, int lane) : known_pos(pos) {
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      q_norm[i] = p.q_norm != nullptr ? p.q_norm[i * 32 + lane] : 1.0f;
      k_norm[i] = p.k_norm != nullptr ? p.k_norm[i * 32 + lane] : 1.0f;
    }
#pragma unroll
    for (int i = 0; i < D / 64; ++i) {
      sin[i] = 0.0f;
      cos[i] = 1.0f;
      if (p.inv_freq != nullptr && i * 32 + lane < p.n_rot / 2) rotation(p, pos, i * 32 + lane, sin[i], cos[i]);
    }
  }
  __device__ static void rotation(const AttentionArgs& p, int pos, int pair, float& sin, float& cos) {
    sincosf(static_cast<float>(pos) * p.inv_freq[pair], &sin, &cos);
    sin *= p.rope_magnitude;
    cos *= p.rope_magnitude;
  }
  __device__ void run(const AttentionArgs& p, const float* from, bool has_norm, const float (&norm)[D / 32], int pos,
                      float* head, int lane) const {
    float x[D / 32];
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      x[i] = from[i * 32 + lane];
      squares = fmaf(x[i], x[i], squares);
    }
    if (has_norm) {
      const float inv = 1.0f / sqrtf(simt::warp_sum(squares) / static_cast<float>(D) + p.eps);
#pragma unroll
      for (int i = 0; i < D / 32; ++i) x[i] = x[i] * inv * norm[i];
    }
#pragma unroll
    for (int i = 0; i < D / 32; ++i) head[i * 32 + lane] = x[i];
    __syncwarp();
    if (p.inv_freq != nullptr) {
      const int half = p.n_rot / 2;
#pragma unroll
      for (int i = 0; i < D / 64; ++i) {
        const int pair = i * 32 + lane;
        if (pair >= half) continue;
        float s = sin[i], c = cos[i];
        if (pos != known_pos) rotation(p, pos, pair, s, c);
        const int first = p.rope_adjacent ? 2 * pair : pair, second = p.rope_adjacent ? 2 * pair + 1 : pair + half;
        const float a = head[first], b = head[second];
        head[first] = a * c - b * s;
        head[second] = b * c + a * s;
      }
      __syncwarp();
    }
    if (p.rotate) hadamard(head, D, lane);
  }
};

template <int D, int kStages>
__global__ void __launch_bounds__(kThreads) split_kernel(AttentionArgs p) {
  constexpr int kBlocks = D / 64;  // of eight output columns, of a warp
  SIMT_SHARED(float, heads, kWarps* D);
  SIMT_SHARED(float, scores, 2 * kQueryRows * kScoreStride);  // of each half of the head
  SIMT_SHARED(uint4, weights4, kQueryRows * kWeightStride / 8);
  SIMT_SHARED(float, row_max, kQueryRows);
  SIMT_SHARED(float, row_sum, kQueryRows);
  SIMT_SHARED(float, row_keep, kQueryRows);
  std::byte* shared = simt::dynamic_shared<std::byte>();
  __half* weights = reinterpret_cast<__half*>(weights4);

  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int group = p.n_heads / p.n_kv_heads;
  const int n_tiles = static_cast<int>(gridDim.y) / p.n_kv_heads;
  const int kv_head = static_cast<int>(blockIdx.y) / n_tiles;
  const int first_row =
      static_cast<int>(blockIdx.y) % n_tiles * kQueryRows;  // of the slice's rows token * group + head
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  const int n_rows = slice.n_tokens * group;
  if (slice.n_tokens > kMaxDecodeTokens || first_row >= n_rows) {
    simt::wait_for_previous();
    return;
  }
  const int last_row = first_row + kQueryRows < n_rows ? first_row + kQueryRows - 1 : n_rows - 1;
  const int first_token = first_row / group, last_token = last_row / group;
  const int decode_row = first_decode_row(p.batch, static_cast<int>(blockIdx.z), lane);
  const Tiles<D, kStages, kThreads> tiles{p, slice, kv_head, TileMemory<D>(p, kQueryRows), shared, tid};

  const Preparation<D> preparation(p, slice.pos + first_token, lane);

  bool prepared = false;
  // Tokens of equal split size together; the size grows so rarely that there is nearly always one such run.
  for (int begin_token = first_token; begin_token <= last_token;) {
    const int size = split_tokens(slice.pos + begin_token + 1);
    int end_token = begin_token + 1;
    while (end_token <= last_token && split_tokens(slice.pos + end_token + 1) == size) ++end_token;
    const int kv_len = slice.pos + end_token;  // of the run's last token

    for (int split = static_cast<int>(blockIdx.x); split * size < kv_len; split += static_cast<int>(gridDim.x)) {
      const int split_begin = split * size, end = split_begin + size < kv_len ? split_begin + size : kv_len;
      // Tiles that no row of the run sees would add nothing.
      const int lowest = first_seen_by(p, slice.pos + begin_token) / kTileTokens * kTileTokens;
      const int begin = lowest > split_begin ? (lowest < end ? lowest : end) : split_begin;
      const int n = simt::div_up(end - begin, kTileTokens);
      const auto is_old = [&](int i) {
        const int tile_end = begin + (i + 1) * kTileTokens;
        return (tile_end < end ? tile_end : end) <= slice.pos;
      };
      const auto issue = [&](int i) { tiles.issue(i, begin + i * kTileTokens, end); };

      __syncthreads();  // the tiles and statistics of the split before are done with
      for (int i = 0; i < kStages - 1 && i < n; ++i) {
        if (is_old(i)) issue(i);
      }
      if (!prepared) {
        simt::wait_for_previous();
        simt::allow_next();
      }
      // Keys, then values of the new tokens that lie in the split; then, the first time, the queries.
      const int first_new = split_begin > slice.pos ? split_begin - slice.pos : 0;
      const int n_new = end - slice.pos > first_new ? end - slice.pos - first_new : 0;
      const int n_items = 2 * n_new + (prepared ? 0 : kQueryRows);
      prepared = true;
      float* head = heads + warp * D;
      for (int item = warp; item < n_items; item += kWarps) {
        if (item < n_new) {
          const int t = first_new + item;
          preparation.run(p, key(p, slice.first_row + t, kv_head), p.k_norm != nullptr, preparation.k_norm,
                          slice.pos + t, head, lane);
          store_key(p, slice, slice.pos + t, kv_head, head, lane);
        } else if (item < 2 * n_new) {
          store_value(p, slice, first_new + item - n_new, kv_head, lane);
        } else {
          const int r = item - 2 * n_new, row = first_row + r, t = row / group;
          if (row < n_rows) {
            preparation.run(p, query(p, slice.first_row + t, kv_head * group + row % group), p.q_norm != nullptr,
                            preparation.q_norm, slice.pos + t, head, lane);
          }
          if (lane < D / 8) {
            const float scale = p.scale * kLog2E;  // scores come out as powers of two
            const float* x = head + lane * 8;
            uint4 packed = make_uint4(0, 0, 0, 0);
            if (row < n_rows) {
              packed = make_uint4(pack_halves(x[0] * scale, x[1] * scale), pack_halves(x[2] * scale, x[3] * scale),
                                  pack_halves(x[4] * scale, x[5] * scale), pack_halves(x[6] * scale, x[7] * scale));
            }
            *reinterpret_cast<uint4*>(shared + tile_offset<D>(r, lane)) = packed;
          }
        }
        __syncwarp();
      }
      if (tid < kQueryRows) {
        row_max[tid] = kLowest;
        row_sum[tid] = 0.0f;
      }
      __syncthreads();
      for (int i = 0; i < kStages - 1 && i < n; ++i) {
        if (!is_old(i)) issue(i);
      }
      for (int i = 0; i < kStages - 1; ++i) simt::cp_async_commit();  // all in the first group

      float o[kBlocks][4];
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) o[b][0] = o[b][1] = o[b][2] = o[b][3] = 0.0f;

      for (int i = 0; i < n; ++i) {
        simt::cp_async_wait<kStages - 2>();
        __syncthreads();
        if (i + kStages - 1 < n) issue(i + kStages - 1);
        simt::cp_async_commit();
        const int first = begin + i * kTileTokens;
        tiles.decode(i, first, end);

        // A warp takes eight tokens and half of the head.
        float score[2][4] = {};
        const std::byte* keys = tiles.keys(i);
        const int token = warp % 4 * 8, first_step = warp / 4 * (D / 32);
#pragma unroll
        for (int j = 0; j < D / 32; j += 2) {
          uint32_t a0[4], a1[4], b[4];
          const int step = first_step + j;
          load_a<D>(a0, shared, 0, step, lane);
          load_a<D>(a1, shared, 0, step + 1, lane);
          // Four chunks of eight tokens: two steps at once.
          simt::ldmatrix_x4(b, keys + tile_offset<D>(token + lane % 8, 2 * step + lane / 8));
          const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
          simt::mma_f16(score[0], a0, b0);
          simt::mma_f16(score[1], a1, b1);
        }
        float* to = scores + (warp / 4 * kQueryRows + lane / 4) * kScoreStride + token + lane % 4 * 2;
        to[0] = score[0][0] + score[1][0];
        to[1] = score[0][1] + score[1][1];
        to[8 * kScoreStride] = score[0][2] + score[1][2];
        to[8 * kScoreStride + 1] = score[0][3] + score[1][3];
        __syncthreads();

#pragma unroll
        for (int r = warp * 2; r < warp * 2 + 2; ++r) {
          const int seen = slice.pos + (first_row + r) / group + 1, lowest_seen = first_seen_by(p, seen - 1);
          const float* of_row = scores + r * kScoreStride + lane;
          const float sum_of_halves = of_row[0] + of_row[kQueryRows * kScoreStride];
          const bool is_seen = first + lane < seen && first + lane < end && first + lane >= lowest_seen;
          const float s = is_seen ? sum_of_halves : kLowest;
          const float old_max = row_max[r], new_max = fmaxf(old_max, simt::warp_max(s));
          const float weight = s > kLowest ? exp2f(s - new_max) : 0.0f;
          const float sum = simt::warp_sum(weight);
          weights[r * kWeightStride + lane] = __float2half_rn(weight);
          __syncwarp();
          if (lane == 0) {
            const float keep = exp2f(old_max - new_max);
            row_keep[r] = keep;
            row_max[r] = new_max;
            row_sum[r] = row_sum[r] * keep + sum;
          }
        }
        __syncthreads();

        const float keep_low = row_keep[lane / 4], keep_high = row_keep[lane / 4 + 8];
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          o[b][0] *= keep_low;
          o[b][1] *= keep_low;
          o[b][2] *= keep_high;
          o[b][3] *= keep_high;
        }
        const std::byte* values = tiles.values(i);
#pragma unroll
        for (int step = 0; step < kTileTokens / 16; ++step) {
          uint32_t a[4];
          simt::ldmatrix_x4(a, weights + lane % 16 * kWeightStride + step * 16 + lane / 16 * 8);
          if constexpr (kBlocks == 1) {
            uint32_t v[2];
            simt::ldmatrix_x2_trans(v, values + tile_offset<D>(step * 16 + lane % 16, warp));
            simt::mma_f16(o[0], a, v);
          } else {
#pragma unroll
            for (int b = 0; b < kBlocks; b += 2) {
              uint32_t v[4];
              load_b_transposed<D>(v, values, step * 16, warp * kBlocks + b, lane);
              mma_pair(o[b], o[b + 1], a, v);
            }
          }
        }
      }

      const auto is_of_run = [&](int r) {
        const int t = (first_row + r) / group;
        return first_row + r < n_rows && t >= begin_token && t < end_token;
      };
      for (int half = 0; half < 2; ++half) {
        const int r = lane / 4 + half * 8, row = first_row + r;
        if (!is_of_run(r)) continue;
        const int64_t index = partial_index(p, decode_row + row / group, kv_head * group + row % group) + split;
        float* to = p.scratch + index * D + warp * kBlocks * 8 + lane % 4 * 2;
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          *reinterpret_cast<float2*>(to + b * 8) = make_float2(o[b][2 * half], o[b][2 * half + 1]);
        }
      }
      if (tid < kQueryRows && is_of_run(tid)) {
        const int row = first_row + tid;
        const int64_t index = partial_index(p, decode_row + row / group, kv_head * group + row % group) + split;
        float* stats = partial_stats(p, index);
        stats[0] = row_max[tid];
        stats[1] = row_sum[tid];
      }
    }
    begin_token = end_token;
  }
  if (!prepared) simt::wait_for_previous();
}

template <int D>
__global__ void __launch_bounds__(kThreads) sum_kernel(AttentionArgs p) {
  constexpr int kWords = D / 4;  // of four floats, of an output
  constexpr int kGroups = kThreads / kWords;
  SIMT_SHARED(float, factor, kMaxSplits);
  SIMT_SHARED(float4, sums, kThreads);
  simt::wait_for_previous();
  simt::allow_next();
  const int tid = static_cast<int>(threadIdx.x), t = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  if (slice.n_tokens > kMaxDecodeTokens || t >= slice.n_tokens) return;
  const int decode_row = first_decode_row(p.batch, static_cast<int>(blockIdx.z), tid % 32) + t;
  const int kv_len = slice.pos + t + 1, n = simt::div_up(kv_len, split_tokens(kv_len));
  const int64_t index = partial_index(p, decode_row, head);
  const int64_t row = slice.first_row + t;
  const float gate = p.gated && tid < D ? query(p, row, head)[D + tid] : 0.0f;
  float max_score = kLowest, sum = 0.0f;
  if (tid < n) {
    const float* stats = partial_stats(p, index + tid);
    max_score = stats[0];
    sum = stats[1];
  }
  // All that a thread will need is asked for at once.
  const float4* partial = reinterpret_cast<const float4*>(p.scratch + index * D) + tid % kWords;
  const int group = tid / kWords;
  float4 parts[kMaxSplits / kGroups];
#pragma unroll
  for (int i = 0; i < kMaxSplits / kGroups; ++i) {
    const int s = i * kGroups + group;
    parts[i] = s < n ? partial[s * kWords] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  const float sink = p.sinks != nullptr ? p.sinks[head] * kLog2E : kLowest;
  const float top = fmaxf(simt::block_max(max_score), sink);
  const float weight = exp2f(max_score - top);
  if (tid < kMaxSplits) factor[tid] = tid < n ? weight : 0.0f;
  const float total = simt::block_sum(sum * weight) + (p.sinks != nullptr ? exp2f(sink - top) : 0.0f);

  float4 o = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int i = 0; i < kMaxSplits / kGroups; ++i) {
    const float f = factor[i * kGroups + group];
    o.x = fmaf(f, parts[i].x, o.x);
    o.y = fmaf(f, parts[i].y, o.y);
    o.z = fmaf(f, parts[i].z, o.z);
    o.w = fmaf(f, parts[i].w, o.w);
  }
  sums[tid] = o;
  __syncthreads();
  if (tid < D) {
    const float* of_group = reinterpret_cast<const float*>(sums) + tid;
    float x = 0.0f;
    for (int g = 0; g < kGroups; ++g) x += of_group[g * D];
    x /= total;
    if (p.gated) x *= sigmoid(gate);
    p.out[row * p.out_stride + head * D + tid] = x;
  }
}

template <int D>
Status launch(const Stream& stream, const AttentionArgs& args) {
  const int group = args.n_heads / args.n_kv_heads;
  const int n_pages = simt::div_up(args.max_decode_kv, kPageTokens);
  const int n_tiles = simt::div_up(args.max_decode_tokens * group, kQueryRows);
  const dim3 grid(static_cast<unsigned>(n_pages < kMaxSplits ? n_pages : kMaxSplits),
                  static_cast<unsigned>(args.n_kv_heads * n_tiles), static_cast<unsigned>(args.batch.n_slices));
  constexpr int kStaticBytes = 16 << 10;  // more than the kernel's own arrays
  const TileMemory<D> memory(args, kQueryRows);
  const auto bytes = [&](int n_stages) { return static_cast<size_t>(memory.bytes(n_stages)); };
  if (bytes(3) + kStaticBytes <= simt::shared_limit()) {
    TRY(simt::launch(split_kernel<D, 3>, {grid, kThreads, bytes(3), stream, args.dependent}, args));
  } else {
    TRY(simt::launch(split_kernel<D, 2>, {grid, kThreads, bytes(2), stream, args.dependent}, args));
  }
  const dim3 rows(static_cast<unsigned>(args.max_decode_tokens), static_cast<unsigned>(args.n_heads),
                  static_cast<unsigned>(args.batch.n_slices));
  return simt::launch(sum_kernel<D>, {rows, kThreads, 0, stream, args.dependent}, args);
}

}  // namespace

Status decode_attention(const Stream& stream, const AttentionArgs& args) {
  if (args.head_dim_k == 256) return launch<256>(stream, args);
  return args.head_dim_k == 128 ? launch<128>(stream, args) : launch<64>(stream, args);
}

}  // namespace chimere::cuda::attention_detail
