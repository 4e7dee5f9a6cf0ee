#include "backend/cpu/observe.h"

namespace chimere::cpu {
namespace {

class Showing {
 public:
  Showing(const Context& c, Workspace& w, const Outputs& outputs, const InputObserver& observe)
      : c_(c), w_(w), outputs_(outputs), observe_(observe), n_(c.batch.n_rows()) {}

  void operator()(const op::NormMatmul& op) const {
    for (const op::Projection& p : op.outs) show(p.weight, w_.normed(c_.width(op.x)), n_);
  }

  void operator()(const op::MatmulAdd& op) const { show(op.weight, c_.buffer(op.x), n_); }

  void operator()(const op::DenseFfn& op) const {
    show_expert(op.gate, op.up, op.down, w_.normed(c_.width(op.x)), w_.hidden);
  }

  void operator()(const op::MoeFfn& op) const {
    Rows& normed = w_.normed(c_.width(op.x));
    show(op.router, normed, n_);
    if (op.latent_down != kNone) show(op.latent_down, normed, n_);
    Rows& in = op.latent_down == kNone ? normed : w_.latent;
    const Routing& r = w_.routing;
    for (const int e : r.active) {
      const auto first = static_cast<size_t>(r.expert_begin[e]);
      const size_t count = static_cast<size_t>(r.expert_begin[e + 1]) - first;
      const auto n = static_cast<int64_t>(count);
      const auto tokens = std::span(r.token_of_slot).subspan(first, count);
      for (const MatrixId m : {op.gate, op.up}) {
        if (m != kNone) observe_({c_.program, m, e, in.floats.data(), width(m), n, tokens});
      }
      const float* hidden = w_.hidden.floats.data() + static_cast<int64_t>(first) * width(op.down);
      observe_({c_.program, op.down, e, hidden, width(op.down), n});
    }
    if (op.latent_up != kNone) show(op.latent_up, w_.latent_sum, n_);
    if (op.has_shared()) show_expert(op.shared_gate, op.shared_up, op.shared_down, normed, w_.shared_hidden);
  }

  void operator()(const op::LmHead& op) const {
    if (outputs_.logits || outputs_.hidden) show(op.weight, w_.head, static_cast<int64_t>(c_.batch.logit_rows.size()));
  }

  template <class O>
  void operator()(const O&) const {}  // no matrix, or one that is looked up

 private:
  // Rows lie as far apart as the matrix is wide, whatever the widest is that the buffer was made for.
  int64_t width(MatrixId matrix) const { return static_cast<int64_t>(c_.program.matrices[matrix].ne[0]); }
  void show(MatrixId matrix, const float* rows, int64_t n) const {
    if (n > 0) observe_({c_.program, matrix, 0, rows, width(matrix), n});
  }
  void show(MatrixId matrix, Rows& rows, int64_t n) const { show(matrix, rows.floats.data(), n); }
  void show_expert(MatrixId gate, MatrixId up, MatrixId down, Rows& in, Rows& hidden) const {
    if (gate != kNone) show(gate, in, n_);
    show(up, in, n_);
    show(down, hidden, n_);
  }

  const Context& c_;
  Workspace& w_;
  const Outputs& outputs_;
  const InputObserver& observe_;
  const int64_t n_;
};

}  // namespace

void show_inputs(const Context& c, const Op& op, const Outputs& outputs, Workspace& w, const InputObserver& observe) {
  std::visit(Showing(c, w, outputs, observe), op);
}

}  // namespace chimere::cpu
