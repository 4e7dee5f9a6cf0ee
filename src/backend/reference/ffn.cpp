// ffn.cpp  Dense feed-forward and mixture of experts of the oracle.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/reference/reference.h"

namespace chimere::reference {
namespace {

// down(silu(gate x) * up x) of one token
std::vector<float> swiglu(const TensorView& gate, const TensorView& up, const TensorView& down, uint64_t expert,
                          const float* x) {
  const auto ff = static_cast<int64_t>(gate.ne[1]);
  std::vector<float> g(ff), u(ff), y(down.ne[1]);
  matmul(gate, expert, x, 1, nullptr, g.data());
  matmul(up, expert, x, 1, nullptr, u.data());
  for (int64_t i = 0; i < ff; ++i) g[i] = static_cast<float>(silu(g[i]) * u[i]);
  matmul(down, expert, g.data(), 1, nullptr, y.data());
  return y;
}

}  // namespace

void run(const Context& c, const op::DenseFfn& op) {
  const int64_t width = c.program.buffers[op.x].width;
  std::vector<float> normed(width);
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    float* x = c.row(op.x, t);
    rms_norm(x, c.vector(op.norm), op.eps, width, normed.data());
    const std::vector<float> y = swiglu(c.matrix(op.gate), c.matrix(op.up), c.matrix(op.down), 0, normed.data());
    for (int64_t i = 0; i < width; ++i) x[i] += y[i];
  }
}

void run(const Context& c, const op::MoeFfn& op) {
  const int64_t width = c.program.buffers[op.x].width;
  std::vector<float> normed(width), logits(op.n_experts);
  std::vector<int> order(op.n_experts);
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    float* x = c.row(op.x, t);
    rms_norm(x, c.vector(op.norm), op.eps, width, normed.data());
    matmul(c.matrix(op.router), 0, normed.data(), 1, nullptr, logits.data());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    // Softmax over all experts, then renormalising the chosen, is the softmax over the chosen logits.
    double sum = 0;
    for (int k = 0; k < op.n_used; ++k) sum += std::exp(static_cast<double>(logits[order[k]]) - logits[order[0]]);
    std::vector<double> y(width, 0.0);
    for (int k = 0; k < op.n_used; ++k) {
      const double weight = std::exp(static_cast<double>(logits[order[k]]) - logits[order[0]]) / sum;
      const std::vector<float> e =
          swiglu(c.matrix(op.gate), c.matrix(op.up), c.matrix(op.down), order[k], normed.data());
      for (int64_t i = 0; i < width; ++i) y[i] += weight * e[i];
    }
    if (op.shared_gate != kNone) {
      double gate = 1.0;
      if (op.shared_router != kNone) {
        gate = 0.0;
        for (int64_t i = 0; i < width; ++i) gate += static_cast<double>(c.vector(op.shared_router)[i]) * normed[i];
        gate = sigmoid(gate);
      }
      const std::vector<float> s =
          swiglu(c.matrix(op.shared_gate), c.matrix(op.shared_up), c.matrix(op.shared_down), 0, normed.data());
      for (int64_t i = 0; i < width; ++i) y[i] += gate * s[i];
    }
    for (int64_t i = 0; i < width; ++i) x[i] += static_cast<float>(y[i]);
  }
}

}  // namespace chimere::reference
