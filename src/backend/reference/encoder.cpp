// encoder.cpp  What encoders need of the oracle beside attention and products.
#include <algorithm>
#include <cmath>

#include "backend/reference/reference.h"

namespace chimere::reference {

void run(const Context& c, const op::LayerNorm& op) {
  const int64_t width = c.program.buffers[op.x].width;
  const float *weight = c.vector(op.weight), *bias = c.vector(op.bias);
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    float* x = c.row(op.x, t);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[i];
    mean /= static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const double scale = 1.0 / std::sqrt(variance / static_cast<double>(width) + op.eps);
    for (int64_t i = 0; i < width; ++i) x[i] = static_cast<float>((x[i] - mean) * scale * weight[i] + bias[i]);
  }
}

void run(const Context& c, const op::Gelu& op) {
  const int64_t n = int64_t{c.batch.n_rows()} * c.program.buffers[op.x].width;
  float* x = c.row(op.x, 0);
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(0.5 * x[i] * (1.0 + std::erf(x[i] / std::sqrt(2.0))));
}

void run(const Context& c, const op::HiddenOut& op) {
  if (!c.outputs.hidden) return;
  const int64_t width = c.program.buffers[op.x].width;
  for (size_t i = 0; i < c.batch.logit_rows.size(); ++i) {
    std::copy_n(c.row(op.x, c.batch.logit_rows[i]), width, c.outputs.hidden + i * width);
  }
}

}  // namespace chimere::reference
