// moe_legacy.cu  Instances of the expert kernels for the types of one scale for 32.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/moe_instances.h"

namespace chimere::cuda {

const MoeKernels* moe_kernels_legacy(DType routed, DType shared) {
  using namespace format;
  static constexpr MoeKernels kList[] = {
      moe_kernels<Q8_0, Q8_0>(),
      moe_kernels<Q8_0, NoFormat>(),
      moe_kernels<Q4_0, Q4_0>(),
      moe_kernels<Q4_0, NoFormat>(),
  };
  return find_moe_kernels(kList, routed, shared);
}

}  // namespace chimere::cuda
