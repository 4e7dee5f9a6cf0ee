// encoder.cu  x = (x - mean) / sqrt(variance + eps) * weight + bias;  x = x / 2 (1 + erf(x / sqrt 2));  x += position
// Shapes    x [rows, width] f32, any width; a table of positions in any format of weights/
// Bytes     rows * width * 8; 512 rows of 768: 3 MB, a microsecond
// Launch    norm and positions: grid rows, block 256; GELU: a thread an element
// Numerics  f32 sums in a fixed order, independent of the number of rows; the variance around the mean, in a second
//           pass over the row (from the cache): a sum of squares would lose what is small beside the mean
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/rows/encoder.h"

#include "backend/cuda/kernels/common/decode_group.h"

namespace chimere::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) add_positions_kernel(AddPositionsArgs a) {
  simt::wait_for_previous();
  simt::allow_next();
  const int row = static_cast<int>(blockIdx.x);
  float* to = a.out + static_cast<int64_t>(row) * a.width;
  const uint8_t* from = a.positions ? a.positions.row(0, a.batch.row_pos[row]) : nullptr;
  const DeviceSlice& slice = a.batch.slices[a.batch.row_slice[row]];
  const bool is_second = a.n_kinds > 1 && row - slice.first_row >= slice.second_kind_at;
  const float* kind = a.kinds ? a.kinds + (is_second ? a.width : 0) : nullptr;
  for (int g = static_cast<int>(threadIdx.x); g * kGroup < a.width; g += kThreads) {
    float values[kGroup] = {};
    if (from) decode_group(a.positions, from, g, values);
    for (int i = 0; i < kGroup && g * kGroup + i < a.width; ++i) {
      to[g * kGroup + i] += values[i] + (kind ? kind[g * kGroup + i] : 0.0f);
    }
  }
}

__global__ void __launch_bounds__(kThreads) layer_norm_kernel(LayerNormArgs a) {
  simt::wait_for_previous();
  simt::allow_next();
  float* x = a.x + static_cast<int64_t>(blockIdx.x) * a.width;
  const int first = static_cast<int>(threadIdx.x);
  const float width = static_cast<float>(a.width);
  float sum = 0.0f;
  for (int i = first; i < a.width; i += kThreads) sum += x[i];
  const float mean = simt::block_sum(sum) / width;
  float squares = 0.0f;
  for (int i = first; i < a.width; i += kThreads) squares = fmaf(x[i] - mean, x[i] - mean, squares);
  const float scale = 1.0f / sqrtf(simt::block_sum(squares) / width + a.eps);
  for (int i = first; i < a.width; i += kThreads) x[i] = fmaf((x[i] - mean) * scale, a.weight[i], a.bias[i]);
}

__global__ void __launch_bounds__(kThreads) gelu_kernel(float* x, int64_t n) {
  simt::wait_for_previous();
  simt::allow_next();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}

simt::Launch by_row(const Stream& stream, int n_rows) {
  return {dim3(static_cast<unsigned>(n_rows)), dim3(kThreads), 0, stream, true};
}

}  // namespace

Status add_positions(const Stream& stream, const AddPositionsArgs& args) {
  return simt::launch(add_positions_kernel, by_row(stream, args.batch.n_rows), args);
}

Status layer_norm(const Stream& stream, const LayerNormArgs& args) {
  return simt::launch(layer_norm_kernel, by_row(stream, args.n_rows), args);
}

Status gelu(const Stream& stream, float* x, int64_t n) {
  const auto blocks = static_cast<unsigned>(simt::div_up(n, int64_t{kThreads}));
  return simt::launch(gelu_kernel, {dim3(blocks), dim3(kThreads), 0, stream, true}, x, n);
}

}  // namespace chimere::cuda
