#include "backend/cuda/ops/products.h"

#include <algorithm>

namespace chimere::cuda {

Status run_decode_product(const Stream& stream, const PassShape& pass, MatvecArgs args) {
  args.n_rows = pass.batch.n_rows;
  args.dependent = pass.dependent;
  return matvec(stream, args);
}

Status run_prefill_product(const Stream& stream, const PassShape& pass, PrefillProduct args,
                           const PrefillScratch& scratch) {
  args.in.n_rows = pass.batch.n_rows;
  return prefill_product(stream, args, scratch);
}

void measure_decode_product(const BindContext& c, int width, ScratchSizes& sizes) {
  grow(sizes.records, matvec_records_bytes(width, c.max_decode_rows));
}

Status run_adapters(const Stream& stream, const PassShape& pass, const InputRows& in, int first_row, int n_rows,
                    const std::vector<AdaptedProduct>& products) {
  if (!pass.adapters) return Ok{};
  AddAdaptersArgs args;
  args.view = pass.adapters.view;
  args.in = in;
  args.first_row = first_row;
  args.n_rows = n_rows;
  args.dependent = pass.dependent;
  const auto flush = [&]() -> Status {
    if (args.n_products > 0) TRY(add_adapters(stream, args));
    args.n_products = 0;
    return Ok{};
  };
  for (const AdaptedProduct& p : products) {
    if (!pass.adapters.changes(p.matrix)) continue;
    args.products[args.n_products++] = p;
    if (args.n_products == kMaxAdapted) TRY(flush());
  }
  return flush();
}

DecodeFfn::DecodeFfn(const BindContext& c, const InputRows& in, const FfnWeights& weights, const MatvecOut& out)
    : up(c.decode_product(in)) {
  const WorkingMemory& memory = c.memory;
  const int d_ff = weights.up.rows;
  up.outs[up.n_outs++] = {weights.up, nullptr, memory.ffn_up, d_ff, false};
  if (weights.gate) up.outs[up.n_outs++] = {weights.gate, nullptr, memory.ffn_gate, weights.gate.rows, false};
  InputRows hidden;
  hidden.x = memory.ffn_up;
  hidden.width = d_ff;
  hidden.gate = weights.gate ? memory.ffn_gate : nullptr;
  hidden.activation = weights.activation;
  down = c.decode_product(hidden);
  down.outs[down.n_outs++] = out;
}

void DecodeFfn::measure(const BindContext& c, ScratchSizes& sizes) const {
  const int d_ff = down.in.width;
  measure_decode_product(c, std::max(d_ff, up.in.width), sizes);
  grow(sizes.ffn_hidden, sizeof(float) * static_cast<uint64_t>(d_ff) * c.max_decode_rows);
}

}  // namespace chimere::cuda
