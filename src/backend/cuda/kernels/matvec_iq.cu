// matvec_iq.cu  Instances of matvec_kernel for the formats with codebooks and look-up tables.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_instances.h"

namespace chimere::cuda {

Status matvec_iq3_s(const Stream& stream, MatvecPlan& plan) {
  return launch_staged_or_not<format::IQ3_S>(stream, plan);
}
Status matvec_iq3_s_wide(const Stream& stream, MatvecPlan& plan) {
  return launch_staged_or_not<format::IQ3_S_wide>(stream, plan);
}
Status matvec_iq4_nl(const Stream& stream, MatvecPlan& plan) {
  return launch_staged_or_not<format::IQ4_NL>(stream, plan);
}
Status matvec_iq4_xs(const Stream& stream, MatvecPlan& plan) {
  return launch_staged_or_not<format::IQ4_XS>(stream, plan);
}
Status matvec_mxfp4(const Stream& stream, MatvecPlan& plan) {
  return launch_staged_or_not<format::MXFP4>(stream, plan);
}
}  // namespace chimere::cuda
