// dense_ffn.cpp  op::DenseFfn.
#include <algorithm>

#include "backend/cuda/ops/products.h"

namespace chimere::cuda {
namespace {

class BoundDenseFfn final : public BoundOp {
 public:
  BoundDenseFfn(const BindContext& c, const op::DenseFfn& o)
      : BoundOp(Family::ffn),
        op_(o),
        weights_{.gate = c.weight(o.gate), .up = c.weight(o.up), .down = c.weight(o.down), .activation = o.activation},
        decode_(c, c.decode_rows(o.x, o.norm, o.eps), weights_,
                {weights_.down, nullptr, c.buffer(o.x), c.width(o.x), true, o.scale}),
        scratch_(c.memory.prefill) {
    prefill_.in = c.prefill_rows(o.x, o.norm, o.eps);
    prefill_.weights = weights_;
    prefill_.scale = o.scale;
    prefill_.residual = c.buffer(o.x);
    prefill_.exact = c.exact;
  }

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    PrefillFfn largest = prefill_;
    largest.in.n_rows = c.max_rows;
    grow(sizes.prefill, prefill_scratch_bytes(largest));
    decode_.measure(c, sizes);
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    if (pass.is_decode) return decode(stream, pass);
    if (pass.adapters) return adapted_prefill(stream, pass);
    PrefillFfn args = prefill_;
    args.in.n_rows = pass.batch.n_rows;
    return prefill_ffn(stream, args, scratch_);
  }

 private:
  // What adapters change of the products in a feed-forward, with hidden rows here.
  std::vector<AdaptedProduct> adapted_up(float* up, float* gate) const {
    const int d_ff = weights_.up.rows;
    return {{op_.up, up, d_ff, d_ff}, {op_.gate, gate, weights_.gate.rows, d_ff}};
  }
  std::vector<AdaptedProduct> adapted_down(float* x) const {
    return {{op_.down, x, weights_.down.rows, prefill_.in.width, op_.scale}};
  }

  Status decode(const Stream& stream, const PassShape& pass) const {
    TRY(run_decode_product(stream, pass, decode_.up));
    if (pass.adapters) {
      float* const up = decode_.up.outs[0].out;
      TRY(run_adapters(stream, pass, decode_.up.in, adapted_up(up, decode_.up.outs[1].out)));
    }
    TRY(run_decode_product(stream, pass, decode_.down));
    if (!pass.adapters) return Ok{};
    return run_adapters(stream, pass, decode_.down.in, adapted_down(prefill_.residual));
  }

  // Adapters change gate and up before the activation, which the prefill kernels compute in one piece with these
  // products: here they are computed apart, as floats. So they are for all rows of the pass, whatever each one's
  // adapters change: a row's bits do not depend on its company.
  Status adapted_prefill(const Stream& stream, const PassShape& pass) const {
    const PassAdapters& memory = pass.adapters;
    const int width = prefill_.in.width, d_ff = weights_.up.rows;
    for (int first = 0; first < pass.batch.n_rows; first += memory.ffn_rows) {
      const int n = std::min(memory.ffn_rows, pass.batch.n_rows - first);
      float* const x = prefill_.residual + static_cast<int64_t>(first) * width;
      PrefillProduct in;
      in.in = prefill_.in;
      in.in.x = x;
      in.in.n_rows = n;
      in.exact = prefill_.exact;
      in.outputs[in.n_outputs++] = {weights_.up, nullptr, memory.ffn_up, d_ff, false};
      if (weights_.gate) in.outputs[in.n_outputs++] = {weights_.gate, nullptr, memory.ffn_gate, d_ff, false};
      TRY(prefill_product(stream, in, scratch_));
      InputRows rows = decode_.up.in;
      rows.x = x;
      TRY(run_adapters(stream, pass, rows, first, n, adapted_up(memory.ffn_up, memory.ffn_gate)));
      TRY(activate(stream, weights_.activation, weights_.gate ? memory.ffn_gate : nullptr, memory.ffn_up,
                   static_cast<int64_t>(n) * d_ff));
      PrefillProduct out;
      out.in = {memory.ffn_up, d_ff, n, nullptr, nullptr, 0};
      out.exact = prefill_.exact;
      out.outputs[out.n_outputs++] = {weights_.down, nullptr, x, width, true, op_.scale};
      TRY(prefill_product(stream, out, scratch_));
      InputRows hidden;
      hidden.x = memory.ffn_up;
      hidden.width = d_ff;
      TRY(run_adapters(stream, pass, hidden, first, n, adapted_down(x)));
    }
    return Ok{};
  }

  const op::DenseFfn& op_;
  const FfnWeights weights_;
  const DecodeFfn decode_;
  const PrefillScratch scratch_;
  PrefillFfn prefill_;
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::DenseFfn& o) { return std::make_unique<BoundDenseFfn>(c, o); }

}  // namespace chimere::cuda
