// rows.h  Row-wise work beside the products: norms, conversion for the tensor cores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/runtime/stream.h"
#include "base/result.h"

namespace chimere::cuda {

// Activations for the tensor cores: halves with a power of two for each row, so that no row can overflow whatever its
// size and none loses small values to a large neighbour. Columns up to the stride are zeros, which lets products run
// over whole tiles.
inline constexpr int kHalfPad = 64;
inline int half_stride(int width) { return (width + kHalfPad - 1) / kHalfPad * kHalfPad; }

struct HalfRows {
  uint16_t* data = nullptr;  // [rows, stride], 16-byte aligned
  float* scale = nullptr;    // [rows]: a row is data * scale
  int stride = 0;            // half_stride(width)
};

// y[i] = norm ? RMSNorm(x[row i]) * norm : x[row i], with row i = gather ? gather[i] : i
struct NormArgs {
  const float* x;  // [.., width]
  int width;
  int n_rows;
  const int32_t* gather = nullptr;
  const float* norm = nullptr;  // [width]
  float eps = 0;
  float* out = nullptr;  // [n_rows, width] or null
  HalfRows half;         // or data null
  // sigmoid(gate . y[i]), or 1 when gate_weight is null; both null: not computed
  const float* gate_weight = nullptr;
  float* gate = nullptr;   // [n_rows]
  int64_t out_stride = 0;  // from row to row of `out`; 0: width
};
Status norm_rows(const Stream& stream, const NormArgs& args);

// residual[i] += x[i] + bias
struct AddRowsArgs {
  const float* x;     // [n_rows, width]
  const float* bias;  // [width] or null
  float* residual;    // [n_rows, width]
  int width;
  int n_rows;
};
Status add_rows(const Stream& stream, const AddRowsArgs& args);

// As fast as a kernel can, for bandwidth figures. REQUIRES: bytes and places are multiples of 16.
Status copy_bytes(const Stream& stream, const std::byte* from, std::byte* to, uint64_t bytes);

}  // namespace chimere::cuda
