// matvec_rows_k.cu  Instances of matvec_rows_kernel for the K formats.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_rows.h"

namespace chimere::cuda {

Status matvec_rows_q4_k(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q4_K>(stream, launch);
}
Status matvec_rows_q5_k(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q5_K>(stream, launch);
}
Status matvec_rows_q6_k(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q6_K>(stream, launch);
}

}  // namespace chimere::cuda
