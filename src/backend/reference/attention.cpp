// attention.cpp  Grouped-query attention of the oracle, over the paged cache in its stored format.
#include <algorithm>
#include <cmath>

#include "backend/reference/reference.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace chimere::reference {
namespace {

void rotate(const Rope& rope, int32_t pos, float* head) {
  const int half = static_cast<int>(rope.inv_freq.size());
  for (int k = 0; k < half; ++k) {
    const float angle = static_cast<float>(pos) * rope.inv_freq[k];
    const float cos = std::cos(angle) * rope.magnitude, sin = std::sin(angle) * rope.magnitude;
    const int i = rope.pairing == Rope::Pairing::half ? k : 2 * k;
    const int j = rope.pairing == Rope::Pairing::half ? k + half : 2 * k + 1;
    const float a = head[i], b = head[j];
    head[i] = a * cos - b * sin;
    head[j] = b * cos + a * sin;
  }
}

// Orthonormal Hadamard transform in blocks of the largest power of two that divides n.
void hadamard(float* v, int n) {
  const int block = n & -n;
  for (int base = 0; base < n; base += block) {
    for (int step = 1; step < block; step *= 2) {
      for (int i = 0; i < block; i += 2 * step) {
        for (int j = i; j < i + step; ++j) {
          const float a = v[base + j], b = v[base + j + step];
          v[base + j] = a + b;
          v[base + j + step] = a - b;
        }
      }
    }
    const float scale = 1.0f / std::sqrt(static_cast<float>(block));
    for (int i = 0; i < block; ++i) v[base + i] *= scale;
  }
}

void prepare_head(const Context& c, const op::Attention& op, VectorId norm, int32_t pos, float* head) {
  if (norm != kNone) rms_norm(head, c.vector(norm), op.eps, op.head_dim_k, head);
  if (op.rope != kNone) rotate(c.program.ropes[op.rope], pos, head);
  if (c.layout.format().rotate) hadamard(head, op.head_dim_k);
}

}  // namespace

void run(const Context& c, const op::Attention& op) {
  const KvFormat& format = c.layout.format();
  const int dk = op.head_dim_k, dv = op.head_dim_v, group = op.n_heads / op.n_kv_heads;
  const uint64_t k_bytes = c.layout.k_row_bytes(op.kv_layer), v_bytes = c.layout.v_row_bytes(op.kv_layer);
  std::vector<float> q(dk), k(dk), v(dv);
  for (const Slice& slice : c.batch.slices) {
    auto k_row = [&](int pos, int h) {
      return slice.state.kv_pages[pos / kPageTokens] + c.layout.k_offset(op.kv_layer, h) + pos % kPageTokens * k_bytes;
    };
    auto v_row = [&](int pos, int h) {
      return slice.state.kv_pages[pos / kPageTokens] + c.layout.v_offset(op.kv_layer, h) + pos % kPageTokens * v_bytes;
    };
    for (int t = 0; t < slice.n_tokens; ++t) {
      const int row = slice.first_row + t, pos = slice.pos + t;
      for (int h = 0; h < op.n_kv_heads; ++h) {
        std::copy_n(c.row(op.k, row) + h * dk, dk, k.data());
        prepare_head(c, op, op.k_norm, pos, k.data());
        quantize_row(format.k, k.data(), k_row(pos, h), dk);
        quantize_row(format.v, c.row(op.v, row) + h * dv, v_row(pos, h), dv);
      }
    }
    for (int t = 0; t < slice.n_tokens && op.q != kNone; ++t) {
      const int row = slice.first_row + t, pos = slice.pos + t;
      const int last = op.bidirectional ? slice.pos + slice.n_tokens - 1 : pos;
      for (int h = 0; h < op.n_heads; ++h) {
        const float* from = c.row(op.q, row) + static_cast<int64_t>(h) * dk * (op.gated ? 2 : 1);
        std::copy_n(from, dk, q.data());
        prepare_head(c, op, op.q_norm, pos, q.data());
        const int first = op.window > 0 ? std::max(0, pos - op.window + 1) : 0;
        std::vector<double> score(last + 1 - first);
        for (int p = first; p <= last; ++p) {
          dequantize_row(format.k, k_row(p, h / group), k.data(), dk);
          double sum = 0;
          for (int i = 0; i < dk; ++i) sum += static_cast<double>(q[i]) * k[i];
          score[p - first] = sum * op.scale;
        }
        double top = *std::max_element(score.begin(), score.end());
        if (op.sinks != kNone) top = std::max<double>(top, c.vector(op.sinks)[h]);
        double total = op.sinks == kNone ? 0.0 : std::exp(c.vector(op.sinks)[h] - top);
        for (double& s : score) total += (s = std::exp(s - top));
        std::vector<double> out(dv, 0.0);
        for (int p = first; p <= last; ++p) {
          dequantize_row(format.v, v_row(p, h / group), v.data(), dv);
          for (int i = 0; i < dv; ++i) out[i] += score[p - first] / total * v[i];
        }
        float* to = c.row(op.out, row) + static_cast<int64_t>(h) * dv;
        for (int i = 0; i < dv; ++i) to[i] = static_cast<float>(op.gated ? out[i] * sigmoid(from[dk + i]) : out[i]);
      }
    }
  }
}

}  // namespace chimere::reference
