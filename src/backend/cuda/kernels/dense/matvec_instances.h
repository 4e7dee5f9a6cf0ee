// matvec_instances.h  The kernels of matvec.cu for the formats that have them.
#pragma once

#include "backend/cuda/kernels/dense/matvec_choice.h"
#include "backend/cuda/runtime/stream.h"

namespace chimere::cuda {

// Launches what was chosen for the format: staged, staged_two, ring or registers.
using MatvecLaunch = Status (*)(const Stream&, const MatvecPlan&, const MatvecChoice&);
// Of the formats of one part of matvec_instances.cu; null for all others.
template <int kPart>
MatvecLaunch find_matvec(DType format);

// On the tensor cores.
struct RowsPlan;
struct RowsInstance {
  Status (*launch)(const Stream&, const RowsPlan&, const MatvecChoice&) = nullptr;
  MatvecLaunch launch_staged = nullptr;
  bool natural = false;  // the order of a group's words (weights/quarters.h)

  explicit operator bool() const { return launch != nullptr; }
};
// Of the formats of one part of matvec_rows_instances.cu; empty for all others.
template <int kPart>
RowsInstance find_matvec_rows(DType format);

}  // namespace chimere::cuda
