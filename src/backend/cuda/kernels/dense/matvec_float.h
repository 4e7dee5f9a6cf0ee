// matvec_float.h  Decode-class products with matrices of floats or halves, behind matvec().
#pragma once

#include "backend/cuda/kernels/dense/matvec_choice.h"

namespace chimere::cuda {

// REQUIRES: MatvecKernel::float_rows was chosen, and what matvec() requires.
Status matvec_float(const Stream& stream, const MatvecArgs& args, const MatvecChoice& choice);

}  // namespace chimere::cuda
