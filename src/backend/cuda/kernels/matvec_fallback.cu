// matvec_fallback.cu  Instances of matvec_kernel for formats that files use where rows are not a multiple of 256.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_instances.h"

namespace chimere::cuda {

Status matvec_q4_1(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q4_1>(stream, plan); }
Status matvec_q5_0(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q5_0>(stream, plan); }

}  // namespace chimere::cuda
