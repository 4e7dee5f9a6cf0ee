// adapters.cu  low = scale A n_r, then out[r] += B low, for tiles of up to 8 rows with the same adapters
// Shapes    n_r [width] f32 as InputRows says; A [rank, width], B [rank, out] f32; out [rows, pitch] f32
// Bytes     A and B once a tile; rank 16, 4096 to 4096, one row: 0.5 MB beside 9 MB of a matrix in Q4_K
// Launch    down: grid (ranks / 8, tiles, products), block 256, a thread over columns; up: grid (columns / 256, tiles,
//           products), block 256. Tiles without rows or ranks end at once
// Numerics  f32; a row's sums have one order, whatever shares its tile and however many tiles there are. RMSNorm's
//           1 / rms is multiplied in after the sum
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/rows/adapters.h"

#include <algorithm>

#include "backend/cuda/kernels/common/hidden.h"
#include "base/check.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// Where a row of the batch lies in the args' arrays, or -1.
__device__ __forceinline__ int place_of(const AddAdaptersArgs& a, const AdapterTile& tile, int j) {
  if (j >= tile.n_rows) return -1;
  const int at = tile.rows[j] - a.first_row;
  return at >= 0 && at < a.n_rows ? at : -1;
}

__device__ __forceinline__ float* low_rows(const AddAdaptersArgs& a, int product, int tile) {
  return a.view.low + (int64_t{product} * a.view.n_tiles + tile) * kAdapterRows * kAdapterWindow;
}

template <int kRows>
__global__ void __launch_bounds__(kThreads) adapter_down_kernel(AddAdaptersArgs a, int window) {
  SIMT_SHARED(float, partial, kWarps* kRows*(kAdapterRanks + 1));
  simt::wait_for_previous();
  simt::allow_next();
  const AdapterTile& tile = a.view.tiles[blockIdx.y];
  if (tile.n_rows == 0) return;
  const AdaptedProduct& product = a.products[blockIdx.z];
  int place[kRows];
  bool none = true;
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    place[j] = place_of(a, tile, j);
    none = none && place[j] < 0;
  }
  // The use that the block's ranks belong to: theirs lie one after another.
  int rank = window + static_cast<int>(blockIdx.x) * kAdapterRanks, use = 0;
  DeviceChange change{};
  for (; use < tile.n_uses; ++use) {
    change = a.view.uses[tile.first_use + use].changes[product.matrix];
    if (rank < padded_rank(change.rank)) break;
    rank -= padded_rank(change.rank);
  }
  if (use == tile.n_uses || none) return;

  const int width = a.in.width, tid = static_cast<int>(threadIdx.x);
  const float* from = change.a + static_cast<int64_t>(rank) * width;
  const int n_ranks = min(change.rank - rank, kAdapterRanks);
  float sums[kRows][kAdapterRanks] = {}, squares[kRows] = {};
  for (int i = tid; i < width; i += kThreads) {
    float row_of_a[kAdapterRanks];
#pragma unroll
    for (int k = 0; k < kAdapterRanks; ++k) {
      row_of_a[k] = k < n_ranks ? from[static_cast<int64_t>(k) * width + i] : 0.0f;
    }
    const float norm = a.in.norm ? a.in.norm[i] : 1.0f;
#pragma unroll
    for (int j = 0; j < kRows; ++j) {
      if (place[j] < 0) continue;
      const int64_t at = static_cast<int64_t>(place[j]) * width + i;
      float x = a.in.x[at];
      if (a.in.activates()) x = activated(a.in.activation, a.in.gate ? a.in.gate[at] : 0.0f, x);
      squares[j] = fmaf(x, x, squares[j]);
      x *= norm;
#pragma unroll
      for (int k = 0; k < kAdapterRanks; ++k) sums[j][k] = fmaf(x, row_of_a[k], sums[j][k]);
    }
  }
  const int lane = tid % 32, warp = tid / 32;
  float* own = partial + warp * kRows * (kAdapterRanks + 1);
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
#pragma unroll
    for (int k = 0; k <= kAdapterRanks; ++k) {
      const float sum = simt::warp_sum(k < kAdapterRanks ? sums[j][k % kAdapterRanks] : squares[j]);
      if (lane == 0) own[j * (kAdapterRanks + 1) + k] = sum;
    }
  }
  __syncthreads();
  if (tid >= kRows * kAdapterRanks) return;
  const int j = tid / kAdapterRanks, k = tid % kAdapterRanks;
  float sum = 0.0f, square = 0.0f;
  for (int w = 0; w < kWarps; ++w) {
    const float* of_row = partial + (w * kRows + j) * (kAdapterRanks + 1);
    sum += of_row[k];
    square += of_row[kAdapterRanks];
  }
  const float inverse = a.in.norm ? 1.0f / sqrtf(square / static_cast<float>(width) + a.in.eps) : 1.0f;
  const float scale = product.factor * a.view.uses[tile.first_use + use].scale;
  low_rows(a, static_cast<int>(blockIdx.z),
           static_cast<int>(blockIdx.y))[j * kAdapterWindow + blockIdx.x * kAdapterRanks + k] = sum * inverse * scale;
}

template <int kRows>
__global__ void __launch_bounds__(kThreads) adapter_up_kernel(AddAdaptersArgs a, int window) {
  SIMT_SHARED(float, low, kRows* kAdapterWindow);
  simt::wait_for_previous();
  simt::allow_next();
  const AdapterTile& tile = a.view.tiles[blockIdx.y];
  const AdaptedProduct& product = a.products[blockIdx.z];
  const int column = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (tile.n_rows == 0 || static_cast<int>(blockIdx.x) * kThreads >= product.out_width) return;
  int total = 0;
  for (int u = 0; u < tile.n_uses; ++u) {
    total += padded_rank(a.view.uses[tile.first_use + u].changes[product.matrix].rank);
  }
  const int n_ranks = min(total - window, kAdapterWindow);
  bool none = true;
  for (int j = 0; j < kRows; ++j) none = none && place_of(a, tile, j) < 0;
  if (n_ranks <= 0 || none) return;  // adding zeros would still turn -0 into 0
  const float* from = low_rows(a, static_cast<int>(blockIdx.z), static_cast<int>(blockIdx.y));
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kAdapterWindow; i += kThreads) {
    const int j = i / kAdapterWindow;
    low[i] = i % kAdapterWindow < n_ranks && place_of(a, tile, j) >= 0 ? from[i] : 0.0f;
  }
  __syncthreads();
  if (column >= product.out_width) return;
  float sums[kRows] = {};
  int first = -window;  // of a use's ranks, seen from the window
  for (int u = 0; u < tile.n_uses; ++u) {
    const DeviceChange change = a.view.uses[tile.first_use + u].changes[product.matrix];
    const int begin = max(0, -first), end = min(change.rank, kAdapterWindow - first);
    for (int r = begin; r < end; ++r) {
      const float b = change.b[static_cast<int64_t>(r) * product.out_width + column];
#pragma unroll
      for (int j = 0; j < kRows; ++j) sums[j] = fmaf(low[j * kAdapterWindow + first + r], b, sums[j]);
    }
    first += padded_rank(change.rank);
  }
#pragma unroll
  for (int j = 0; j < kRows; ++j) {
    const int place = place_of(a, tile, j);
    if (place >= 0) product.out[static_cast<int64_t>(place) * product.pitch + column] += sums[j];
  }
}

template <int kRows>
Status launch(const Stream& stream, const AddAdaptersArgs& args) {
  int widest = 0;
  for (int i = 0; i < args.n_products; ++i) widest = std::max(widest, args.products[i].out_width);
  const auto tiles = static_cast<unsigned>(args.view.n_tiles), products = static_cast<unsigned>(args.n_products);
  const auto columns = static_cast<unsigned>(simt::div_up(widest, kThreads));
  for (int window = 0; window < args.view.max_rank; window += kAdapterWindow) {
    const int ranks = std::min(kAdapterWindow, args.view.max_rank - window);
    const auto blocks = static_cast<unsigned>(simt::div_up(ranks, kAdapterRanks));
    TRY(simt::launch(adapter_down_kernel<kRows>,
                     {dim3(blocks, tiles, products), dim3(kThreads), 0, stream, args.dependent}, args, window));
    TRY(simt::launch(adapter_up_kernel<kRows>,
                     {dim3(columns, tiles, products), dim3(kThreads), 0, stream, args.dependent}, args, window));
  }
  return Ok{};
}

__global__ void __launch_bounds__(kThreads)
    activate_kernel(op::Activation activation, const float* gate, float* up, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) up[i] = activated(activation, gate ? gate[i] : 0.0f, up[i]);
}

}  // namespace

Status add_adapters(const Stream& stream, const AddAdaptersArgs& args) {
  CHECK(args.n_products > 0 && args.n_products <= kMaxAdapted && !args.in.gather && !args.in.head_squares);
  return args.view.tile_rows == 1 ? launch<1>(stream, args) : launch<kAdapterRows>(stream, args);
}

Status activate(const Stream& stream, op::Activation activation, const float* gate, float* up, int64_t n) {
  const auto blocks = static_cast<unsigned>(simt::div_up(n, int64_t{kThreads}));
  return simt::launch(activate_kernel, {dim3(blocks), dim3(kThreads), 0, stream}, activation, gate, up, n);
}

}  // namespace chimere::cuda
