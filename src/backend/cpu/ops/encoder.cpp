// encoder.cpp  What encoders need beside attention and products: op::LayerNorm, op::Gelu, op::HiddenOut.
#include <algorithm>
#include <cmath>

#include "backend/cpu/workspace.h"

namespace chimere::cpu {
namespace {

// Sums in double: a row is short beside the products around it, and its mean may be large beside its spread.
void normalise(const float* weight, const float* bias, float eps, int64_t n, float* x) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
}

}  // namespace

void layer_norm(Team& team, const Context& c, const op::LayerNorm& op) {
  team.parallel_for(c.batch.n_rows(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      normalise(c.vector(op.weight), c.vector(op.bias), op.eps, c.width(op.x), c.row(op.x, t));
    }
  });
}

void gelu(Team& team, const Context& c, const op::Gelu& op) {
  constexpr float kInverseRoot2 = 0.70710678f;
  team.parallel_for(c.batch.n_rows(), 1, [&](int64_t begin, int64_t end) {
    float* x = c.row(op.x, begin);
    const int64_t n = (end - begin) * c.width(op.x);
    for (int64_t i = 0; i < n; ++i) x[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * kInverseRoot2));
  });
}

void hidden_out(Team& team, const Context& c, const op::HiddenOut& op, const Outputs& outputs) {
  if (!outputs.hidden) return;
  const int64_t width = c.width(op.x);
  team.parallel_for(static_cast<int64_t>(c.batch.logit_rows.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::copy_n(c.row(op.x, c.batch.logit_rows[i]), width, outputs.hidden + i * width);
    }
  });
}

}  // namespace chimere::cpu
