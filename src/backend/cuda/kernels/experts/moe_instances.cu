// moe_instances.cu  The expert kernels of the formats. Compiled kInstanceParts times, each time with another
// CHIMERE_PART (cmake/cuda.cmake).
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe_few_down.h"
#include "backend/cuda/kernels/experts/moe_few_up.h"
#include "backend/cuda/kernels/experts/moe_instances.h"
#include "backend/cuda/kernels/experts/moe_ring_up.h"

namespace chimere::cuda {

template <int kPart>
const MoeKernels* find_experts(DType routed, DType shared) {
  const MoeKernels* found = nullptr;
  with_instance<kExpertKernels, kPart>(routed, [&](auto row) {
    using Row = decltype(row);
    using F = typename Row::Format;
    Row::for_each_shared([&](auto shared_format) {
      using S = decltype(shared_format);
      if constexpr (!kHasFormat<S> || has_kernels(S::kType, kExpertKernels)) {
        static constexpr MoeKernels kKernels{launch_ring_up<F, S>,  launch_ring_down<F, S>, launch_one_up<F, S>,
                                             launch_one_down<F, S>, launch_few_up<F, S>,    launch_few_down<F, S>};
        if (S::kType == shared) found = &kKernels;
      }
    });
  });
  return found;
}
template const MoeKernels* find_experts<CHIMERE_PART>(DType routed, DType shared);

}  // namespace chimere::cuda
