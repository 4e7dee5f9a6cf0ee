// mamba2_mix.cpp  op::Mamba2Mix: conv, state-space recurrence and gated norm of a Mamba-2 layer.
#include "backend/cuda/kernels/recurrence/mamba2.h"
#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundMamba2Mix final : public RecurrentOp {
 public:
  BoundMamba2Mix(const BindContext& c, const op::Mamba2Mix& o) : RecurrentOp(Family::state_space), out_(o.out) {
    c.bind_rows(o.in, args_.z, args_.in_stride);
    args_.xbc = args_.z + o.d_inner();
    args_.dt = args_.xbc + o.channels();
    c.bind_rows(o.out, args_.out, args_.out_stride);
    args_.conv = c.vector(o.conv);
    args_.conv_bias = c.vector(o.conv_bias);
    args_.a = c.vector(o.a);
    args_.d = c.vector(o.d);
    args_.dt_bias = c.vector(o.dt_bias);
    args_.norm = c.vector(o.norm);
    args_.eps = o.eps;
    args_.n_heads = o.n_heads;
    args_.d_head = o.d_head;
    args_.n_groups = o.n_groups;
    args_.d_state = o.d_state;
    args_.taps = c.layout.recurrent()[o.recurrent_layer].conv_width + 1;
    args_.conv_offset = c.layout.conv_offset(o.recurrent_layer);
    args_.matrix_offset = c.layout.matrix_offset(o.recurrent_layer);
    args_.replay_offset = c.replay.offset[o.recurrent_layer];
    args_.replay_stride = c.replay.floats_per_token;
    args_.arrivals = c.memory.arrivals;
    args_.scratch = c.memory.recurrent;
  }

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    grow(sizes.recurrent, sizeof(float) * mamba2_scratch_floats(args_, c.max_decode_rows));
    grow(sizes.arrivals, sizeof(int32_t) * mamba2_arrivals(args_, c.max_rows));
  }

  void leave_norm_to(BoundOp& next) override {
    leaves_norm_ = args_.norm && mamba2_can_leave_norm(args_) &&
                   next.take_norm({out_, args_.scratch, args_.group_width(), args_.eps});
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    Mamba2Args args = args_;
    args.batch = pass.batch;
    args.is_decode = pass.is_decode;
    args.max_tokens = pass.max_tokens;
    args.leave_norm = leaves_norm_ && pass.can_leave_norms();
    args.dependent = pass.dependent;
    return mamba2_mix(stream, args);
  }

  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const override {
    return mamba2_replay(stream, args_, recurrent, recorded, n_tokens);
  }

 private:
  const BufferId out_;
  Mamba2Args args_{};
  bool leaves_norm_ = false;
};

}  // namespace

RecurrentOpPtr bind_op(const BindContext& c, const op::Mamba2Mix& o) { return std::make_unique<BoundMamba2Mix>(c, o); }

}  // namespace chimere::cuda
