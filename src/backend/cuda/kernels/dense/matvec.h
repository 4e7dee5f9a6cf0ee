// matvec.h  Decode-class products: up to 64 rows times several matrices that read the same rows, in one launch.
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/common/activations.h"
#include "backend/cuda/runtime/stream.h"
#include "backend/cuda/weights/weight.h"
#include "base/result.h"

namespace chimere::cuda {

inline constexpr int kMaxProjections = 8;
inline constexpr int kMatvecRows = 64;
// Up to this many rows every block makes the quantised rows itself; beyond, quantise_rows makes them once.
inline constexpr int kFusedRows = 4;

// out[t] = scale (weight n_t + bias), or out[t] += ...
struct MatvecOut {
  Weight weight;
  const float* bias = nullptr;  // [weight.rows]
  float* out = nullptr;         // [n_rows, pitch]
  int pitch = 0;                // in floats
  bool add = false;
  float scale = 1;
};

struct MatvecArgs {
  InputRows in;
  int n_rows = 0;
  int n_outs = 0;
  MatvecOut outs[kMaxProjections];
  bool exact = false;          // float32 activations whatever the weights are
  uint8_t* records = nullptr;  // working memory of matvec_records_bytes, needed for more than kFusedRows rows
  bool dependent = true;       // may overlap with the kernel before (sm_90 on)
  int n_sms = 132;
};

// Records, and of many rows the same as tensor cores take it (matvec_rows.h): passes of whole eights, no more than the
// next sixteen, and 1 / rms of each row.
constexpr size_t fragment_rows(int n_rows) { return (static_cast<size_t>(n_rows) + 15) / 16 * 16; }
constexpr size_t matvec_records_bytes(int width, int n_rows) {
  return record_bytes(width) * static_cast<size_t>(n_rows) +
         fragment_rows(n_rows) * (40 * static_cast<size_t>(row_groups(width)) + sizeof(float));
}

// REQUIRES: weights are `in.width` wide; 1 <= n_rows <= kMatvecRows; out and in.x do not overlap unless n_outs == 1.
Status matvec(const Stream& stream, const MatvecArgs& args);

// The records of rows [0, n_rows), as matvec and the expert kernels read them. `quantise` false leaves only 1 / rms.
Status quantise_rows(const Stream& stream, const InputRows& in, int n_rows, bool quantise, uint8_t* records,
                     bool dependent = true);

// Bytes read and written by the launch, for bandwidth figures.
uint64_t matvec_bytes(const MatvecArgs& args);

}  // namespace chimere::cuda
