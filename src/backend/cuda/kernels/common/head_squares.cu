// head_squares.cu  x[r, i] <- x[r, i] / rms of its head, from sums of squares of each 32 columns
// Shapes    x [rows, width] f32, squares [rows, width / 32] f32; heads of 64, 128, 256, 512 or 1024 columns
// Bytes     8 rows width
// Launch    grid rows, block 128: a warp over pieces of 128 columns of a row
// Numerics  f32; the bits of a reader that divides by itself
#include "backend/cuda/kernels/common/head_squares.h"

#include "base/check.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) finish_heads_kernel(HeadNorms p) {
  simt::wait_for_previous();
  simt::allow_next();
  const int64_t row = blockIdx.x;
  if (p.batch.slices[p.batch.row_slice[row]].n_tokens > p.max_tokens) return;
  const int n_squares = p.width / kSquaresColumns, lane = simt::lane_id();
  const float* squares = p.squares + row * n_squares;
  for (int piece = simt::warp_id(); piece * kPieceColumns < p.width; piece += kThreads / 32) {
    const float inverses =
        head_inverse(quarter_of_squares(squares, n_squares, piece, p.head_width), p.head_width, p.eps);
    const float inverse = __shfl_sync(simt::kAllLanes, inverses, lane / 8);
    const int column = piece * kPieceColumns + 4 * lane;
    if (column >= p.width) continue;
    auto* x = reinterpret_cast<float4*>(p.x + row * p.stride + column);
    *x = times_all(*x, inverse);
  }
}

}  // namespace

Status finish_heads(const Stream& stream, const HeadNorms& args) {
  CHECK(can_leave_heads(args.head_width) && args.width % args.head_width == 0);
  return simt::launch(finish_heads_kernel,
                      {static_cast<unsigned>(args.batch.n_rows), kThreads, 0, stream, args.dependent}, args);
}

}  // namespace chimere::cuda
