// ffn.cpp  Dense feed-forward and mixture of experts.
//
// Experts: tokens are grouped by expert, so each chosen expert's weights are read once per batch. The results of a
// token's experts are added in the order of its choices, whatever the grouping was.
#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cpu/vec.h"
#include "backend/cpu/workspace.h"

namespace chimere::cpu {
namespace {

constexpr int64_t kPanelsPerShare = 4;

// gate and up of panels [begin, end) for the given rows of x, then h = silu(gate) * up in rows [first, first + n).
void gated_panels(const PackedMatrix& gate, const PackedMatrix& up, int expert, const Activations& x,
                  std::span<const int32_t> tokens, int n, ActMode mode, float* g, float* h, int begin, int end) {
  const int64_t ff = gate.n_rows();
  matmul(gate, expert, x, tokens, n, mode, g, ff, begin, end);
  matmul(up, expert, x, tokens, n, mode, h, ff, begin, end);
  const int64_t first = int64_t{begin} * kPanelRows, last = std::min<int64_t>(int64_t{end} * kPanelRows, ff);
  for (int i = 0; i < n; ++i) apply_gate(g + i * ff + first, last - first, h + i * ff + first);
}

// sigmoid(router . x), or 1 where the shared expert is not gated. Sixteen chains, so that the compiler may use vectors.
float shared_gate_of(const float* x, const float* router, int64_t n) {
  if (!router) return 1.0f;
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int j = 0; j < 16; ++j) sums[j] += router[i + j] * x[i + j];
  }
  float dot = 0;
  for (; i < n; ++i) dot += router[i] * x[i];
  for (float s : sums) dot += s;
  return 1.0f / (1.0f + std::exp(-dot));
}

void choose_experts(const float* logits, int n_experts, int n_used, int32_t* chosen, float* weight) {
  for (int k = 0; k < n_used; ++k) {
    int best = -1;
    for (int e = 0; e < n_experts; ++e) {
      const bool taken = std::find(chosen, chosen + k, e) != chosen + k;
      if (!taken && (best < 0 || logits[e] > logits[best])) best = e;
    }
    chosen[k] = best;
  }
  float sum = 0;
  for (int k = 0; k < n_used; ++k) sum += weight[k] = std::exp(logits[chosen[k]] - logits[chosen[0]]);
  for (int k = 0; k < n_used; ++k) weight[k] /= sum;
}

// Slots in order of expert, then token: a counting sort.
void group_by_expert(Routing& r, int n_rows, int n_experts, int n_used) {
  std::fill(r.expert_begin.begin(), r.expert_begin.end(), 0);
  for (int i = 0; i < n_rows * n_used; ++i) ++r.expert_begin[r.chosen[i] + 1];
  r.active.clear();
  for (int e = 0; e < n_experts; ++e) {
    if (r.expert_begin[e + 1] > 0) r.active.push_back(e);
    r.expert_begin[e + 1] += r.expert_begin[e];
  }
  for (int i = n_rows * n_used - 1; i >= 0; --i) {
    // Filled from the back: expert_begin[e + 1] walks down to the first slot of e and becomes its begin.
    const int32_t s = --r.expert_begin[r.chosen[i] + 1];
    r.slot[i] = s;
    r.token_of_slot[s] = i / n_used;
  }
  // Every begin moved one place up; the end of the last expert is the number of slots.
  for (int e = 0; e < n_experts; ++e) r.expert_begin[e] = r.expert_begin[e + 1];
  r.expert_begin[n_experts] = n_rows * n_used;
}

// Layers differ in width, so the shared rows are bound by each op. Nobody looks at them before the barrier of the
// op's first phase.
void bind_rows(const Team& team, Rows& rows, int64_t n_rows, int64_t width) {
  if (team.rank() == 0) rows.acts.bind(rows.floats.data(), width, n_rows, width);
}

}  // namespace

void apply_gate(const float* g, int64_t n, float* h) {
  static constexpr std::array<float, kPanelsPerShare* kPanelRows> kOnes = [] {
    std::array<float, kPanelsPerShare * kPanelRows> ones{};
    for (float& one : ones) one = 1.0f;
    return ones;
  }();
  // A worker that is alone takes all panels in one share.
  constexpr auto kStep = static_cast<int64_t>(kOnes.size());
  for (int64_t i = 0; i < n; i += kStep) {
    vec().scale_mul_silu(static_cast<int>(std::min(kStep, n - i)), 1.0f, h + i, kOnes.data(), g + i, h + i);
  }
}

void dense_ffn(Team& team, const Context& c, const op::DenseFfn& op, Workspace& w) {
  const PackedMatrix &gate = *w.matrices[op.gate], &up = *w.matrices[op.up], &down = *w.matrices[op.down];
  const int n = c.batch.n_rows();
  const int64_t width = c.width(op.x);
  bind_rows(team, w.hidden, n, gate.n_rows());
  team.parallel_for(n, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, width, w.normed.row(t));
    }
    if (!w.exact) w.normed.acts.quantize_rows(begin, end);
  });
  team.parallel_for(gate.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    gated_panels(gate, up, 0, w.normed.acts, {}, n, w.mode(), w.gate.data(), w.hidden.floats.data(),
                 static_cast<int>(begin), static_cast<int>(end));
  });
  if (!w.exact) {
    team.parallel_for(n, 4, [&](int64_t begin, int64_t end) { w.hidden.acts.quantize_rows(begin, end); });
  }
  team.parallel_for(down.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    matmul(down, 0, w.hidden.acts, {}, n, w.mode(), w.product.data(), width, static_cast<int>(begin),
           static_cast<int>(end));
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, width);
    for (int t = 0; t < n; ++t) {
      for (int64_t i = first; i < last; ++i) c.row(op.x, t)[i] += w.product.data()[t * width + i];
    }
  });
}

void moe_ffn(Team& team, const Context& c, const op::MoeFfn& op, Workspace& w) {
  const PackedMatrix& router = *w.matrices[op.router];
  const PackedMatrix &gate = *w.matrices[op.gate], &up = *w.matrices[op.up], &down = *w.matrices[op.down];
  const bool shared = op.shared_gate != kNone;
  const int n = c.batch.n_rows(), n_slots = n * op.n_used;
  const int64_t width = c.width(op.x), ff = gate.n_rows();
  Routing& r = w.routing;
  bind_rows(team, w.hidden, n_slots, ff);
  if (shared) bind_rows(team, w.shared_hidden, n, w.matrices[op.shared_gate]->n_rows());

  team.parallel_for(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, width, w.normed.row(t));
      if (shared) r.shared_gate[t] = shared_gate_of(w.normed.row(t), c.vector(op.shared_router), width);
    }
    if (!w.exact) w.normed.acts.quantize_rows(begin, end);
  });
  team.parallel_for(router.n_panels(), 1, [&](int64_t begin, int64_t end) {
    matmul(router, 0, w.normed.acts, {}, n, ActMode::f32, r.logits.data(), op.n_experts, static_cast<int>(begin),
           static_cast<int>(end));
  });
  team.parallel_for(n, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      choose_experts(r.logits.data() + t * op.n_experts, op.n_experts, op.n_used, r.chosen.data() + t * op.n_used,
                     r.weight.data() + t * op.n_used);
    }
  });
  team.each([&](int rank, int) {
    if (rank == 0) group_by_expert(r, n, op.n_experts, op.n_used);
  });

  // Routed experts first, then the shared one, in shares of a few panels each.
  const int64_t shares_of_expert = (gate.n_panels() + kPanelsPerShare - 1) / kPanelsPerShare;
  const int64_t routed_shares = static_cast<int64_t>(r.active.size()) * shares_of_expert;
  const PackedMatrix* shared_gate = shared ? &*w.matrices[op.shared_gate] : nullptr;
  const int64_t shared_shares = shared ? (shared_gate->n_panels() + kPanelsPerShare - 1) / kPanelsPerShare : 0;
  team.parallel_for(routed_shares + shared_shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      if (share < routed_shares) {
        const int e = r.active[share / shares_of_expert];
        const int32_t first = r.expert_begin[e], count = r.expert_begin[e + 1] - first;
        const auto panel = static_cast<int>(share % shares_of_expert * kPanelsPerShare);
        gated_panels(gate, up, e, w.normed.acts, std::span(r.token_of_slot).subspan(first, count), count, w.mode(),
                     w.gate.data() + first * ff, w.hidden.floats.data() + first * ff, panel,
                     std::min<int>(panel + kPanelsPerShare, gate.n_panels()));
      } else {
        const auto panel = static_cast<int>((share - routed_shares) * kPanelsPerShare);
        gated_panels(*shared_gate, *w.matrices[op.shared_up], 0, w.normed.acts, {}, n, w.mode(),
                     w.gate.data() + n_slots * ff, w.shared_hidden.floats.data(), panel,
                     std::min<int>(panel + kPanelsPerShare, shared_gate->n_panels()));
      }
    }
  });
  if (!w.exact) {
    team.parallel_for(n_slots + (shared ? n : 0), 4, [&](int64_t begin, int64_t end) {
      if (begin < n_slots) w.hidden.acts.quantize_rows(begin, std::min<int64_t>(end, n_slots));
      if (end > n_slots) w.shared_hidden.acts.quantize_rows(std::max<int64_t>(begin - n_slots, 0), end - n_slots);
    });
  }
  // Down: whoever takes a few panels of output rows does them for all experts and tokens, and adds them up.
  team.parallel_for(down.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    const int from = static_cast<int>(begin), to = static_cast<int>(end);
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, width);
    for (int e : r.active) {
      const int32_t s = r.expert_begin[e], count = r.expert_begin[e + 1] - s;
      // Slots of an expert are consecutive rows of `hidden`: no gather but an offset.
      matmul(down, e, w.hidden.acts, std::span(r.slot_rows).subspan(s, count), count, w.mode(),
             w.product.data() + s * width, width, from, to);
    }
    if (shared) {
      matmul(*w.matrices[op.shared_down], 0, w.shared_hidden.acts, {}, n, w.mode(), w.shared_product.data(), width,
             from, to);
    }
    for (int t = 0; t < n; ++t) {
      float* x = c.row(op.x, t);
      for (int k = 0; k < op.n_used; ++k) {
        const int i = t * op.n_used + k;
        vec().multiply_add(static_cast<int>(last - first), r.weight[i], w.product.data() + r.slot[i] * width + first,
                           x + first);
      }
      if (shared) {
        vec().multiply_add(static_cast<int>(last - first), r.shared_gate[t],
                           w.shared_product.data() + t * width + first, x + first);
      }
    }
  });
}

}  // namespace chimere::cpu
