// projections.cpp  Embedding, norm + projections, projection + residual, what drafts begin with, and the output head.
//
// A phase hands out panels of 16 output rows over all matrices of the op; whoever takes a panel computes it for all
// tokens of the batch, so each weight is read once per batch whatever the number of tokens.
#include <algorithm>
#include <cmath>

#include "backend/cpu/vec.h"
#include "backend/cpu/workspace.h"
#include "tensor/dequantize.h"

namespace chimere::cpu {
namespace {

// Panels per share: a few per worker so that a slow core does not hold up the others, many enough to stay cheap.
int64_t panel_grain(int64_t n_panels, const Team& team) {
  return std::clamp<int64_t>(n_panels / (int64_t{team.size()} * 8), 1, 16);
}

bool needs_int8(const Workspace& w, const PackedMatrix& m) { return !w.exact && !m.is_float(); }

void norm_rows(Team& team, const Context& c, BufferId x, VectorId norm, float eps, bool quantize, Rows& normed) {
  const int64_t width = c.width(x);
  team.parallel_for(c.batch.n_rows(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (norm == kNone) {
        std::copy_n(c.row(x, t), width, normed.row(t));
      } else {
        rms_norm(c.row(x, t), c.vector(norm), eps, width, normed.row(t));
      }
    }
    if (quantize) normed.acts.quantize_rows(begin, end);
  });
}

// Learned positions, and what tokens of a kind have in common.
void add_places(Team& team, const Context& c, const op::Embed& op) {
  const int64_t width = c.width(op.out);
  const std::vector<Slice>& slices = c.batch.slices;
  const bool has_second = op.kinds != kNone && c.program.vectors[op.kinds].size() >= 2 * static_cast<size_t>(width);
  team.parallel_for(static_cast<int64_t>(slices.size()), 1, [&](int64_t begin, int64_t end) {
    std::vector<float> place(static_cast<size_t>(width));
    for (int64_t s = begin; s < end; ++s) {
      for (int t = 0; t < slices[s].n_tokens; ++t) {
        float* out = c.row(op.out, slices[s].first_row + t);
        if (op.positions != kNone) {
          const TensorView& positions = c.program.matrices[op.positions];
          dequantize_row(positions.type, positions.row(std::min<uint64_t>(slices[s].pos + t, positions.ne[1] - 1)),
                         place.data(), width);
          for (int64_t i = 0; i < width; ++i) out[i] += place[i];
        }
        if (const float* kinds = c.vector(op.kinds)) {
          const float* kind = kinds + (has_second && t >= slices[s].second_kind_at ? width : 0);
          for (int64_t i = 0; i < width; ++i) out[i] += kind[i];
        }
      }
    }
  });
}

}  // namespace

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* to) {
  const VecKernels& v = vec();
  const float mean = v.sum_squares(static_cast<int>(n), x) / static_cast<float>(n);
  v.scale_mul(static_cast<int>(n), 1.0f / std::sqrt(mean + eps), x, weight, to);
}

void embed(Team& team, const Context& c, const op::Embed& op, Workspace& w) {
  const TensorView& table = c.program.matrices[op.table];
  const auto width = static_cast<int64_t>(table.ne[0]);
  team.parallel_for(c.batch.n_rows(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int32_t token = c.batch.tokens[t];
      if (w.matrices[op.table]) {
        w.matrices[op.table]->unpack_row(0, token, c.row(op.out, t));
      } else {
        dequantize_row(table.type, table.row(token), c.row(op.out, t), width);
      }
      if (op.scale != 1.0f) vec().scale(static_cast<int>(width), op.scale, c.row(op.out, t), c.row(op.out, t));
    }
  });
  if (op.positions != kNone || op.kinds != kNone) add_places(team, c, op);
}

void norm_matmul(Team& team, const Context& c, const op::NormMatmul& op, Workspace& w) {
  bool quantize = false;
  int64_t n_panels = 0;
  for (const op::Projection& p : op.outs) {
    quantize |= needs_int8(w, *w.matrices[p.weight]);
    n_panels += w.matrices[p.weight]->n_panels();
  }
  Rows& normed = w.normed(c.width(op.x));
  norm_rows(team, c, op.x, op.norm, op.eps, quantize, normed);

  const int n = c.batch.n_rows();
  team.parallel_for(n_panels, panel_grain(n_panels, team), [&](int64_t begin, int64_t end) {
    for (const op::Projection& p : op.outs) {
      const PackedMatrix& m = *w.matrices[p.weight];
      const int from = static_cast<int>(std::max<int64_t>(begin, 0));
      const int to = static_cast<int>(std::min<int64_t>(end, m.n_panels()));
      if (from < to) {
        float* y = c.buffer(p.out);
        matmul(m, 0, normed.acts, {}, n, w.mode(), y, m.n_rows(), from, to);
        if (const float* bias = c.vector(p.bias)) {
          const int64_t last = std::min<int64_t>(int64_t{to} * kPanelRows, m.n_rows());
          for (int t = 0; t < n; ++t) {
            for (int64_t r = int64_t{from} * kPanelRows; r < last; ++r) y[t * m.n_rows() + r] += bias[r];
          }
        }
      }
      begin -= m.n_panels();
      end -= m.n_panels();
      if (end <= 0) break;
    }
  });
  for (const op::Projection& p : op.outs) {
    add_adapters(team, c, p.weight, {normed.row(0), normed.width}, {c.buffer(p.out), c.width(p.out)});
  }
}

void matmul_add(Team& team, const Context& c, const op::MatmulAdd& op, Workspace& w) {
  const PackedMatrix& m = *w.matrices[op.weight];
  Activations& acts = w.buffer_acts[op.x];
  const int n = c.batch.n_rows();
  if (needs_int8(w, m)) {
    team.parallel_for(n, 4, [&](int64_t begin, int64_t end) { acts.quantize_rows(begin, end); });
  }
  team.parallel_for(m.n_panels(), panel_grain(m.n_panels(), team), [&](int64_t begin, int64_t end) {
    matmul(m, 0, acts, {}, n, w.mode(), w.product.data(), m.n_rows(), static_cast<int>(begin), static_cast<int>(end));
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, m.n_rows());
    const float* bias = c.vector(op.bias);
    for (int t = 0; t < n; ++t) {
      const float* y = w.product.data() + t * m.n_rows();
      float* x = c.row(op.residual, t);
      for (int64_t r = first; r < last; ++r) x[r] += op.scale * (bias ? y[r] + bias[r] : y[r]);
    }
  });
  add_adapters(team, c, op.weight, {c.buffer(op.x), c.width(op.x)}, {c.buffer(op.residual), c.width(op.residual)},
               op.scale);
}

void draft_input(Team& team, const Context& c, const op::DraftInput& op) {
  const int64_t width = c.width(op.x);
  team.parallel_for(c.batch.n_rows(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* out = c.row(op.out, t);
      rms_norm(c.row(op.x, t), c.vector(op.x_norm), op.eps, width, out);
      rms_norm(c.batch.draft_hidden + t * width, c.vector(op.hidden_norm), op.eps, width, out + width);
    }
  });
}

void lm_head(Team& team, const Context& c, const op::LmHead& op, const Outputs& outputs, Workspace& w) {
  if (outputs.row_hidden) {
    team.parallel_for(c.batch.n_rows(), 4, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, c.width(op.x), outputs.row_hidden + t * c.width(op.x));
      }
    });
  }
  const auto n = static_cast<int64_t>(c.batch.logit_rows.size());
  if (n == 0 || (!outputs.logits && !outputs.hidden)) return;
  const PackedMatrix& m = *w.matrices[op.weight];
  const int64_t width = c.width(op.x);
  team.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      rms_norm(c.row(op.x, c.batch.logit_rows[i]), c.vector(op.norm), op.eps, width, w.head.row(i));
      if (outputs.hidden) std::copy_n(w.head.row(i), width, outputs.hidden + i * width);
    }
    if (needs_int8(w, m)) w.head.acts.quantize_rows(begin, end);
  });
  if (!outputs.logits) return;
  const auto panels = [&](int64_t begin, int64_t end) {
    matmul(m, 0, w.head.acts, {}, static_cast<int>(n), w.mode(), outputs.logits, m.n_rows(), static_cast<int>(begin),
           static_cast<int>(end));
    if (op.scale == 1.0f) return;
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, m.n_rows());
    for (int64_t i = 0; i < n; ++i) {
      float* logits = outputs.logits + i * m.n_rows() + first;
      vec().scale(static_cast<int>(last - first), op.scale, logits, logits);
    }
  };
  static_assert(kHeadBlock == kPanelRows);
  const std::span<const int32_t> blocks = c.batch.head_blocks;
  const int64_t n_panels = blocks.empty() ? m.n_panels() : static_cast<int64_t>(blocks.size());
  team.parallel_for(n_panels, panel_grain(n_panels, team), [&](int64_t begin, int64_t end) {
    if (blocks.empty()) return panels(begin, end);
    // Blocks that stand side by side are read in one go.
    for (int64_t i = begin, run = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      if (i + 1 < end && blocks[at + 1] == blocks[at] + 1) continue;
      panels(blocks[static_cast<size_t>(run)], blocks[at] + 1);
      run = i + 1;
    }
  });
  add_head_adapters(team, c, op.weight, {w.head.row(0), w.head.width}, {outputs.logits, m.n_rows()}, op.scale);
}

}  // namespace chimere::cpu
