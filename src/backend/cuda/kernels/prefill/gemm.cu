// gemm.cu   out[r,o] = sum_i W[o,i] x[r,i], W quantised, on the tensor cores; also silu(gate x) * (up x); by experts
// Shapes    x [rows, width] f16, each row with a power of two; W of any format; out f32; any rows, outputs, widths
// Bytes     W once per row tile, mostly from the L2 cache; x once per column tile; out once. Prefill of 2048 rows,
//           2048 x 8192: 69 GFLOP over 11.5 MB of Q5_K
// Launch    grid (row tiles, column tiles), row tiles fastest: thread blocks that read the same weights run at the same
//           time. block 256 = 8 warps, each 32 outputs of every other 16 rows; tile (128 or 64) rows x 128 outputs x 64
//           columns, two stages
// Smem      64 rows: 48 KB (56 KB with a codebook), 128 rows: 64 KB (72 KB)
// Numerics  weights are rounded to f16 once (scaled by 256, so that small ones stay normal), f32 accumulation,
//           columns in order: a row's bits depend neither on the tile size nor on the other rows
// Method    while the tensor cores work on one stage, each thread has the packed group of 32 weights of the next stage
//           in flight in registers and x comes by cp.async; then it unpacks the group straight into shared memory. A
//           byte b becomes the half 1024 + b by one byte permutation, so a pair of weights costs three instructions.
// Measured  H200, 2048 rows of Qwen3.5-35B-A3B: Q5_K projections 200 TFLOP/s, IQ3_S experts 100 TFLOP/s with all that
//           belongs to them
//           Tiles of 64 rows of Q4_0 have a kernel of their own: gemm_few.cu
// Rejected  dequantising whole matrices first (3.2 GB of traffic a layer for 256 experts)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/prefill/gemm.h"

#include <cstring>

#include "backend/cuda/kernels/common/decode_group.h"
#include "backend/cuda/kernels/prefill/gemm_halves.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 64;  // of a stage: one group of 32 weights a thread
constexpr int kOutputs = kTileOutputs;
constexpr int kChunks = kColumns / 8;  // of 16 bytes in a row of a stage
constexpr int kBookCopies = 4;         // of IQ3_S's codebook, one to every fourth lane: half the bank conflicts
static_assert(kOutputs * kColumns / kGroup == kThreads);

struct HalfGroup {
  uint32_t pairs[16];  // 32 halves
};

template <int kScales, int kMins>
__device__ __forceinline__ HalfGroup halves_of(const Group& group) {
  const __half2 offset = as_half2(0x64806480u);  // 1024 + 128
  __half2 scale[2], least[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    scale[i] = __float2half2_rn(group.scale[kScales == 2 ? i : 0] * kWeightScale);
    if (kMins > 0) least[i] = __float2half2_rn(group.min[kMins == 2 ? i : 0] * kWeightScale);
  }
  HalfGroup out;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const uint32_t biased = group.q[j] ^ 0x80808080u;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const __half2 q = __hsub2(as_half2(pick_bytes(biased, 0x64646464u, k == 0 ? 0x4140u : 0x4342u)), offset);
      out.pairs[2 * j + k] = as_bits(kMins > 0 ? __hfma2(q, scale[j / 4], least[j / 4]) : __hmul2(q, scale[j / 4]));
    }
  }
  return out;
}

// How a group of 32 weights becomes f16: load() while the stage before is multiplied, unpack() after that.
template <class Format>
struct Packed {
  using Raw = typename Format::Raw;
  static constexpr bool kCodeBook = Format::kType == DType::IQ3_S;
  __device__ static __forceinline__ Raw load(const Weight& w, const uint8_t* row, int g) {
    return Format::load(row, static_cast<uint32_t>(w.width / kGroup), static_cast<uint32_t>(g));
  }
  __device__ static __forceinline__ HalfGroup unpack(const Raw& raw, const Weight& w, const uint32_t* book) {
    Group group;
    if constexpr (kCodeBook) {
      Format::template unpack_from<kBookCopies>(raw, book, group);
    } else {
      Format::unpack(raw, CodeBooks{w.grids, nullptr}, group);
    }
    return halves_of<Format::kScales, Format::kMins>(group);
  }
};

struct Floats {
  using Raw = HalfGroup;
  static constexpr bool kCodeBook = false;
  __device__ static __forceinline__ Raw load(const Weight& w, const uint8_t* row, int g) {
    HalfGroup out;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int at = g * kGroup + 2 * i;
      out.pairs[i] =
          as_bits(__floats2half2_rn(at < w.width ? decode_float(w.type, row, at) * kWeightScale : 0.0f,
                                    at + 1 < w.width ? decode_float(w.type, row, at + 1) * kWeightScale : 0.0f));
    }
    return out;
  }
  __device__ static __forceinline__ HalfGroup unpack(const Raw& raw, const Weight&, const uint32_t*) { return raw; }
};

// Formats without a kernel of their own, and gate and up-projections of two formats: unpacked when they are loaded.
struct AnyPacked {
  using Raw = HalfGroup;
  static constexpr bool kCodeBook = false;
  __device__ static __forceinline__ Raw load(const Weight& w, const uint8_t* row, int g) {
    if (w.is_float()) return Floats::load(w, row, g);
    Group group;
    unpack_any(w.type, row, static_cast<uint32_t>(w.width / kGroup), static_cast<uint32_t>(g), w.grids, group);
    return halves_of<2, 2>(group);
  }
  __device__ static __forceinline__ HalfGroup unpack(const Raw& raw, const Weight&, const uint32_t*) { return raw; }
};

// Rows of a stage are 128 bytes. Their 16-byte chunks are permuted by row, so that ldmatrix, which reads the same chunk
// of eight rows, has no bank conflicts.
__device__ __forceinline__ int place_of(int row, int chunk) { return row * kColumns + ((chunk ^ (row & 7)) * 8); }

template <int kRows>
struct Stages {
  __half x[2][kRows * kColumns];
  __half w[2][kOutputs * kColumns];
};

// Bands of 16 rows go alternately to warps 0 to 3 and 4 to 7, so that both have work where a tile is not full.
__device__ __forceinline__ int band_row(int m) { return (2 * m + static_cast<int>(threadIdx.x) / 128) * 16; }

// sums += x w^T of one stage, on the tensor cores.
template <int kRows>
__device__ __forceinline__ void multiply(const __half* x, const __half* w, int n_bands,
                                         float (&sums)[kRows / 32][4][4]) {
  const int lane = threadIdx.x % 32, first_output = threadIdx.x / 32 % 4 * 32;
  const int matrix = lane / 8, r = lane % 8;
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    uint32_t b[2][4];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      simt::ldmatrix_x4(b[n], w + place_of(first_output + 16 * n + matrix / 2 * 8 + r, 2 * k + matrix % 2));
    }
#pragma unroll
    for (int m = 0; m < kRows / 32; ++m) {
      if (m >= n_bands) continue;  // the same for the whole warp
      uint32_t a[4];
      simt::ldmatrix_x4(a, x + place_of(band_row(m) + matrix % 2 * 8 + r, 2 * k + matrix / 2));
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const uint32_t pair[2] = {b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]};
        simt::mma_f16(sums[m][n], a, pair);
      }
    }
  }
}

template <class Source, int kRows, bool kGated>
__global__ void __launch_bounds__(kThreads, kRows == 64 ? 3 : 2) product_kernel(const __grid_constant__ TileJob job) {
  auto& stages = *simt::dynamic_shared<Stages<kRows>>();
  const int tid = threadIdx.x;
  simt::allow_next();

  // The thread's weight row. Eight rows of the gate projection and the same eight of the up-projection alternate, so
  // that a thread ends with both values of an output.
  const TileOutput& output = find_output(job, blockIdx.y);
  const int column_tile = static_cast<int>(blockIdx.y) - output.first_tile;
  const int tile_row = tid / 2;
  const bool by_turns = kGated && job.up;
  const Weight& weight = by_turns && tile_row / 8 % 2 == 1 ? job.up : output.weight;
  const int weight_row =
      by_turns ? column_tile * (kOutputs / 2) + tile_row / 16 * 8 + tile_row % 8 : column_tile * kOutputs + tile_row;
  const bool in_matrix = weight_row < weight.rows;
  const int n_groups = simt::div_up(job.width, kGroup);
  const int n_steps = simt::div_up(job.width, kColumns);

  const uint32_t* book = nullptr;
  if constexpr (Source::kCodeBook) {
    uint32_t* copies = reinterpret_cast<uint32_t*>(&stages + 1);
    const uint32_t* entries = reinterpret_cast<const uint32_t*>(weight.grids->iq3_s);
    for (int i = tid; i < 512 * kBookCopies; i += kThreads) copies[i] = entries[i / kBookCopies];
    book = copies + tid % kBookCopies;
  }

  simt::wait_for_previous();
  Tile tile;
  if (!find_tile(job, blockIdx.x, kRows, tile)) return;
  const uint8_t* packed = weight.expert_row(tile.expert, in_matrix ? weight_row : 0);

  // The thread's chunks of x: the same chunk of every 32nd row.
  constexpr int kPieces = kRows / (kThreads / kChunks);
  const uint16_t* from[kPieces];
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int r = tid / kChunks + i * (kThreads / kChunks);
    from[i] = r < tile.n_rows ? job.half.data + tile.input_row(job, r) * job.half.stride + tid % kChunks * 8 : nullptr;
  }

  const auto fetch_x = [&](int step) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int r = tid / kChunks + i * (kThreads / kChunks);
      simt::cp_async16(stages.x[step % 2] + place_of(r, tid % kChunks),
                       from[i] ? from[i] + step * kColumns : job.half.data, from[i] != nullptr);
    }
    simt::cp_async_commit();
  };
  // In place of what lies beyond the matrix something inside it is loaded, without a branch, and zeros are stored.
  typename Source::Raw raw;
  bool present = false;
  const auto fetch_w = [&](int step) {
    const int g = 2 * step + tid % 2;
    present = in_matrix && g < n_groups;
    raw = Source::load(weight, packed, min(g, n_groups - 1));
  };
  const auto store_w = [&](int step) {
    HalfGroup group = Source::unpack(raw, weight, book);
    if (!present) group = HalfGroup{};
    __half* to = stages.w[step % 2];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      *reinterpret_cast<uint4*>(to + place_of(tile_row, tid % 2 * 4 + c)) =
          make_uint4(group.pairs[4 * c], group.pairs[4 * c + 1], group.pairs[4 * c + 2], group.pairs[4 * c + 3]);
    }
  };

  const int n_bands = simt::div_up(simt::div_up(tile.n_rows, 16) - tid / 128, 2);
  float sums[kRows / 32][4][4] = {};
  fetch_w(0);
  fetch_x(0);
  if constexpr (Source::kCodeBook) __syncthreads();
  store_w(0);
  simt::cp_async_wait<0>();
  __syncthreads();
  for (int step = 0; step < n_steps; ++step) {
    if (step + 1 < n_steps) {
      fetch_w(step + 1);
      fetch_x(step + 1);
    }
    multiply<kRows>(stages.x[step % 2], stages.w[step % 2], n_bands, sums);
    if (step + 1 < n_steps) {
      store_w(step + 1);
      simt::cp_async_wait<0>();
    }
    __syncthreads();
  }

#pragma unroll
  for (int m = 0; m < kRows / 32; ++m) store_band<kGated>(job, output, tile, column_tile, band_row(m), sums[m]);
}

template <class Source, int kRows, bool kGated>
Status launch_product(const Stream& stream, const TileJob& job, int n_row_tiles, int n_column_tiles) {
  const size_t bytes = sizeof(Stages<kRows>) + (Source::kCodeBook ? 512 * kBookCopies * sizeof(uint32_t) : size_t{0});
  return simt::launch(product_kernel<Source, kRows, kGated>,
                      {dim3(static_cast<unsigned>(n_row_tiles), static_cast<unsigned>(n_column_tiles)), dim3(kThreads),
                       bytes, stream, true},
                      job);
}

// Which formats have a kernel of their own: weights/format_table.h.
template <int kRows, bool kGated>
Status launch_typed(const Stream& stream, DType type, const TileJob& job, int n_row_tiles, int n_column_tiles) {
  const auto with = [&](auto source) {
    return launch_product<decltype(source), kRows, kGated>(stream, job, n_row_tiles, n_column_tiles);
  };
  if (type == DType::F32 || type == DType::F16 || type == DType::BF16) return with(Floats{});
  if (!has_kernels(type, kGemmKernels)) return with(AnyPacked{});
  Status launched = Ok{};
  with_row(type, [&](auto row) {
    using Row = decltype(row);
    if constexpr (Row::has(kGemmKernels)) static_cast<void>(launched = with(Packed<typename Row::Format>{}));
  });
  return launched;
}

template <bool kGated>
Status launch_tiled(const Stream& stream, DType type, const TileJob& job, int tile_rows, int n_row_tiles,
                    int n_column_tiles) {
  if (!job.up && tile_rows == kFewRows && type == DType::Q4_0) {
    return few_rows_product(stream, job, n_row_tiles, n_column_tiles, kGated);
  }
  return tile_rows == 64 ? launch_typed<64, kGated>(stream, type, job, n_row_tiles, n_column_tiles)
                         : launch_typed<128, kGated>(stream, type, job, n_row_tiles, n_column_tiles);
}

// Large tiles unpack each weight half as often; small ones give a short batch enough thread blocks to fill the card.
int dense_tile_rows(int n_rows, int n_column_tiles) {
  return n_rows > 64 && simt::div_up(n_rows, 128) * n_column_tiles >= 192 ? 128 : 64;
}

int n_expert_tiles(const ExpertChoice& choice, const ExpertPlan& plan) {
  return max_expert_tiles(choice.n_tokens, choice.n_used, choice.n_experts, plan.tile_rows);
}

TileJob job_of(const GemmInput& x) {
  TileJob job{};
  job.half = x.half;
  job.exact = x.exact;
  job.width = x.width;
  job.n_rows = x.n_rows;
  job.n_used = 1;
  return job;
}

void set_experts(TileJob& job, const ExpertChoice& choice, const ExpertPlan& plan) {
  job.pairs = plan.pairs;
  job.tiles = plan.tiles;
  job.n_tiles = plan.n_tiles;
  job.n_used = choice.n_used;
}

TileOutput output_of(const GemmOutput& o, int first_tile) {
  return {o.weight, o.bias, o.out, o.stride, first_tile, o.add ? 1 : 0, o.scale};
}

Status check_width(const char* what, const Weight& weight, int width) {
  if (weight.width == width) return Ok{};
  return Error{Code::internal, std::string(what) + ": expected a matrix of width " + std::to_string(width) +
                                   ", found " + std::to_string(weight.width)};
}

int hidden_column_tiles(const FfnWeights& w) { return simt::div_up(w.up.rows, w.gate ? kOutputs / 2 : kOutputs); }

Status hidden_product(const Stream& stream, TileJob& job, const FfnWeights& w, const GemmHidden& hidden, int tile_rows,
                      int n_row_tiles) {
  if (w.gate) TRY(check_width("gate", w.gate, job.width));
  TRY(check_width("up", w.up, job.width));
  if (w.gate && w.gate.rows != w.up.rows) {
    return Error{Code::internal, "gate and up: expected one size, found " + std::to_string(w.gate.rows) + " and " +
                                     std::to_string(w.up.rows) + " rows"};
  }
  job.n_outputs = 1;
  job.outputs[0] = {w.gate ? w.gate : w.up, w.gate ? w.gate_bias : w.up_bias, nullptr, 0, 0, 0, 1.0f};
  job.up = w.gate ? w.up : Weight{};
  job.up_bias = w.up_bias;
  job.activation = w.activation;
  job.hidden = hidden;
  if (job.exact) return exact_product(stream, job, n_row_tiles, true);
  const int n_column_tiles = hidden_column_tiles(w);
  if (w.gate && w.gate.type != w.up.type) {
    return tile_rows == 64 ? launch_product<AnyPacked, 64, true>(stream, job, n_row_tiles, n_column_tiles)
                           : launch_product<AnyPacked, 128, true>(stream, job, n_row_tiles, n_column_tiles);
  }
  return launch_tiled<true>(stream, w.up.type, job, tile_rows, n_row_tiles, n_column_tiles);
}

}  // namespace

Status gemm(const Stream& stream, const GemmArgs& args) {
  bool done[kMaxGemmOutputs] = {};
  for (int i = 0; i < args.n_outputs; ++i) {
    TRY(check_width("product", args.outputs[i].weight, args.x.width));
  }
  for (int i = 0; i < args.n_outputs; ++i) {
    if (done[i]) continue;
    const DType type = args.outputs[i].weight.type;
    TileJob job = job_of(args.x);
    int n_tiles = 0;
    for (int j = i; j < args.n_outputs; ++j) {
      // The exact kernel takes any mix of formats.
      if (done[j] || (!args.x.exact && args.outputs[j].weight.type != type)) continue;
      job.outputs[job.n_outputs++] = output_of(args.outputs[j], n_tiles);
      n_tiles += simt::div_up(args.outputs[j].weight.rows, kOutputs);
      done[j] = true;
    }
    if (args.x.exact) {
      TRY(exact_product(stream, job, simt::div_up(args.x.n_rows, kExactTile), false));
      continue;
    }
    const int tile_rows = dense_tile_rows(args.x.n_rows, n_tiles);
    TRY(launch_tiled<false>(stream, type, job, tile_rows, simt::div_up(args.x.n_rows, tile_rows), n_tiles));
  }
  return Ok{};
}

Status gated_gemm(const Stream& stream, const GatedArgs& args) {
  TileJob job = job_of(args.x);
  const int tile_rows = args.x.exact ? kExactTile : dense_tile_rows(args.x.n_rows, hidden_column_tiles(args.weights));
  return hidden_product(stream, job, args.weights, args.hidden, tile_rows, simt::div_up(args.x.n_rows, tile_rows));
}

Status expert_gated_gemm(const Stream& stream, const ExpertGatedArgs& args) {
  TileJob job = job_of(args.x);
  set_experts(job, args.choice, args.plan);
  job.rows_by_pair = 1;
  return hidden_product(stream, job, args.weights, args.hidden, args.plan.tile_rows,
                        n_expert_tiles(args.choice, args.plan));
}

Status expert_down_gemm(const Stream& stream, const ExpertDownArgs& args) {
  const Weight& down = args.weights.down;
  TRY(check_width("down", down, args.hidden.width));
  TileJob job = job_of(args.hidden);
  set_experts(job, args.choice, args.plan);
  job.out_by_pair = 1;
  job.n_outputs = 1;
  job.outputs[0] = {down, args.weights.down_bias, args.out, down.rows, 0, 0, 1.0f};
  const int n_row_tiles = n_expert_tiles(args.choice, args.plan);
  if (job.exact) return exact_product(stream, job, n_row_tiles, false);
  return launch_tiled<false>(stream, down.type, job, args.plan.tile_rows, n_row_tiles,
                             simt::div_up(down.rows, kOutputs));
}

GemmCost gemm_cost(const GemmArgs& args) {
  GemmCost cost{};
  const double rows = args.x.n_rows;
  cost.bytes += rows * (args.x.exact ? 4.0 * args.x.width : 2.0 * args.x.half.stride);
  for (int i = 0; i < args.n_outputs; ++i) {
    const GemmOutput& o = args.outputs[i];
    cost.bytes += static_cast<double>(o.weight.row_bytes) * o.weight.rows + rows * o.weight.rows * (o.add ? 8.0 : 4.0);
    cost.flops += 2.0 * rows * o.weight.rows * o.weight.width;
  }
  return cost;
}

}  // namespace chimere::cuda
