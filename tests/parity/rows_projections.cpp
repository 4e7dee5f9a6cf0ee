// Rows of the table: products with weights of every type.
#include "table.h"

namespace chimere::parity {
namespace {

std::unique_ptr<ParityCase> norm_matmul_case(DType type, bool norm, bool bias) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const int width = odd_width(type, 2);
  const BufferId x = p.input(width, 1.5f);
  const BufferId seen = p.zero_input(width);
  op::NormMatmul o{x, norm ? p.vector(width, 1.0f, 0.3f) : kNone, 1e-6f, {}};
  const std::vector<int> outs = {33, 1, 19};
  for (int n : outs) o.outs.push_back({p.matrix(type, width, n), bias ? p.vector(n, 0, 1) : kNone, p.buffer(n)});
  p.program.ops.push_back(o);
  int at = 0;
  for (const op::Projection& out : o.outs) {
    p.add_at(out.out, seen, at);
    at += p.program.buffers[out.out].width;
  }
  p.observe(seen);
  c->tolerance = [&p, o, width](int32_t token, bool int8) {
    Approx n = exactly(p.row(0, token));
    if (o.norm != kNone) n = normed(n, p.program.vectors[o.norm], o.eps);
    std::vector<double> allowed;
    for (const op::Projection& out : o.outs) {
      const Approx y = product(p, out.weight, 0, p.program.buffers[out.out].width, n, int8);
      for (size_t i = 0; i < y.size(); ++i) {
        const double b = out.bias == kNone ? 0.0 : std::abs(p.program.vectors[out.bias][i]);
        allowed.push_back(y.error[i] + 2 * kUlp * b);
      }
    }
    allowed.resize(width, 0.0);
    return allowed;
  };
  return c;
}

std::unique_ptr<ParityCase> matmul_add_case(DType type, int in, int out, bool bias, float scale = 1) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(in, 1.5f), residual = p.input(out, 1.0f);
  const MatrixId w = p.matrix(type, in, out);
  const VectorId b = bias ? p.vector(out, 0, 1) : kNone;
  p.program.ops.push_back(op::MatmulAdd{x, w, b, residual, scale});
  p.observe(residual);
  c->tolerance = [&p, w, out](int32_t token, bool int8) {
    std::vector<double> allowed = product(p, w, 0, out, exactly(p.row(0, token)), int8).error;
    for (double& a : allowed) a += 4 * kUlp * 8;  // sums of three numbers below 8
    return allowed;
  };
  return c;
}

}  // namespace

Rows rows_of(Tag<op::NormMatmul>) {
  Rows rows = {{"norm_matmul_no_norm_q8_0", [] { return norm_matmul_case(DType::Q8_0, false, true); }},
               {"norm_matmul_no_norm_f16", [] { return norm_matmul_case(DType::F16, false, false); }},
               {"norm_matmul_no_bias_iq3_s", [] { return norm_matmul_case(DType::IQ3_S, true, false); }}};
  for (DType type : matrix_types()) {
    rows.push_back(
        {"norm_matmul_" + lower_name(type), [type] { return norm_matmul_case(type, true, true); }, is_of_few(type)});
  }
  return rows;
}

Rows rows_of(Tag<op::MatmulAdd>) {
  return {{"matmul_add_f32", [] { return matmul_add_case(DType::F32, 37, 113, true); }},
          {"matmul_add_q8_0", [] { return matmul_add_case(DType::Q8_0, 96, 41, true); }},
          {"matmul_add_bf16", [] { return matmul_add_case(DType::BF16, 131, 7, false); }},
          {"matmul_add_q4_0", [] { return matmul_add_case(DType::Q4_0, 32, 257, false); }},
          {"matmul_add_q4_k", [] { return matmul_add_case(DType::Q4_K, 768, 35, true); }},
          {"matmul_add_iq3_s", [] { return matmul_add_case(DType::IQ3_S, 256, 77, false); }},
          {"matmul_add_scaled_q5_0", [] { return matmul_add_case(DType::Q5_0, 96, 41, true, 0.25f); }},
          {"matmul_add_mxfp4", [] { return matmul_add_case(DType::MXFP4, 160, 51, false); }}};
}

}  // namespace chimere::parity
