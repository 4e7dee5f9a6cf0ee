#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {

InputRows BindContext::decode_rows(BufferId x, VectorId norm, float eps) const {
  InputRows rows;
  rows.x = buffer(x);
  rows.norm = vector(norm);
  rows.eps = eps;
  rows.width = width(x);
  return rows;
}

PrefillInput BindContext::prefill_rows(BufferId x, VectorId norm, float eps) const {
  return {.x = buffer(x), .width = width(x), .norm = vector(norm), .eps = eps};
}

MatvecArgs BindContext::decode_product(const InputRows& in) const {
  MatvecArgs args;
  args.in = in;
  args.exact = exact;
  args.records = memory.records;
  args.n_sms = device.n_sms;
  return args;
}

PrefillProduct BindContext::prefill_product(const PrefillInput& in) const {
  PrefillProduct args;
  args.in = in;
  args.exact = exact;
  return args;
}

}  // namespace chimere::cuda
