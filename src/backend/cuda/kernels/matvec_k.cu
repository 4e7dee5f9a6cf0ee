// matvec_k.cu  Instances of matvec_kernel for the K formats.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_instances.h"

namespace chimere::cuda {

Status matvec_q4_k(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q4_K>(stream, plan); }
Status matvec_q5_k(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q5_K>(stream, plan); }
Status matvec_q6_k(const Stream& stream, MatvecPlan& plan) { return launch_staged_or_not<format::Q6_K>(stream, plan); }
}  // namespace chimere::cuda
