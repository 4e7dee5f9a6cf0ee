// gdn_chunk.cu  Gated DeltaNet, prefill class, in chunks of 64 tokens on tensor cores.
//
// Chunks end at multiples of 64 of the absolute position. With G the running sum of log decays inside a chunk, S the
// state that enters it, K and Q the normalised rows, D[i][j] = exp(G_i - G_j):
//   T = (I + strictly_lower(diag(beta) K K^T .* D))^-1           M = lower(Q K^T .* D)
//   X = T diag(beta) (V - diag(exp G) K S)                       O = diag(exp G) Q S + M X
//   S <- exp(G_last) S + K^T diag(exp(G_last - G)) X
// T and M do not depend on S: first launch, all chunks and heads at once. The second walks along the chunks.
// Rows that a short chunk lacks are zeros with beta = 0 and g = 0: they change nothing.
//
// Shapes    q and k [rows, n_key d] f16, v [rows, n_value d] and gates f32, as prepared; per chunk and value head
//           a record: T and M [64, 64] f16, G and beta [64] f32; state f32
// Bytes     first: 32 KiB in and 16.5 KiB out per chunk and head; second: 56 KiB per chunk, head and 32 columns, mostly
//           from L2
// Launch    first: grid (chunks, n_value, slices), block 128, smem 34 KiB. second: grid (n_value, d / 32, slices),
//           block 128: a warp owns 16 tokens and d / 4 rows of the state, the state in registers; smem 1 or 2 stages of
//           58 KiB + 25 KiB
// Numerics  factors of products f16, sums, decays, T's inverse and the state f32
#include "backend/cuda/kernels/common/half_tiles.h"
#include "backend/cuda/kernels/recurrence/gdn_device.h"
#include "backend/cuda/kernels/recurrence/gdn_prefill.h"

namespace chimere::cuda::gdn {
namespace {

using half_tiles::load_a;
using half_tiles::load_b;
using half_tiles::mma_pair;
using half_tiles::pack_halves;
using half_tiles::tile_offset;

constexpr int kChunk = 64;
constexpr int kColumns = 32;
constexpr int kThreads = 128;
constexpr int kStride = 40;          // halves of a row of kColumns: eight rows then start in different banks
constexpr int kValueStride = 36;     // floats, likewise
constexpr int kTriangleStride = 68;  // floats of a row of 64

static_assert(kRecordFloats == kChunk * kChunk + 2 * kChunk);

struct Chunk {
  int first;  // of the slice's tokens
  int count;
  int record;  // of the batch's chunks
};

__device__ __forceinline__ int n_chunks(const DeviceSlice& slice) {
  return slice.n_tokens <= kMaxDecodeTokens ? 0 : simt::div_up(slice.pos % kChunk + slice.n_tokens, kChunk);
}

// Chunks of the batch before those of a slice. By a whole warp.
__device__ __forceinline__ int first_chunk(const BatchView& batch, int slice, int lane) {
  int n = 0;
  for (int i = lane; i < slice; i += 32) n += n_chunks(batch.slices[i]);
  return simt::warp_sum(n);
}

__device__ __forceinline__ Chunk chunk_of(const DeviceSlice& slice, int first_record, int i) {
  const int begin = i * kChunk - slice.pos % kChunk, end = begin + kChunk;
  const int first = begin > 0 ? begin : 0, last = end < slice.n_tokens ? end : slice.n_tokens;
  return {first, last - first, first_record + i};
}

__device__ __forceinline__ float* record_of(const GdnArgs& p, int chunk, int head) {
  return p.scratch + int64_t{p.batch.n_rows} * prepared_stride(p) +
         (int64_t{chunk} * p.n_value_heads + head) * kRecordFloats;
}

// Starts copying the chunk's rows of one head vector of halves, swizzled.
template <int D>
__device__ __forceinline__ void issue_rows(const GdnArgs& p, const float* rows, int channel, int count, std::byte* to,
                                           int tid) {
  const int64_t stride = prepared_stride(p);
  for (int i = tid; i < kChunk * D / 8; i += kThreads) {
    const int t = i / (D / 8), chunk = i % (D / 8), from = t < count ? t : 0;
    const __half* row = reinterpret_cast<const __half*>(rows + from * stride);
    simt::cp_async16(to + tile_offset<D>(t, chunk), row + channel + chunk * 8, t < count);
  }
}

// T <- (I + A)^-1 for strictly lower A, both [64][kTriangleStride]: blocks of 16 on the diagonal by substitution, then
// T_ij = -T_ii sum_k A_ik T_kj down each column of blocks, a warp a column.
__device__ __forceinline__ void invert(const float* a, float* t, int warp, int lane) {
  if (lane < 16) {
    const float* block = a + warp * 16 * (kTriangleStride + 1);
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float sum = i == lane ? 1.0f : 0.0f;
#pragma unroll
      for (int j = 0; j < i; ++j) sum = fmaf(-block[i * kTriangleStride + j], x[j], sum);
      x[i] = sum;
      t[(warp * 16 + i) * kTriangleStride + warp * 16 + lane] = sum;
    }
  }
  __syncthreads();
  const int r = lane / 2, c = warp * 16 + lane % 2 * 8;
  const auto multiply = [&](float(&sum)[8], const float* row, const float* matrix) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      const float x = row[k];
      const float4* y = reinterpret_cast<const float4*>(matrix + k * kTriangleStride);
      const float4 low = y[0], high = y[1];
      sum[0] = fmaf(x, low.x, sum[0]);
      sum[1] = fmaf(x, low.y, sum[1]);
      sum[2] = fmaf(x, low.z, sum[2]);
      sum[3] = fmaf(x, low.w, sum[3]);
      sum[4] = fmaf(x, high.x, sum[4]);
      sum[5] = fmaf(x, high.y, sum[5]);
      sum[6] = fmaf(x, high.z, sum[6]);
      sum[7] = fmaf(x, high.w, sum[7]);
    }
  };
  const auto store = [&](const float(&sum)[8], float sign, float* to) {
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i] = sign * sum[i];
  };
  for (int i = warp + 1; i < kChunk / 16; ++i) {
    float* to = t + (i * 16 + r) * kTriangleStride + c;
    float sum[8] = {};
    for (int j = warp; j < i; ++j) {
      multiply(sum, a + (i * 16 + r) * kTriangleStride + j * 16, t + j * 16 * kTriangleStride + c);
    }
    store(sum, 1.0f, to);
    __syncwarp();
    float product[8] = {};
    multiply(product, t + (i * 16 + r) * kTriangleStride + i * 16, t + i * 16 * kTriangleStride + c);
    __syncwarp();
    store(product, -1.0f, to);
    __syncwarp();
  }
}

template <int D>
__global__ void __launch_bounds__(kThreads) triangles_kernel(GdnArgs p) {
  SIMT_SHARED(float, g, kChunk);
  SIMT_SHARED(float, beta, kChunk);
  simt::allow_next();
  simt::wait_for_previous();
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const int head = static_cast<int>(blockIdx.y);
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  if (static_cast<int>(blockIdx.x) >= n_chunks(slice)) return;
  const Chunk chunk =
      chunk_of(slice, first_chunk(p.batch, static_cast<int>(blockIdx.z), lane), static_cast<int>(blockIdx.x));
  const float* rows = p.scratch + (slice.first_row + chunk.first) * prepared_stride(p);
  std::byte* keys = simt::dynamic_shared<std::byte>();
  std::byte* queries = keys + kChunk * D * 2;
  issue_rows<D>(p, rows, (p.n_key_heads + key_head(p, head)) * D, chunk.count, keys, tid);
  issue_rows<D>(p, rows, key_head(p, head) * D, chunk.count, queries, tid);
  simt::cp_async_commit();

  float* record = record_of(p, chunk.record, head);
  if (warp == 0) {
    const auto gate = [&](int t, int which) {
      const float* row = rows + t * prepared_stride(p) + p.channels() + which * p.n_value_heads + head;
      return t < chunk.count ? *row : 0.0f;
    };
    // Inclusive sums: two neighbours a lane, then over the lanes.
    const float first = gate(2 * lane, 0);
    const float pair = first + gate(2 * lane + 1, 0);
    float sum = pair;
    for (int step = 1; step < 32; step *= 2) {
      const float before = __shfl_up_sync(simt::kAllLanes, sum, static_cast<unsigned>(step));
      if (lane >= step) sum += before;
    }
    float before = __shfl_up_sync(simt::kAllLanes, sum, 1u);
    if (lane == 0) before = 0.0f;
    g[2 * lane] = before + first;
    g[2 * lane + 1] = sum;
    beta[2 * lane] = gate(2 * lane, 1);
    beta[2 * lane + 1] = gate(2 * lane + 1, 1);
  }
  simt::cp_async_wait<0>();
  __syncthreads();
  if (tid < kChunk) {
    record[kChunk * kChunk + tid] = g[tid];
    record[kChunk * kChunk + kChunk + tid] = beta[tid];
  }

  // Sixteen rows a warp; blocks of eight columns up to the diagonal.
  float kk[8][4] = {}, qk[8][4] = {};
  for (int step = 0; step < D / 16; ++step) {
    uint32_t k[4], q[4];
    load_a<D>(k, keys, warp * 16, step, lane);
    load_a<D>(q, queries, warp * 16, step, lane);
#pragma unroll
    for (int b = 0; b < 8; b += 2) {
      if (b > 2 * warp) break;
      uint32_t other[4];
      load_b<D>(other, keys, b * 8, step, lane);
      mma_pair(kk[b], kk[b + 1], k, other);
      mma_pair(qk[b], qk[b + 1], q, other);
    }
  }
  __syncthreads();  // keys and queries are done with: their place is taken
  float* a = simt::dynamic_shared<float>();
  float* t = a + kChunk * kTriangleStride;
  __half* to_t = reinterpret_cast<__half*>(record);
  __half* to_m = to_t + kChunk * kChunk;
#pragma unroll
  for (int b = 0; b < 8; ++b) {
    if (b > 2 * warp + 1) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = warp * 16 + lane / 4 + half * 8, j = b * 8 + lane % 4 * 2;
      const float low = i >= j ? expf(g[i] - g[j]) : 0.0f, high = i >= j + 1 ? expf(g[i] - g[j + 1]) : 0.0f;
      a[i * kTriangleStride + j] = i > j ? beta[i] * kk[b][2 * half] * low : 0.0f;
      a[i * kTriangleStride + j + 1] = i > j + 1 ? beta[i] * kk[b][2 * half + 1] * high : 0.0f;
      *reinterpret_cast<uint32_t*>(to_m + i * kChunk + j) =
          pack_halves(qk[b][2 * half] * low, qk[b][2 * half + 1] * high);
    }
  }
  __syncthreads();
  invert(a, t, warp, lane);
  __syncthreads();
  for (int i = tid; i < kChunk * kChunk / 2; i += kThreads) {
    const int row = i / (kChunk / 2), column = i % (kChunk / 2) * 2;
    if (column / 16 > row / 16) continue;  // never read
    const float* x = t + row * kTriangleStride + column;
    *reinterpret_cast<uint32_t*>(to_t + row * kChunk + column) = pack_halves(x[0], x[1]);
  }
}

// Where a stage of the walk keeps its inputs, in bytes.
template <int D>
struct Stage {
  static constexpr int kQueries = kChunk * D * 2;
  static constexpr int kT = 2 * kQueries;
  static constexpr int kM = kT + kChunk * kChunk * 2;
  static constexpr int kGates = kM + kChunk * kChunk * 2;
  static constexpr int kValues = kGates + 2 * kChunk * 4;
  static constexpr int kBytes = kValues + kChunk * kValueStride * 4;
  // What the block keeps beside its stages: the state, R, X and X decayed to the chunk's end, as halves.
  static constexpr int kOwnBytes = (D + 3 * kChunk) * kStride * 2;
};

// b of 16 rows and 32 columns of halves [.][kStride]: four blocks of eight columns.
__device__ __forceinline__ void load_columns(uint32_t (&b)[2][4], const __half* rows, int lane) {
  const __half* at = rows + (lane / 8 % 2 * 8 + lane % 8) * kStride + lane / 16 * 8;
  simt::ldmatrix_x4_trans(b[0], at);
  simt::ldmatrix_x4_trans(b[1], at + 16);
}

// d [16][32] += a b
__device__ __forceinline__ void multiply(float (&d)[4][4], const uint32_t (&a)[4], const uint32_t (&b)[2][4]) {
  mma_pair(d[0], d[1], a, b[0]);
  mma_pair(d[2], d[3], a, b[1]);
}

// A chunk in its stage.
template <int D>
struct StagedChunk {
  using Layout = Stage<D>;
  const std::byte *keys, *queries, *t, *m;  // swizzled tiles
  const float *g, *beta;                    // [kChunk]
  const float* values;                      // [kChunk][kValueStride]

  __device__ __forceinline__ explicit StagedChunk(const std::byte* at)
      : keys(at),
        queries(at + Layout::kQueries),
        t(at + Layout::kT),
        m(at + Layout::kM),
        g(reinterpret_cast<const float*>(at + Layout::kGates)),
        beta(g + kChunk),
        values(reinterpret_cast<const float*>(at + Layout::kValues)) {}
};

struct Place {
  int tid, lane, warp;
  int head, first_column;
};

// A block's way along the chunks of a slice: 32 columns of a value head.
template <int D, int kStages>
struct Walk {
  static constexpr int kStateTiles = D / 64;  // of sixteen rows, of a warp
  using Layout = Stage<D>;
  using State = float[kStateTiles][4][4];
  using Rows = float[4][4];  // sixteen tokens and 32 columns, of a warp
  const GdnArgs& p;
  const DeviceSlice& slice;
  const Place& at;
  int first_record;
  __half* state16;  // [D][kStride]
  __half* r16;      // [kChunk][kStride], likewise the next two
  __half* x16;
  __half* rest16;  // X decayed to the chunk's end
  std::byte* stages;
  int low, c;  // a lane holds columns c, c + 1 of each block of eight, of rows low and low + 8 of a tile
  float* state;

  __device__ __forceinline__ Walk(const GdnArgs& args, const DeviceSlice& of, const Place& place, int record,
                                  std::byte* shared)
      : p(args),
        slice(of),
        at(place),
        first_record(record),
        state16(reinterpret_cast<__half*>(shared)),
        r16(state16 + D * kStride),
        x16(r16 + kChunk * kStride),
        rest16(x16 + kChunk * kStride),
        stages(shared + Layout::kOwnBytes),
        low(at.lane / 4),
        c(at.lane % 4 * 2),
        state(slice.recurrent + p.matrix_offset + int64_t{at.head} * D * D + at.first_column + c) {}

  __device__ __forceinline__ std::byte* stage(int i) const { return stages + i % kStages * Layout::kBytes; }
  __device__ __forceinline__ int row_of(int half) const { return at.warp * 16 + low + half * 8; }
  __device__ __forceinline__ int state_row(int tile, int half) const {
    return (at.warp * kStateTiles + tile) * 16 + low + half * 8;
  }

  // Starts copying a chunk to its stage.
  __device__ void load(int i) const {
    const Chunk chunk = chunk_of(slice, first_record, i);
    const int64_t stride = prepared_stride(p);
    const float* rows = p.scratch + (slice.first_row + chunk.first) * stride;
    const std::byte* record = reinterpret_cast<const std::byte*>(record_of(p, chunk.record, at.head));
    std::byte* to = stages + i % kStages * Layout::kBytes;
    issue_rows<D>(p, rows, (p.n_key_heads + key_head(p, at.head)) * D, chunk.count, to, at.tid);
    issue_rows<D>(p, rows, key_head(p, at.head) * D, chunk.count, to + Layout::kQueries, at.tid);
    for (int e = at.tid; e < 2 * kChunk * kChunk / 8; e += kThreads) {  // T and M
      const int row = e / 8 % kChunk, which = e / 8 / kChunk;
      if (e % 8 / 2 > row / 16) continue;  // above the diagonal: neither written nor read
      simt::cp_async16(to + Layout::kT + which * kChunk * kChunk * 2 + tile_offset<kChunk>(row, e % 8),
                       record + e * 16);
    }
    if (at.tid < 2 * kChunk / 4) {
      simt::cp_async16(to + Layout::kGates + at.tid * 16, record + 2 * kChunk * kChunk * 2 + at.tid * 16);
    }
    const float* values = rows + (2 * p.n_key_heads + at.head) * D + at.first_column;
    for (int e = at.tid; e < kChunk * kColumns / 4; e += kThreads) {
      const int t = e / (kColumns / 4), x = e % (kColumns / 4) * 4, from = t < chunk.count ? t : 0;
      simt::cp_async16(to + Layout::kValues + (t * kValueStride + x) * 4, values + from * stride + x, t < chunk.count);
    }
  }

  __device__ __forceinline__ void load_state(State& s) const {
#pragma unroll
    for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
      for (int b = 0; b < 4; ++b) {
#pragma unroll
        for (int j = 0; j < 4; ++j) s[tile][b][j] = state[state_row(tile, j / 2) * D + b * 8 + j % 2];
      }
    }
  }

  __device__ __forceinline__ void store_state(const State& s) const {
#pragma unroll
    for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
      for (int b = 0; b < 4; ++b) {
#pragma unroll
        for (int j = 0; j < 4; ++j) state[state_row(tile, j / 2) * D + b * 8 + j % 2] = s[tile][b][j];
      }
    }
  }

  // The state as halves, for the products of the next chunk.
  __device__ void keep_halves(const State& s) const {
#pragma unroll
    for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
      for (int b = 0; b < 4; ++b) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          *reinterpret_cast<uint32_t*>(state16 + state_row(tile, half) * kStride + b * 8 + c) =
              pack_halves(s[tile][b][2 * half], s[tile][b][2 * half + 1]);
        }
      }
    }
  }

  // R = diag(beta) (V - diag(exp G) K S), to shared memory;   O = diag(exp G) Q S
  __device__ __forceinline__ void ask_state(const StagedChunk<D>& chunk, Rows& o) const {
    float ks[4][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; ++step) {
      uint32_t k[4], q[4], b[2][4];
      load_a<D>(k, chunk.keys, at.warp * 16, step, at.lane);
      load_a<D>(q, chunk.queries, at.warp * 16, step, at.lane);
      load_columns(b, state16 + step * 16 * kStride, at.lane);
      multiply(ks, k, b);
      multiply(o, q, b);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half);
      const float decay = expf(chunk.g[row]), strength = chunk.beta[row];
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const float2 v = *reinterpret_cast<const float2*>(chunk.values + row * kValueStride + b * 8 + c);
        *reinterpret_cast<uint32_t*>(r16 + row * kStride + b * 8 + c) =
            pack_halves(strength * (v.x - decay * ks[b][2 * half]), strength * (v.y - decay * ks[b][2 * half + 1]));
        o[b][2 * half] *= decay;
        o[b][2 * half + 1] *= decay;
      }
    }
  }

  // d += (lower triangle) (rows of shared memory)
  __device__ __forceinline__ void add_triangle(Rows& d, const std::byte* triangle, const __half* rows) const {
    for (int step = 0; step <= at.warp; ++step) {
      uint32_t a[4], b[2][4];
      load_a<kChunk>(a, triangle, at.warp * 16, step, at.lane);
      load_columns(b, rows + step * 16 * kStride, at.lane);
      multiply(d, a, b);
    }
  }

  // X = T R, to shared memory, as it is and decayed to the chunk's end.
  __device__ __forceinline__ void solve(const StagedChunk<D>& chunk, float last) const {
    float x[4][4] = {};
    add_triangle(x, chunk.t, r16);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half);
      const float rest = expf(last - chunk.g[row]);
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        const float x0 = x[b][2 * half], x1 = x[b][2 * half + 1];
        *reinterpret_cast<uint32_t*>(x16 + row * kStride + b * 8 + c) = pack_halves(x0, x1);
        *reinterpret_cast<uint32_t*>(rest16 + row * kStride + b * 8 + c) = pack_halves(rest * x0, rest * x1);
      }
    }
  }

  __device__ __forceinline__ void store_out(int i, const Rows& o) const {
    const Chunk chunk = chunk_of(slice, first_record, i);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_of(half);
      if (row >= chunk.count) continue;
      float* out = p.out + (slice.first_row + chunk.first + row) * p.out_stride + at.head * D + at.first_column + c;
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        *reinterpret_cast<float2*>(out + b * 8) = make_float2(o[b][2 * half], o[b][2 * half + 1]);
      }
    }
  }

  // S <- exp(G_last) S + K^T diag(exp(G_last - G)) X
  __device__ __forceinline__ void update_state(const StagedChunk<D>& chunk, float last, State& s) const {
    const float decay = expf(last);
#pragma unroll
    for (int tile = 0; tile < kStateTiles; ++tile) {
#pragma unroll
      for (int b = 0; b < 4; ++b) {
#pragma unroll
        for (int j = 0; j < 4; ++j) s[tile][b][j] *= decay;
      }
    }
#pragma unroll
    for (int step = 0; step < kChunk / 16; ++step) {
      uint32_t b[2][4];
      load_columns(b, rest16 + step * 16 * kStride, at.lane);
#pragma unroll
      for (int tile = 0; tile < kStateTiles; ++tile) {
        // K^T out of K: rows of the fragment are columns of the tile.
        uint32_t a[4];
        const int m8 = at.lane / 8;
        simt::ldmatrix_x4_trans(a, chunk.keys + tile_offset<D>(step * 16 + m8 / 2 * 8 + at.lane % 8,
                                                               (at.warp * kStateTiles + tile) * 2 + m8 % 2));
        multiply(s[tile], a, b);
      }
    }
  }
};

template <int D, int kStages>
__global__ void __launch_bounds__(kThreads) walk_kernel(GdnArgs p) {
  simt::allow_next();
  simt::wait_for_previous();
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, warp = tid / 32;
  const Place at{tid, lane, warp, static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y) * kColumns};
  const DeviceSlice slice = p.batch.slices[blockIdx.z];
  const int n = n_chunks(slice);
  if (n == 0) return;
  const int first_record = first_chunk(p.batch, static_cast<int>(blockIdx.z), lane);
  const Walk<D, kStages> walk(p, slice, at, first_record, simt::dynamic_shared<std::byte>());
  float s[D / 64][4][4];
  walk.load_state(s);
  walk.keep_halves(s);
  if (kStages == 2) {
    walk.load(0);
    simt::cp_async_commit();
  }
  for (int i = 0; i < n; ++i) {
    if (kStages == 1) {
      __syncthreads();  // the stage is done with
      walk.load(i);
      simt::cp_async_commit();
    }
    simt::cp_async_wait<0>();
    __syncthreads();
    if (kStages == 2 && i + 1 < n) {
      walk.load(i + 1);
      simt::cp_async_commit();
    }
    const StagedChunk<D> chunk(walk.stage(i));
    const float last = chunk.g[kChunk - 1];
    float o[4][4] = {};
    walk.ask_state(chunk, o);
    __syncthreads();
    walk.solve(chunk, last);
    __syncthreads();
    walk.add_triangle(o, chunk.m, walk.x16);
    walk.store_out(i, o);
    walk.update_state(chunk, last, s);
    walk.keep_halves(s);
  }
  walk.store_state(s);
}

template <int D>
Status launch(const Stream& stream, const GdnArgs& args) {
  const int max_tokens = args.max_prefill_tokens > 0 ? args.max_prefill_tokens : args.batch.n_rows;
  const unsigned n_heads = static_cast<unsigned>(args.n_value_heads),
                 n_slices = static_cast<unsigned>(args.batch.n_slices);
  const unsigned most = static_cast<unsigned>(simt::div_up(max_tokens + kChunk - 1, kChunk));
  constexpr size_t kTriangles = 2 * kChunk * kTriangleStride * sizeof(float), kTiles = 2 * kChunk * D * 2;
  TRY(simt::launch(
      triangles_kernel<D>,
      {dim3(most, n_heads, n_slices), kThreads, kTiles > kTriangles ? kTiles : kTriangles, stream, args.dependent},
      args));
  const dim3 grid(n_heads, D / kColumns, n_slices);
  constexpr size_t kOne = Stage<D>::kOwnBytes + Stage<D>::kBytes, kTwo = kOne + Stage<D>::kBytes;
  if (kTwo <= simt::shared_limit()) {
    return simt::launch(walk_kernel<D, 2>, {grid, kThreads, kTwo, stream, args.dependent}, args);
  }
  return simt::launch(walk_kernel<D, 1>, {grid, kThreads, kOne, stream, args.dependent}, args);
}

}  // namespace

Status launch_chunks(const Stream& stream, const GdnArgs& args) {
  return args.d_head == 128 ? launch<128>(stream, args) : launch<64>(stream, args);
}

}  // namespace chimere::cuda::gdn
