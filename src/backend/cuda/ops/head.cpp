// head.cpp  op::LmHead and op::HiddenOut: logits and hidden vectors of the logit rows.
#include "backend/cuda/kernels/rows/rows.h"
#include "backend/cuda/ops/products.h"

namespace chimere::cuda {
namespace {

class BoundHead final : public BoundOp {
 public:
  BoundHead(const BindContext& c, const op::LmHead& o) : BoundHead(c, o.x, o.norm, o.eps) {
    change_ = {o.weight, c.memory.logits, c.program.n_vocab, c.program.n_vocab, o.scale};
    logits_.outs[logits_.n_outs++] = {c.weight(o.weight), nullptr, c.memory.logits, c.program.n_vocab, false, o.scale};
  }
  BoundHead(const BindContext& c, const op::HiddenOut& o) : BoundHead(c, o.x, kNone, 0) {}

  void measure(const BindContext& c, ScratchSizes& sizes) const override {
    if (logits_.n_outs > 0) measure_decode_product(c, hidden_.width, sizes);
  }

  // Nothing of it belongs to the rows of a pass.
  Status run(const Stream&, const PassShape&) const override { return Ok{}; }

  Status run_head(const Stream& stream, const PassShape& pass, int first, int n) const override {
    const int32_t* const rows = pass.batch.logit_rows + first;
    const bool is_changed = pass.logits && pass.adapters.changes(change_.matrix) && pass.adapters.head.n_tiles > 0;
    if (pass.hidden || is_changed) {
      NormArgs hidden = hidden_;
      hidden.n_rows = n;
      hidden.gather = rows;
      TRY(norm_rows(stream, hidden));
    }
    if (!pass.logits || logits_.n_outs == 0) return Ok{};
    MatvecArgs logits = logits_;
    logits.in.gather = rows;
    logits.n_rows = n;
    logits.dependent = pass.dependent;
    if (pass.head_part) {
      logits.outs[0].weight.data = pass.head_part.rows;
      logits.outs[0].weight.rows = logits.outs[0].pitch = pass.head_part.n_rows();
    }
    TRY(matvec(stream, logits));
    return is_changed ? run_changes(stream, pass, first, n) : Ok{};
  }

  Status run_row_hidden(const Stream& stream, int first, int n, float* out) const override {
    NormArgs hidden = hidden_;
    hidden.out = out;
    hidden.x += int64_t{first} * hidden.width;
    hidden.n_rows = n;
    return norm_rows(stream, hidden);
  }

 private:
  // What adapters add to the logits, from the rows that norm_rows has gathered.
  Status run_changes(const Stream& stream, const PassShape& pass, int first, int n) const {
    AddAdaptersArgs args;
    args.view = pass.adapters.head;
    args.in.x = hidden_.out;
    args.in.width = hidden_.width;
    args.first_row = first;
    args.n_rows = n;
    args.n_products = 1;
    args.products[0] = change_;
    args.dependent = pass.dependent;
    return add_adapters(stream, args);
  }

  BoundHead(const BindContext& c, BufferId x, VectorId norm, float eps)
      : BoundOp(Family::head),
        logits_(c.decode_product(c.decode_rows(x, norm, eps))),
        hidden_{.x = c.buffer(x),
                .width = c.width(x),
                .n_rows = 0,
                .norm = c.vector(norm),
                .eps = eps,
                .out = c.memory.hidden,
                .half = {}} {}

  MatvecArgs logits_;  // without outputs where the program has no logits
  const NormArgs hidden_;
  AdaptedProduct change_{kNone};
};

}  // namespace

BoundOpPtr bind_op(const BindContext& c, const op::LmHead& o) { return std::make_unique<BoundHead>(c, o); }
BoundOpPtr bind_op(const BindContext& c, const op::HiddenOut& o) { return std::make_unique<BoundHead>(c, o); }

}  // namespace chimere::cuda
