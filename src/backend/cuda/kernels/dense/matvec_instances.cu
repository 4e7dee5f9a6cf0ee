// matvec_instances.cu  The formats' kernels for one row and for a few. Compiled kInstanceParts times, each time with
// another CHIMERE_PART (cmake/cuda.cmake).
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec_instances.h"
#include "backend/cuda/kernels/dense/matvec_ring.h"
#include "backend/cuda/kernels/dense/matvec_ring_two.h"
#include "backend/cuda/kernels/dense/matvec_staged.h"
#include "backend/cuda/kernels/dense/matvec_staged_two.h"

namespace chimere::cuda {
namespace {

template <class F>
Status launch_chosen(const Stream& stream, const MatvecPlan& plan, const MatvecChoice& choice) {
  switch (choice.kernel) {
    case MatvecKernel::staged: return launch_staged<F>(stream, plan, choice);
    case MatvecKernel::staged_two: return launch_staged_two<F>(stream, plan, choice);
    case MatvecKernel::ring:
      return plan.args.n_rows == 2 ? launch_ring_two<F>(stream, plan, choice) : launch_ring<F>(stream, plan, choice);
    default: return launch_registers<F>(stream, plan, choice);
  }
}

}  // namespace

template <int kPart>
MatvecLaunch find_matvec(DType format) {
  MatvecLaunch found = nullptr;
  with_instance<kMatvecKernels, kPart>(format,
                                       [&](auto row) { found = launch_chosen<typename decltype(row)::Format>; });
  return found;
}
template MatvecLaunch find_matvec<CHIMERE_PART>(DType format);

}  // namespace chimere::cuda
