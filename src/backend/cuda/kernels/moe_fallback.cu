// moe_fallback.cu  Instances of the expert kernels for what files hold where rows are no multiple of 256.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/moe_instances.h"

namespace chimere::cuda {

const MoeKernels* moe_kernels_fallback(DType routed, DType shared) {
  using namespace format;
  static constexpr MoeKernels kList[] = {
      moe_kernels<Q5_0, Q5_0>(),
      moe_kernels<Q5_0, Q8_0>(),
      moe_kernels<Q5_0, NoFormat>(),
  };
  return find_moe_kernels(kList, routed, shared);
}

}  // namespace chimere::cuda
