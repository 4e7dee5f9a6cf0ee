// gdn_mix.cpp  op::GdnMix: conv, delta rule and gated norm of a Gated DeltaNet layer.
#include "backend/cuda/kernels/recurrence/gdn.h"
#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundGdnMix final : public RecurrentOp {
 public:
  BoundGdnMix(const BindContext& c, const op::GdnMix& o) : RecurrentOp(Family::delta_rule), out_(o.out) {
    c.bind_rows(o.qkv, args_.qkv, args_.qkv_stride);
    c.bind_rows(o.z, args_.z, args_.z_stride);
    c.bind_rows(o.alpha, args_.alpha, args_.alpha_stride);
    c.bind_rows(o.beta, args_.beta, args_.beta_stride);
    c.bind_rows(o.out, args_.out, args_.out_stride);
    args_.conv = c.vector(o.conv);
    args_.a = c.vector(o.a);
    args_.dt_bias = c.vector(o.dt_bias);
    args_.norm = c.vector(o.norm);
    args_.eps = o.eps;
    args_.n_key_heads = o.n_key_heads;
    args_.n_value_heads = o.n_value_heads;
    args_.d_head = o.d_head;
    args_.taps = c.layout.recurrent()[o.recurrent_layer].conv_width + 1;
    args_.tiled_heads = o.tiled_heads;
    args_.conv_offset = c.layout.conv_offset(o.recurrent_layer);
    args_.matrix_offset = c.layout.matrix_offset(o.recurrent_layer);
    args_.replay_offset = c.replay.offset[o.recurrent_layer];
    args_.replay_stride = c.replay.floats_per_token;
    args_.arrivals = c.memory.arrivals;
    args_.scratch = c.memory.recurrent;
    args_.max_prefill_slices = c.max_prefill_slices;
    args_.exact = c.exact;
  }

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    grow(sizes.recurrent, sizeof(float) * gdn_scratch_floats(args_, c.max_rows, c.max_prefill_slices));
    grow(sizes.arrivals, sizeof(int32_t) * gdn_arrivals(args_, c.max_rows));
  }

  void leave_norm_to(BoundOp& next) override {
    leaves_norm_ = gdn_can_leave_norm(args_) && next.take_norm({out_, args_.scratch, args_.d_head, args_.eps});
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    GdnArgs args = args_;
    args.batch = pass.batch;
    args.has_decode = pass.is_decode;
    args.max_decode_tokens = pass.is_decode ? pass.max_tokens : 0;
    args.leave_norm = leaves_norm_ && pass.can_leave_norms();
    args.n_prefill_slices = pass.is_decode ? 0 : pass.batch.n_slices;
    args.max_prefill_tokens = pass.is_decode ? 0 : pass.max_tokens;
    args.dependent = pass.dependent;
    return gdn_mix(stream, args);
  }

  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const override {
    return gdn_replay(stream, args_, recurrent, recorded, n_tokens);
  }

 private:
  const BufferId out_;
  GdnArgs args_{};
  bool leaves_norm_ = false;
};

}  // namespace

RecurrentOpPtr bind_op(const BindContext& c, const op::GdnMix& o) { return std::make_unique<BoundGdnMix>(c, o); }

}  // namespace chimere::cuda
