// matmul.cpp  Matrix products, norms and the element functions of the oracle.
#include <algorithm>
#include <cmath>

#include "backend/adapter.h"
#include "backend/reference/reference.h"
#include "tensor/dequantize.h"

namespace chimere::reference {

void matmul(const TensorView& w, uint64_t expert, const float* x, int64_t n, const float* bias, float* y) {
  const auto in = static_cast<int64_t>(w.ne[0]), out = static_cast<int64_t>(w.ne[1]);
  std::vector<float> row(in);
  for (int64_t o = 0; o < out; ++o) {
    dequantize_row(w.type, w.row(expert * w.ne[1] + o), row.data(), in);
    for (int64_t t = 0; t < n; ++t) {
      double sum = bias ? bias[o] : 0.0;
      for (int64_t i = 0; i < in; ++i) sum += static_cast<double>(row[i]) * x[t * in + i];
      y[t * out + o] = static_cast<float>(sum);
    }
  }
}

void add_adapters(const Context& c, MatrixId matrix, int first, int64_t n, const float* x, float* y) {
  const auto in = static_cast<int64_t>(c.matrix(matrix).ne[0]), out = static_cast<int64_t>(c.matrix(matrix).ne[1]);
  for (const Slice& slice : c.batch.slices) {
    if (!slice.adapters) continue;
    for (int64_t t = 0; t < n; ++t) {
      if (first + t < slice.first_row || first + t >= slice.first_row + slice.n_tokens) continue;
      for (const AdapterSet::Use& use : slice.adapters->uses) {
        const LowRank* change = use.adapter->find(matrix);
        if (!change) continue;
        for (int r = 0; r < change->rank; ++r) {
          double h = 0;
          for (int64_t i = 0; i < in; ++i) h += static_cast<double>(change->a[r * in + i]) * x[t * in + i];
          for (int64_t o = 0; o < out; ++o) {
            y[t * out + o] += static_cast<float>(use.scale * h * change->b[r * out + o]);
          }
        }
      }
    }
  }
}

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] * scale * weight[i]);
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

namespace {

void add_positions(const Context& c, const op::Embed& op) {
  const TensorView& positions = c.matrix(op.positions);
  std::vector<float> row(positions.ne[0]);
  for (const Slice& slice : c.batch.slices) {
    for (int t = 0; t < slice.n_tokens; ++t) {
      dequantize_row(positions.type, positions.row(std::min<uint64_t>(slice.pos + t, positions.ne[1] - 1)), row.data(),
                     static_cast<int64_t>(row.size()));
      float* out = c.row(op.out, slice.first_row + t);
      for (size_t i = 0; i < row.size(); ++i) out[i] += row[i];
    }
  }
}

}  // namespace

void run(const Context& c, const op::Embed& op) {
  const TensorView& table = c.matrix(op.table);
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    dequantize_row(table.type, table.row(c.batch.tokens[t]), c.row(op.out, t), static_cast<int64_t>(table.ne[0]));
    for (uint64_t i = 0; i < table.ne[0]; ++i) c.row(op.out, t)[i] *= op.scale;
  }
  if (op.positions != kNone) add_positions(c, op);
  if (op.kinds == kNone) return;
  const bool has_second = c.program.vectors[op.kinds].size() >= 2 * table.ne[0];
  for (const Slice& slice : c.batch.slices) {
    for (int t = 0; t < slice.n_tokens; ++t) {
      const float* kind = c.vector(op.kinds) + (has_second && t >= slice.second_kind_at ? table.ne[0] : 0);
      for (uint64_t i = 0; i < table.ne[0]; ++i) c.row(op.out, slice.first_row + t)[i] += kind[i];
    }
  }
}

void run(const Context& c, const op::NormMatmul& op) {
  const int n = c.batch.n_rows();
  const int64_t width = c.program.buffers[op.x].width;
  std::vector<float> normed(n * width);
  for (int t = 0; t < n; ++t) {
    if (op.norm == kNone) {
      std::copy_n(c.row(op.x, t), width, normed.data() + t * width);
    } else {
      rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, width, normed.data() + t * width);
    }
  }
  for (const op::Projection& p : op.outs) {
    matmul(c.matrix(p.weight), 0, normed.data(), n, c.vector(p.bias), c.row(p.out, 0));
    add_adapters(c, p.weight, 0, n, normed.data(), c.row(p.out, 0));
  }
}

void run(const Context& c, const op::MatmulAdd& op) {
  const int n = c.batch.n_rows();
  const int64_t width = c.program.buffers[op.residual].width;
  std::vector<float> y(n * width);
  matmul(c.matrix(op.weight), 0, c.row(op.x, 0), n, c.vector(op.bias), y.data());
  add_adapters(c, op.weight, 0, n, c.row(op.x, 0), y.data());
  for (int64_t i = 0; i < n * width; ++i) c.row(op.residual, 0)[i] += op.scale * y[i];
}

void run(const Context& c, const op::DraftInput& op) {
  const int64_t width = c.program.buffers[op.x].width;
  for (int t = 0; t < c.batch.n_rows(); ++t) {
    rms_norm(c.row(op.x, t), c.vector(op.x_norm), op.eps, width, c.row(op.out, t));
    rms_norm(c.batch.draft_hidden + t * width, c.vector(op.hidden_norm), op.eps, width, c.row(op.out, t) + width);
  }
}

void run(const Context& c, const op::LmHead& op) {
  const int64_t width = c.program.buffers[op.x].width;
  std::vector<float> normed(width);
  for (int t = 0; c.outputs.row_hidden && t < c.batch.n_rows(); ++t) {
    rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, width, c.outputs.row_hidden + t * width);
  }
  for (size_t i = 0; i < c.batch.logit_rows.size(); ++i) {
    rms_norm(c.row(op.x, c.batch.logit_rows[i]), c.vector(op.norm), op.eps, width, normed.data());
    if (c.outputs.hidden) std::copy(normed.begin(), normed.end(), c.outputs.hidden + i * width);
    if (c.outputs.logits) {
      float* logits = c.outputs.logits + i * c.program.n_vocab;
      matmul(c.matrix(op.weight), 0, normed.data(), 1, nullptr, logits);
      add_adapters(c, op.weight, c.batch.logit_rows[i], 1, normed.data(), logits);
      for (int v = 0; v < c.program.n_vocab; ++v) logits[v] *= op.scale;
    }
  }
}

}  // namespace chimere::reference
