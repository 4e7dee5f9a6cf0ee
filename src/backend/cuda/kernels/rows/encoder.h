// encoder.h  The ops of encoders beside attention and products: LayerNorm, GELU, learned positions.
#pragma once

#include <cstdint>

#include "backend/cuda/batch_view.h"
#include "backend/cuda/runtime/stream.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

// out[r] += positions[position of r] + kinds[kind of r], after op::Embed's look-up
struct AddPositionsArgs {
  Weight positions;  // empty: none
  BatchView batch;
  const float* kinds;  // [n_kinds, width] or null
  int n_kinds;
  float* out;  // [rows of the batch, width]
  int width;
};
Status add_positions(const Stream& stream, const AddPositionsArgs& args);

// op::LayerNorm, in place
struct LayerNormArgs {
  float* x;             // [n_rows, width]
  const float* weight;  // [width]
  const float* bias;    // [width]
  float eps;
  int width;
  int n_rows;
};
Status layer_norm(const Stream& stream, const LayerNormArgs& args);

// op::Gelu of n values, in place
Status gelu(const Stream& stream, float* x, int64_t n);

}  // namespace chimere::cuda
