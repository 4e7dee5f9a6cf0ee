// matvec.cu   out_i[t] = W_i n_t (+ bias) (+ out_i[t]),  n_t = RMSNorm(x_t) * norm or x_t, for several W_i at once
// Shapes    x [n_rows, width] f32; W_i [rows_i, width] in a layout of weights/formats.h; out_i [n_rows, pitch_i] f32
// Bytes     the weights once for up to 16 rows, plus 4 * width * n_rows a block for the activations (from the
//           L2 cache)
// Launch    as choose_matvec() says (matvec_choice.h). One row whose share of the weights fits a block's shared memory:
//           matvec_staged.h, a block of 16 warps an SM. One row and larger matrices, where there are bulk copies:
//           matvec_ring.h, 2 blocks an SM whose warps have slots for a few rows in shared memory.
//           Two rows the same ways: matvec_staged_two.h, matvec_ring_two.h; 3 to 8 on the tensor cores: matvec_staged_rows.h; for larger
//           matrices and more rows matvec_rows.cu, where bulk copies and the width allow it.
//           Else 3 blocks of 8 warps (2 from 2 rows on, 1 from 9), each warp over tiles of 2 or 4 weight rows, a lane
//           over pairs of groups; shared memory: 1.26 bytes per element of a pass's rows, 32 KiB more for the IQ3_S
//           codebook. The first weights are loaded before the wait for the previous kernel; up to 4 rows are quantised
//           by every block for itself, more by a launch of their own; 1 / rms is multiplied in at the end.
// Numerics  activations as signed bytes with one scale for 32, exact integer sums of 32 products, float accumulation in
//           an order that depends on the width alone; float matrices, and every matrix in exact mode, in float32
// Measured  H200, one row: Q5_K [12352, 2048] 7.3 us in a chain, where two of them find no room side by side; Q5_K
//           [2048, 4096] 4.0 us, Q6_K [248320, 2048] 114 us with its norm (3.7 TB/s), F16 [131072, 2688] 175 us (4.0
//           TB/s)
// Rejected  quantising the input in a launch of its own for one row: 0.6 us per launch for 8 KB of input. Throttling
//           the copies so that the previous kernel has the memory to itself (3 % of a step slower); prefetching weights
//           of the next layer to the L2 cache two kernels ahead (2 %)
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec_device.h"
#include "backend/cuda/kernels/dense/matvec_float.h"
#include "backend/cuda/kernels/dense/matvec_instances.h"
#include "backend/cuda/kernels/dense/matvec_rows.h"
#include "base/check.h"

namespace chimere::cuda {
namespace {

__global__ void __launch_bounds__(kDotThreads) quantise_rows_kernel(InputRows in, bool quantise, uint8_t* records) {
  const NormAhead norms = load_norm(in);
  simt::wait_for_previous();
  simt::allow_next();
  const auto i = static_cast<int64_t>(blockIdx.x);
  const int64_t row = in.gather ? in.gather[i] : i;
  uint8_t* record = records + i * record_bytes(in.width);
  make_record(in, row, quantise, norms, load_row<4>(in, row), record);
  __syncthreads();
  if (simt::thread_id() == 0) stored_inverse(record, in.width) = row_inverse(in, record);
}

}  // namespace

Status quantise_rows(const Stream& stream, const InputRows& in, int n_rows, bool quantise, uint8_t* records,
                     bool dependent) {
  return simt::launch(quantise_rows_kernel, {static_cast<unsigned>(n_rows), kDotThreads, 0, stream, dependent}, in,
                      quantise && row_groups(in.width) > 0, records);
}

Status matvec(const Stream& stream, const MatvecArgs& args) {
  for (int i = 0; i < args.n_outs && args.in.head_squares; ++i) {
    CHECK(!args.exact && !args.outs[i].weight.is_float() && !args.in.norm && !args.in.activates() && !args.in.gather);
  }
  const MatvecChoice choice = choose_matvec(args, this_card(args.n_sms));
  if (choice.kernel == MatvecKernel::float_rows) return matvec_float(stream, args, choice);
  MatvecPlan plan = plan_matvec(args, choice);
  if (choice.kernel == MatvecKernel::tensor_rows) return matvec_rows(stream, plan, choice);
  const bool is_staged = choice.kernel == MatvecKernel::staged_rows;
  if (is_staged || choice.kernel == MatvecKernel::staged_two ? choice.makes_records : args.n_rows <= kFusedRows) {
    plan.args.records = nullptr;
  } else if (args.records) {
    TRY(quantise_rows(stream, args.in, args.n_rows, plan.quantise, args.records, args.dependent));
  }
  if (choice.kernel == MatvecKernel::any_format) return launch_registers<NoFormat>(stream, plan, choice);
  if (is_staged) {
    const RowsInstance instance = find_in_parts([&](auto part) { return find_matvec_rows<part>(choice.format); });
    return instance.launch_staged(stream, plan, choice);
  }
  const MatvecLaunch launch = find_in_parts([&](auto part) { return find_matvec<part>(choice.format); });
  return launch(stream, plan, choice);
}

uint64_t matvec_bytes(const MatvecArgs& a) {
  uint64_t bytes = static_cast<uint64_t>(a.in.width) * a.n_rows * sizeof(float);
  for (int i = 0; i < a.n_outs; ++i) {
    const Weight& w = a.outs[i].weight;
    bytes += static_cast<uint64_t>(w.rows) * (w.row_bytes + a.n_rows * sizeof(float));
  }
  return bytes;
}

}  // namespace chimere::cuda
