// head_squares.h  RMSNorm over each head of a row, or each group of columns, deferred to the kernel that reads the row.
//
// Blocks that share a head would have to synchronise before any of them knew the head's RMS. Instead each stores the
// sum of squares of its 32 columns beside the columns, which are not yet divided, and the reader divides. A kernel in
// between may divide too, with the same bits: rounding does not depend on the place, and the sums have one order.
#pragma once

#include "backend/cuda/simt/simt.h"

#include "backend/cuda/batch_view.h"
#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

inline constexpr int kSquaresColumns = 32;                 // that a sum of squares is of
inline constexpr int kPieceColumns = 4 * kSquaresColumns;  // that a warp reads at once
inline constexpr int kMaxHeadColumns = 8 * kPieceColumns;  // of a head that a reader divides

// Whether readers divide heads of this width.
constexpr bool can_leave_heads(int width) {
  return width >= 2 * kSquaresColumns && width <= kMaxHeadColumns && (width & (width - 1)) == 0;
}

// What head_inverse() wants of a lane for 128 neighbouring columns, the `piece`th of a row with n sums of squares: the
// sum of a quarter of their head's, quarter lane % 4; of heads narrower than them, one sum of the columns' own.
// Four are asked for together: more at once would cost kernels that have few registers some of them.
__device__ __forceinline__ float quarter_of_squares(const float* squares, int n, int piece, int head_width) {
  const int each = head_width >= kPieceColumns ? head_width / kPieceColumns : 1;
  const int at = 4 * (piece & ~(each - 1)) + (simt::lane_id() & 3) * each;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < each; i += 4) {
    float v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) v[j] = at < n && i + j < each ? squares[at + i + j] : 0.0f;
    sum += (v[0] + v[1]) + (v[2] + v[3]);
  }
  return sum;
}

// A lane brings its quarter_of_squares, and is given 1 / rms of the head: lane % 4 says of which 32 columns of the 128.
// All lanes call it.
__device__ __forceinline__ float head_inverse(float squares, int head_width, float eps) {
  // One part of a power of two: its exponent, negated. A division would be a call.
  const float share = __uint_as_float(0x7F000000u - __float_as_uint(static_cast<float>(head_width)));
  squares += __shfl_xor_sync(simt::kAllLanes, squares, 1);
  const float others = __shfl_xor_sync(simt::kAllLanes, squares, 2);
  if (head_width >= kPieceColumns) squares += others;
  return rsqrtf(fmaf(squares, share, eps));
}

__device__ __forceinline__ float4 times_all(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

struct HeadNorms {
  BatchView batch = {};
  int max_tokens = 0;              // rows of slices with more are left alone
  float* x = nullptr;              // [n_rows][width]
  int64_t stride = 0;              // of x
  const float* squares = nullptr;  // [n_rows][width / 32]
  int width = 0, head_width = 0;
  float eps = 0;
  bool dependent = false;  // launch as a programmatic dependent of the kernel before
};

// Divides where no reader does: x <- x / rms of each head. REQUIRES: can_leave_heads(head_width).
Status finish_heads(const Stream& stream, const HeadNorms& args);

}  // namespace chimere::cuda
