// moe_iq.cu  Instances of the expert kernels for the types of codebooks and look-up tables.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/moe_instances.h"

namespace chimere::cuda {

const MoeKernels* moe_kernels_iq(DType routed, DType shared) {
  using namespace format;
  static constexpr MoeKernels kList[] = {
      moe_kernels<IQ3_S, Q5_K>(),          moe_kernels<IQ3_S, NoFormat>(),  moe_kernels<IQ3_S_wide, Q5_K>(),
      moe_kernels<IQ3_S_wide, NoFormat>(), moe_kernels<IQ4_XS, NoFormat>(), moe_kernels<IQ4_NL, NoFormat>(),
      moe_kernels<MXFP4, Q8_0>(),          moe_kernels<MXFP4, NoFormat>(),
  };
  return find_moe_kernels(kList, routed, shared);
}

}  // namespace chimere::cuda
