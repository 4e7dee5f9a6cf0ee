// ffn.cpp  Dense feed-forward and mixture of experts of the oracle.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/reference/reference.h"

namespace chimere::reference {
namespace {

double activated(op::Activation activation, double gate, double up) {
  switch (activation) {
    case op::Activation::swiglu: return silu(gate) * up;
    case op::Activation::relu2: return up > 0 ? up * up : 0;
    case op::Activation::clamped_swiglu: {
      const double g = std::min(gate, 7.0), u = std::clamp(up, -7.0, 7.0);
      return g * sigmoid(1.702 * g) * (u + 1);
    }
  }
  return 0;
}

struct Expert {
  MatrixId gate, up, down;
  VectorId gate_bias = kNone, up_bias = kNone, down_bias = kNone;
};

// down(activation(gate x, up x)) of one token; `row` of the batch, for its adapters, which experts do not have.
std::vector<float> expert_output(const Context& c, const Expert& e, op::Activation activation, uint64_t index,
                                 const float* x, int row = kNone) {
  const TensorView &up = c.matrix(e.up), &down = c.matrix(e.down);
  const auto bias = [&](VectorId id, uint64_t n) { return id == kNone ? nullptr : c.vector(id) + index * n; };
  std::vector<float> g(up.ne[1], 0.0f), h(up.ne[1]), y(down.ne[1]);
  if (e.gate != kNone) matmul(c.matrix(e.gate), index, x, 1, bias(e.gate_bias, g.size()), g.data());
  matmul(up, index, x, 1, bias(e.up_bias, h.size()), h.data());
  if (row != kNone && e.gate != kNone) add_adapters(c, e.gate, row, 1, x, g.data());
  if (row != kNone) add_adapters(c, e.up, row, 1, x, h.data());
  for (size_t i = 0; i < h.size(); ++i) h[i] = static_cast<float>(activated(activation, g[i], h[i]));
  matmul(down, index, h.data(), 1, bias(e.down_bias, y.size()), y.data());
  if (row != kNone) add_adapters(c, e.down, row, 1, h.data(), y.data());
  return y;
}

// Of softmax(logits), as a share of the largest it can be.
double router_entropy(const std::vector<float>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double total = 0, weighted = 0;
  for (const float logit : logits) {
    const double weight = std::exp(logit - top);
    total += weight;
    weighted += weight * (logit - top);
  }
  return logits.size() > 1 ? (std::log(total) - weighted / total) / std::log(static_cast<double>(logits.size())) : 0;
}

// The chosen experts of a token, best first, and their weights.
std::vector<std::pair<int, double>> route(const Context& c, const op::MoeFfn& op, const float* x) {
  std::vector<float> logits(op.n_experts);
  matmul(c.matrix(op.router), 0, x, 1, c.vector(op.router_bias), logits.data());
  std::vector<double> score(logits.begin(), logits.end());
  if (op.gating == op::Gating::sigmoid) {
    for (double& s : score) s = sigmoid(s);
  } else {
    const double top = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (double& s : score) sum += s = std::exp(s - top);
    for (double& s : score) s /= sum;
  }
  const auto key = [&](int e) {
    if (op.selection_bias != kNone) return score[e] + c.vector(op.selection_bias)[e];
    return static_cast<double>(logits[e]);  // both gatings rise with the logit, and logits do not underflow
  };
  std::vector<int> order(op.n_experts);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) > key(b); });
  const int n_used = op.n_least > 0 ? op.n_used_at(router_entropy(logits)) : op.n_used;
  double sum = 0;
  for (int k = 0; k < n_used; ++k) sum += score[order[k]];
  std::vector<std::pair<int, double>> chosen;
  for (int k = 0; k < n_used; ++k) {
    const double weight = op.renormalise ? score[order[k]] / sum : score[order[k]];
    chosen.push_back({order[k], weight * op.weight_scale});
  }
  return chosen;
}

}  // namespace

void run(const Context& c, const op::DenseFfn& op) {
  const int64_t width = c.program.buffers[op.x].width;
  std::vector<float> normed(width);
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    float* x = c.row(op.x, t);
    rms_norm(x, c.vector(op.norm), op.eps, width, normed.data());
    const std::vector<float> y = expert_output(c, {op.gate, op.up, op.down}, op.activation, 0, normed.data(), t);
    for (int64_t i = 0; i < width; ++i) x[i] += op.scale * y[i];
  }
}

void run(const Context& c, const op::MoeFfn& op) {
  const int64_t width = c.program.buffers[op.x].width;
  const bool latent = op.latent_down != kNone;
  std::vector<float> normed(width);
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    float* x = c.row(op.x, t);
    rms_norm(x, c.vector(op.norm), op.eps, width, normed.data());
    std::vector<float> in = normed;
    if (latent) {
      in.resize(c.matrix(op.latent_down).ne[1]);
      matmul(c.matrix(op.latent_down), 0, normed.data(), 1, nullptr, in.data());
    }
    std::vector<double> y(in.size(), 0.0);
    const Expert expert{op.gate, op.up, op.down, op.gate_bias, op.up_bias, op.down_bias};
    for (const auto& [index, weight] : route(c, op, normed.data())) {
      const std::vector<float> e = expert_output(c, expert, op.activation, index, in.data());
      for (size_t i = 0; i < y.size(); ++i) y[i] += weight * e[i];
    }
    if (latent) {
      const std::vector<float> sum(y.begin(), y.end());
      std::vector<float> up(width);
      matmul(c.matrix(op.latent_up), 0, sum.data(), 1, nullptr, up.data());
      y.assign(up.begin(), up.end());
    }
    if (op.has_shared()) {
      double gate = 1.0;
      if (op.shared_router != kNone) {
        gate = 0.0;
        for (int64_t i = 0; i < width; ++i) gate += static_cast<double>(c.vector(op.shared_router)[i]) * normed[i];
        gate = sigmoid(gate);
      }
      const std::vector<float> s =
          expert_output(c, {op.shared_gate, op.shared_up, op.shared_down}, op.activation, 0, normed.data());
      for (int64_t i = 0; i < width; ++i) y[i] += gate * s[i];
    }
    for (int64_t i = 0; i < width; ++i) x[i] += static_cast<float>(op.scale * y[i]);
  }
}

}  // namespace chimere::reference
