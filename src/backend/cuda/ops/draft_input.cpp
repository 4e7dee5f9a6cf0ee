// draft_input.cpp  op::DraftInput: two norms beside each other.
#include "backend/cuda/kernels/rows/rows.h"
#include "backend/cuda/ops/bound_op.h"

namespace chimere::cuda {
namespace {

class BoundDraftInput final : public BoundOp {
 public:
  BoundDraftInput(const BindContext& c, const op::DraftInput& o)
      : BoundOp(Family::embed),
        x_(half(c, c.buffer(o.x), o, o.x_norm, 0)),
        hidden_(half(c, c.memory.draft_hidden, o, o.hidden_norm, c.width(o.x))),
        chained_(half(c, c.memory.hidden, o, o.hidden_norm, c.width(o.x))) {}

  Status run(const Stream& stream, const PassShape& pass) const override {
    for (NormArgs args : {x_, pass.chained ? chained_ : hidden_}) {
      args.n_rows = pass.batch.n_rows;
      TRY(norm_rows(stream, args));
    }
    return Ok{};
  }

 private:
  static NormArgs half(const BindContext& c, const float* x, const op::DraftInput& o, VectorId norm, int column) {
    NormArgs args{.x = x, .width = c.width(o.x), .n_rows = 0, .norm = c.vector(norm), .eps = o.eps, .half = {}};
    args.out = c.buffer(o.out) + column;
    args.out_stride = c.width(o.out);
    return args;
  }

  const NormArgs x_, hidden_, chained_;
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::DraftInput& o) { return std::make_unique<BoundDraftInput>(c, o); }

}  // namespace chimere::cuda
