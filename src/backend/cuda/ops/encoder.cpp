// encoder.cpp  op::LayerNorm and op::Gelu, in place.
#include "backend/cuda/kernels/rows/encoder.h"

#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundLayerNorm final : public BoundOp {
 public:
  BoundLayerNorm(const BindContext& c, const op::LayerNorm& o)
      : BoundOp(Family::layer_norms),
        args_{.x = c.buffer(o.x),
              .weight = c.vector(o.weight),
              .bias = c.vector(o.bias),
              .eps = o.eps,
              .width = c.width(o.x),
              .n_rows = 0} {}

  Status run(const Stream& stream, const PassShape& pass) const override {
    LayerNormArgs args = args_;
    args.n_rows = pass.batch.n_rows;
    return layer_norm(stream, args);
  }

 private:
  const LayerNormArgs args_;
};

class BoundGelu final : public BoundOp {
 public:
  BoundGelu(const BindContext& c, const op::Gelu& o)
      : BoundOp(Family::layer_norms), x_(c.buffer(o.x)), width_(c.width(o.x)) {}

  Status run(const Stream& stream, const PassShape& pass) const override {
    return gelu(stream, x_, pass.batch.n_rows * width_);
  }

 private:
  float* const x_;
  const int64_t width_;
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::LayerNorm& o) { return std::make_unique<BoundLayerNorm>(c, o); }
BoundOpPtr bind_op(const BindContext& c, const op::Gelu& o) { return std::make_unique<BoundGelu>(c, o); }

}  // namespace chimere::cuda
