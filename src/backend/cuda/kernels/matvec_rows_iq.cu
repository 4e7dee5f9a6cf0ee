// matvec_rows_iq.cu  Instances of matvec_rows_kernel for formats with a look-up table or a codebook applied at load.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/matvec_rows.h"

namespace chimere::cuda {

Status matvec_rows_iq3_s_wide(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::IQ3_S_wide>(stream, launch);
}
Status matvec_rows_iq4_nl(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::IQ4_NL>(stream, launch);
}
Status matvec_rows_iq4_xs(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::IQ4_XS>(stream, launch);
}
Status matvec_rows_mxfp4(const Stream& stream, const RowsLaunch& launch) {
  return launch_rows<format::MXFP4>(stream, launch);
}

}  // namespace chimere::cuda
