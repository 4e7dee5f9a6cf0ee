// matvec_rows_instances.cu  The formats' kernels on the tensor cores. Compiled kInstanceParts times, each time with
// another CHIMERE_PART (cmake/cuda.cmake).
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec_instances.h"
#include "backend/cuda/kernels/dense/matvec_rows.h"
#include "backend/cuda/kernels/dense/matvec_staged_rows.h"

namespace chimere::cuda {
namespace {

template <class F>
Status launch_rows(const Stream& stream, const RowsPlan& plan, const MatvecChoice& choice) {
  return simt::launch(matvec_rows_kernel<F>,
                      {static_cast<unsigned>(choice.blocks), kTeams * kTeamThreads, choice.shared_bytes, stream,
                       plan.plan.args.dependent},
                      plan);
}

}  // namespace

template <int kPart>
RowsInstance find_matvec_rows(DType format) {
  RowsInstance found;
  with_instance<kTensorKernels, kPart>(format, [&](auto row) {
    using F = typename decltype(row)::Format;
    found = {launch_rows<F>, launch_staged_rows<F>, F::kNatural};
  });
  return found;
}
template RowsInstance find_matvec_rows<CHIMERE_PART>(DType format);

}  // namespace chimere::cuda
