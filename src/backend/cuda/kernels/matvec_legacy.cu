// matvec_legacy.cu  Instances of matvec_kernel for the formats with one scale per 32 weights.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_instances.h"

namespace chimere::cuda {

Status matvec_q8_0(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q8_0>(stream, plan); }
Status matvec_q4_0(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q4_0>(stream, plan); }
}  // namespace chimere::cuda
