// mamba1.cpp  op::CausalConv and op::SelectiveScan: the two halves of a Mamba-1 layer.
#include "backend/cuda/kernels/recurrence/mamba1.h"

#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundCausalConv final : public RecurrentOp {
 public:
  BoundCausalConv(const BindContext& c, const op::CausalConv& o) : RecurrentOp(Family::state_space) {
    c.bind_rows(o.in, args_.in, args_.in_stride);
    args_.conv = c.vector(o.conv);
    args_.bias = c.vector(o.conv_bias);
    args_.channels = o.channels;
    args_.taps = c.layout.recurrent()[o.recurrent_layer].conv_width + 1;
    args_.conv_offset = c.layout.conv_offset(o.recurrent_layer);
    args_.replay_offset = c.replay.offset[o.recurrent_layer];
    args_.replay_stride = c.replay.floats_per_token;
    c.bind_rows(o.out, args_.out, args_.out_stride);
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    CausalConvArgs args = args_;
    args.batch = pass.batch;
    args.dependent = pass.dependent;
    return causal_conv(stream, args);
  }

  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const override {
    return causal_conv_replay(stream, args_, recurrent, recorded, n_tokens);
  }

 private:
  CausalConvArgs args_;
};

class BoundSelectiveScan final : public RecurrentOp {
 public:
  BoundSelectiveScan(const BindContext& c, const op::SelectiveScan& o) : RecurrentOp(Family::state_space) {
    c.bind_rows(o.x, args_.x, args_.x_stride);
    c.bind_rows(o.dt, args_.dt, args_.dt_stride);
    c.bind_rows(o.b, args_.b, args_.b_stride);
    c.bind_rows(o.c, args_.c, args_.c_stride);
    c.bind_rows(o.z, args_.z, args_.z_stride);
    args_.z += o.z_at;
    args_.a = c.vector(o.a);
    args_.d = c.vector(o.d);
    args_.b_norm = c.vector(o.b_norm);
    args_.c_norm = c.vector(o.c_norm);
    args_.eps = o.eps;
    args_.channels = o.channels;
    args_.d_state = o.d_state;
    args_.matrix_offset = c.layout.matrix_offset(o.recurrent_layer);
    args_.replay_offset = c.replay.offset[o.recurrent_layer] + o.channels;  // behind what the conv records
    args_.replay_stride = c.replay.floats_per_token;
    c.bind_rows(o.out, args_.out, args_.out_stride);
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    SelectiveScanArgs args = args_;
    args.batch = pass.batch;
    args.dependent = pass.dependent;
    return selective_scan(stream, args);
  }

  Status replay(const Stream& stream, float* recurrent, const float* recorded, int n_tokens) const override {
    return selective_scan_replay(stream, args_, recurrent, recorded, n_tokens);
  }

 private:
  SelectiveScanArgs args_;
};

}  // namespace

RecurrentOpPtr bind_op(const BindContext& c, const op::CausalConv& o) {
  return std::make_unique<BoundCausalConv>(c, o);
}
RecurrentOpPtr bind_op(const BindContext& c, const op::SelectiveScan& o) {
  return std::make_unique<BoundSelectiveScan>(c, o);
}

}  // namespace chimere::cuda
