// attention.cpp  op::Attention over the pages of a sequence.
#include "backend/cuda/kernels/attention/attention.h"

#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundAttention final : public BoundOp {
 public:
  BoundAttention(const BindContext& c, const op::Attention& o) : BoundOp(Family::attention) {
    if (o.q != kNone) {
      c.bind_rows(o.q, args_.q, args_.q_stride);
      c.bind_rows(o.out, args_.out, args_.out_stride);
    }
    c.bind_rows(o.k, args_.k, args_.k_stride);
    c.bind_rows(o.v, args_.v, args_.v_stride);
    args_.n_heads = o.n_heads;
    args_.n_kv_heads = o.n_kv_heads;
    args_.head_dim_k = o.head_dim_k;
    args_.head_dim_v = o.head_dim_v;
    args_.gated = o.gated;
    args_.q_norm = c.vector(o.q_norm);
    args_.k_norm = c.vector(o.k_norm);
    args_.eps = o.eps;
    if (o.rope != kNone) {
      const Rope& rope = c.program.ropes[o.rope];
      args_.inv_freq = c.constants.frequencies(o.rope);
      args_.n_rot = rope.n_rot();
      args_.rope_magnitude = rope.magnitude;
      args_.rope_adjacent = rope.pairing == Rope::Pairing::adjacent;
    }
    args_.scale = o.scale;
    args_.sinks = c.vector(o.sinks);
    args_.window = o.window;
    args_.bidirectional = o.bidirectional;
    args_.k_type = c.layout.format().k;
    args_.v_type = c.layout.format().v;
    args_.rotate = c.layout.format().rotate;
    args_.k_offset = c.layout.k_offset(o.kv_layer, 0);
    args_.v_offset = c.layout.v_offset(o.kv_layer, 0);
    args_.k_row_bytes = c.layout.k_row_bytes(o.kv_layer);
    args_.v_row_bytes = c.layout.v_row_bytes(o.kv_layer);
    args_.scratch = c.memory.attention;
    args_.arrivals = c.memory.arrivals;
    args_.max_decode_rows = c.max_decode_rows;
    args_.exact = c.exact;
  }

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    grow(sizes.attention, sizeof(float) * attention_scratch_floats(args_, c.max_rows, c.max_decode_rows));
    grow(sizes.arrivals, sizeof(int32_t) * attention_arrivals(args_, c.max_rows));
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    AttentionArgs args = args_;
    args.batch = pass.batch;
    args.has_decode = pass.is_decode;
    args.has_prefill = !pass.is_decode;
    if (pass.is_decode) {
      args.max_decode_tokens = pass.max_tokens;
      args.max_decode_kv = pass.kv_bound;
    } else {
      args.max_prefill_tokens = pass.max_tokens;
    }
    args.dependent = pass.dependent;
    return attention(stream, args);
  }

 private:
  AttentionArgs args_{};
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::Attention& o) { return std::make_unique<BoundAttention>(c, o); }

}  // namespace chimere::cuda
