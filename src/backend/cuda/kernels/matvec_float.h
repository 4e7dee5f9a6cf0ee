// matvec_float.h  Decode-class products with matrices of floats or halves, behind matvec().
#pragma once

#include "backend/cuda/kernels/matvec.h"

namespace chimere::cuda {

// Whether all matrices are of one float type and of a width that the kernel takes. Does not look at the rows: a row's
// bits must not depend on how many there are.
bool matvec_float_takes(const MatvecArgs& args);

// REQUIRES: matvec_float_takes(args) and what matvec() requires.
Status matvec_float(const Stream& stream, const MatvecArgs& args);

}  // namespace chimere::cuda
