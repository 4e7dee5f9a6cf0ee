// moe_k.cu  Instances of the expert kernels for the K types.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/moe_instances.h"

namespace chimere::cuda {

const MoeKernels* moe_kernels_k(DType routed, DType shared) {
  using namespace format;
  static constexpr MoeKernels kList[] = {
      moe_kernels<Q4_K, Q4_K>(),     moe_kernels<Q4_K, NoFormat>(), moe_kernels<Q5_K, Q5_K>(),
      moe_kernels<Q5_K, NoFormat>(), moe_kernels<Q6_K, Q6_K>(),     moe_kernels<Q6_K, NoFormat>(),
  };
  return find_moe_kernels(kList, routed, shared);
}

}  // namespace chimere::cuda
