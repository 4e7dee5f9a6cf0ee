// head_part.cu   to[b] = rows [16 blocks[b], 16 blocks[b] + 16) of a matrix
// Shapes    records of row_bytes, whole sixteens; any number of blocks
// Bytes     16 row_bytes a block, read and written: 36 + 36 MB for an eighth of 248,320 tokens of width 2048 in Q4_K
// Launch    grid blocks, block 256, 16 bytes a thread at a time
// Method    A product of a part could read the list itself, but then every kernel of products would have to. The list
//           changes every few hundred tokens and is read once a guess: copying the part costs less than one of those.
// Measured  not yet
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/rows/head_part.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    gather_head_part_kernel(Weight matrix, const int32_t* __restrict__ blocks, uint8_t* __restrict__ to) {
  const int first = blocks[blockIdx.x] * kPartBlock;
  // A block has as many pieces of 16 bytes as a row has bytes.
  static_assert(kPartBlock == sizeof(uint4));
  const uint32_t n_pieces = matrix.row_bytes;
  const uint32_t n_there = static_cast<uint32_t>(min(kPartBlock, matrix.rows - first)) * (matrix.row_bytes / 16);
  const auto* from = reinterpret_cast<const uint4*>(matrix.row(0, first));
  auto* out = reinterpret_cast<uint4*>(to + static_cast<size_t>(blockIdx.x) * kPartBlock * matrix.row_bytes);
  for (uint32_t i = threadIdx.x; i < n_pieces; i += kThreads) out[i] = i < n_there ? from[i] : uint4{0, 0, 0, 0};
}

}  // namespace

Status gather_head_part(const Stream& stream, const Weight& matrix, const int32_t* blocks, int n_blocks, uint8_t* to) {
  return simt::launch(gather_head_part_kernel, {dim3(static_cast<unsigned>(n_blocks)), dim3(kThreads), 0, stream},
                      matrix, blocks, to);
}

}  // namespace chimere::cuda
