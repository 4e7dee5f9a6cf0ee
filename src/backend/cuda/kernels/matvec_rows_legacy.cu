// matvec_rows_legacy.cu  Instances of matvec_rows_kernel for the formats with one scale per 32 weights.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_rows.h"

namespace chimere::cuda {

Status matvec_rows_q8_0(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q8_0>(stream, launch);
}
Status matvec_rows_q4_0(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q4_0>(stream, launch);
}
Status matvec_rows_q4_1(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q4_1>(stream, launch);
}
Status matvec_rows_q5_0(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::Q5_0>(stream, launch);
}

}  // namespace chimere::cuda
