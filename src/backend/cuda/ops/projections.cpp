// projections.cpp  op::NormMatmul and op::MatmulAdd: products of the rows of a buffer with one matrix or several.
#include <optional>
#include <vector>

#include "backend/cuda/ops/products.h"

namespace chimere::cuda {
namespace {

class BoundProjections final : public BoundOp {
 public:
  BoundProjections(const BindContext& c, const op::NormMatmul& o)
      : BoundProjections(c, Family::projections, o.x, o.norm, o.eps) {
    for (const op::Projection& p : o.outs) add(c, p.weight, p.bias, p.out, false, 1);
  }
  BoundProjections(const BindContext& c, const op::MatmulAdd& o)
      : BoundProjections(c, Family::residual_products, o.x, kNone, 0) {
    add(c, o.weight, o.bias, o.residual, true, o.scale);
    can_take_norm_ = !c.exact && !c.weight(o.weight).is_float();
  }

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    PrefillProduct largest = c.prefill_product(prefill_in_);
    largest.in.n_rows = c.max_rows;
    grow(sizes.prefill, prefill_scratch_bytes(largest));
    measure_decode_product(c, in_.width, sizes);
  }

  bool take_norm(const LeftNorm& norm) override {
    if (!can_take_norm_ || norm.rows != x_) return false;
    left_norm_ = norm;
    return true;
  }

  Status run(const Stream& stream, const PassShape& pass) const override {
    for (const Launch& launch : launches_) {
      if (pass.is_decode) {
        MatvecArgs args = launch.decode;
        if (left_norm_ && pass.can_leave_norms()) {
          args.in.head_squares = left_norm_->squares;
          args.in.head_width = left_norm_->head_width;
          args.in.eps = left_norm_->eps;
        }
        TRY(run_decode_product(stream, pass, args));
      } else {
        TRY(run_prefill_product(stream, pass, launch.prefill, scratch_));
      }
    }
    return run_adapters(stream, pass, in_, adapted_);
  }

 private:
  struct Launch {
    MatvecArgs decode;
    PrefillProduct prefill;
  };

  BoundProjections(const BindContext& c, Family family, BufferId x, VectorId norm, float eps)
      : BoundOp(family),
        x_(x),
        in_(c.decode_rows(x, norm, eps)),
        prefill_in_(c.prefill_rows(x, norm, eps)),
        scratch_(c.memory.prefill) {}

  void add(const BindContext& c, MatrixId matrix, VectorId bias, BufferId out, bool adds, float scale) {
    static_assert(kMaxProjections == kMaxGemmOutputs);
    if (launches_.empty() || launches_.back().decode.n_outs == kMaxProjections) {
      launches_.push_back({c.decode_product(in_), c.prefill_product(prefill_in_)});
    }
    auto& [decode, prefill] = launches_.back();
    const Weight weight = c.weight(matrix);
    decode.outs[decode.n_outs++] = {weight, c.vector(bias), c.buffer(out), c.width(out), adds, scale};
    prefill.outputs[prefill.n_outputs++] = {weight, c.vector(bias), c.buffer(out), c.width(out), adds, scale};
    adapted_.push_back({matrix, c.buffer(out), weight.rows, c.width(out), scale});
  }

  const BufferId x_;
  const InputRows in_;
  const PrefillInput prefill_in_;
  const PrefillScratch scratch_;
  std::vector<Launch> launches_;
  std::vector<AdaptedProduct> adapted_;
  bool can_take_norm_ = false;
  std::optional<LeftNorm> left_norm_;
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::NormMatmul& o) { return std::make_unique<BoundProjections>(c, o); }
BoundOpPtr bind_op(const BindContext& c, const op::MatmulAdd& o) { return std::make_unique<BoundProjections>(c, o); }

}  // namespace chimere::cuda
