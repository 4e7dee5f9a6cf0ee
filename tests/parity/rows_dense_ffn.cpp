// Rows of the table: dense feed-forwards.
#include "ffn_shape.h"

namespace chimere::parity {
namespace {

std::unique_ptr<ParityCase> dense_ffn_case(const FfnShape& s) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(s.d_model, 1.0f);
  op::DenseFfn o{x,
                 p.vector(s.d_model, 1.0f, 0.3f),
                 1e-6f,
                 s.gated() ? p.matrix(s.in_type, s.d_model, s.d_ff) : kNone,
                 p.matrix(s.in_type, s.d_model, s.d_ff),
                 p.matrix(s.down_type, s.d_ff, s.d_model),
                 s.activation,
                 s.scale};
  p.program.ops.push_back(o);
  p.observe(x);
  c->tolerance = [&p, o](int32_t token, bool int8) {
    const Approx n = normed(exactly(p.row(0, token)), p.program.vectors[o.norm], o.eps);
    return expert_output(p, {o.gate, o.up, o.down}, o.activation, 0, n, int8).error;
  };
  return c;
}

// Layers of different widths share the working memory of a batch.
std::unique_ptr<ParityCase> layers_of_different_widths() {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const int d = 96;
  const BufferId x = p.input(d, 1.0f);
  const auto dense = [&](int ff) {
    p.program.ops.push_back(op::DenseFfn{x, p.vector(d, 1.0f, 0.3f), 1e-6f, p.matrix(DType::F32, d, ff),
                                         p.matrix(DType::F32, d, ff), p.matrix(DType::F32, ff, d)});
  };
  const auto moe = [&](int ff, int shared_ff) {
    op::MoeFfn o{};
    o.x = x;
    o.norm = p.vector(d, 1.0f, 0.3f);
    o.eps = 1e-6f;
    o.n_experts = 5;
    o.n_used = 2;
    o.router = p.matrix(DType::F32, d, 5, 1, 0.2f);
    o.gate = p.matrix(DType::F32, d, ff, 5);
    o.up = p.matrix(DType::F32, d, ff, 5);
    o.down = p.matrix(DType::F32, ff, d, 5);
    o.shared_gate = p.matrix(DType::F32, d, shared_ff);
    o.shared_up = p.matrix(DType::F32, d, shared_ff);
    o.shared_down = p.matrix(DType::F32, shared_ff, d);
    o.shared_router = kNone;
    p.program.ops.push_back(o);
  };
  dense(577);
  moe(23, 51);
  dense(70);
  moe(41, 17);
  p.observe(x);
  // Four layers, each a few hundred roundings of numbers of order 10; routing has no near tie in this table.
  c->allow(4 * 600 * kUlp * 10, d);
  c->rounding = 0;
  return c;
}

}  // namespace

Rows rows_of(Tag<op::DenseFfn>) {
  Rows rows;
  const auto dense = [&](const std::string& name, const FfnShape& s) {
    rows.push_back({"dense_ffn_" + name, [s] { return dense_ffn_case(s); }});
  };
  dense("f32", {DType::F32, DType::F32, 45, 131});
  dense("q8_0", {DType::Q8_0, DType::Q8_0, 96, 160});
  dense("q4_k_q6_k", {DType::Q4_K, DType::Q6_K, 256, 512});
  dense("iq3_s_q4_0", {DType::IQ3_S, DType::Q4_0, 256, 96});
  FfnShape relu2{DType::Q5_0, DType::Q4_1, 96, 160};
  relu2.activation = op::Activation::relu2;
  relu2.scale = 0.3f;
  dense("relu2_scaled_q5_0_q4_1", relu2);
  rows.push_back({"dense_ffn_and_moe_ffn_of_different_widths", layers_of_different_widths});
  return rows;
}

}  // namespace chimere::parity
