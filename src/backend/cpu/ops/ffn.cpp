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

int64_t shares_of(int64_t n_panels) { return (n_panels + kPanelsPerShare - 1) / kPanelsPerShare; }

// The matrices in front of an activation, and what belongs to them. Without a gate, or biases, null.
struct UpProjection {
  const PackedMatrix* gate;
  const PackedMatrix& up;
  op::Activation activation;
  const float* gate_bias = nullptr;  // [n_experts][d_ff]
  const float* up_bias = nullptr;
};

void add_bias(const float* bias, int64_t n, float* x) {
  if (bias) vec().multiply_add(static_cast<int>(n), 1.0f, bias, x);
}

void activate(op::Activation activation, int64_t n, float* gate, float* up) {
  switch (activation) {
    case op::Activation::swiglu: apply_gate(gate, n, up); break;
    case op::Activation::relu2: vec().relu2(static_cast<int>(n), up); break;
    case op::Activation::clamped_swiglu: vec().clamped_swiglu(static_cast<int>(n), gate, up); break;
  }
}

// Panels [begin, end) for the given rows of x, into rows of h; g is for the gate. Then the activation, if it is wanted
// now.
void up_panels(const UpProjection& p, int expert, const Activations& x, std::span<const int32_t> tokens, int n,
               ActMode mode, float* g, float* h, int begin, int end, bool activated = true) {
  const int64_t ff = p.up.n_rows();
  const int64_t first = int64_t{begin} * kPanelRows, last = std::min<int64_t>(int64_t{end} * kPanelRows, ff);
  const auto bias = [&](const float* b) { return b ? b + expert * ff + first : nullptr; };
  if (p.gate) matmul(*p.gate, expert, x, tokens, n, mode, g, ff, begin, end);
  matmul(p.up, expert, x, tokens, n, mode, h, ff, begin, end);
  for (int i = 0; i < n; ++i) {
    float* up = h + i * ff + first;
    float* gate = g + i * ff + first;
    add_bias(bias(p.up_bias), last - first, up);
    if (p.gate) add_bias(bias(p.gate_bias), last - first, gate);
    if (activated) activate(p.activation, last - first, gate, up);
  }
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

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
  return sigmoid(dot);
}

// Of softmax(logits), as a share of the largest it can be; `top` is the largest logit.
float router_entropy(const float* logits, int n, float top) {
  if (n < 2) return 0;
  float total = 0, weighted = 0;
  for (int e = 0; e < n; ++e) {
    const float weight = std::exp(logits[e] - top);
    total += weight;
    weighted += weight * (logits[e] - top);
  }
  return (std::log(total) - weighted / total) / std::log(static_cast<float>(n));
}

// Experts of one token, best first, and their weights; kNoExpert behind them where it needs fewer than n_used. `keys`
// [n_experts] is working memory.
void choose_experts(const Context& c, const op::MoeFfn& op, float* logits, float* keys, int32_t* chosen,
                    float* weight) {
  add_bias(c.vector(op.router_bias), op.n_experts, logits);
  const bool is_sigmoid = op.gating == op::Gating::sigmoid;
  const float top = *std::max_element(logits, logits + op.n_experts);
  float total = 0;  // of the softmax over all experts
  if (!is_sigmoid && (!op.renormalise || op.selection_bias != kNone)) {
    for (int e = 0; e < op.n_experts; ++e) total += std::exp(logits[e] - top);
  }
  const auto score = [&](int e) { return is_sigmoid ? sigmoid(logits[e]) : std::exp(logits[e] - top) / total; };
  // Both gatings rise with the logit, so without a bias logits choose as scores do, and they do not underflow.
  const float* key = logits;
  if (const float* bias = c.vector(op.selection_bias)) {
    for (int e = 0; e < op.n_experts; ++e) keys[e] = score(e) + bias[e];
    key = keys;
  }
  const int n_used = op.n_least > 0 ? op.n_used_at(router_entropy(logits, op.n_experts, top)) : op.n_used;
  std::fill(chosen + n_used, chosen + op.n_used, kNoExpert);
  for (int k = 0; k < n_used; ++k) {
    int best = -1;
    for (int e = 0; e < op.n_experts; ++e) {
      const bool taken = std::find(chosen, chosen + k, e) != chosen + k;
      if (!taken && (best < 0 || key[e] > key[best])) best = e;
    }
    chosen[k] = best;
  }
  float sum = 0;
  for (int k = 0; k < n_used; ++k) {
    weight[k] = is_sigmoid || !op.renormalise ? score(chosen[k]) : std::exp(logits[chosen[k]] - top);
    sum += weight[k];
  }
  for (int k = 0; k < n_used; ++k) {
    if (op.renormalise) weight[k] /= sum;
    weight[k] *= op.weight_scale * op.scale;
  }
}

// Layers differ in width, so the shared rows are bound by each op. Nobody looks at them before the barrier of the
// op's first phase.
void bind_rows(const Team& team, Rows& rows, int64_t n_rows, int64_t width) {
  if (team.rank() == 0) rows.acts.bind(rows.floats.data(), width, n_rows, width);
}

// Where the experts of the op are if they are on disk.
int stored_mixture(const Workspace& w, const op::MoeFfn& op) { return w.store ? w.store->mixture_of(op.up) : kNone; }

const PackedMatrix* matrix_or_null(const Workspace& w, MatrixId id) { return id == kNone ? nullptr : &*w.matrices[id]; }

// Rows of a batch for which the next layer's experts are guessed: more of them use nearly all.
constexpr int kAheadRows = 4;

// The mixture after this one, if what it will use can be guessed and read ahead.
const op::MoeFfn* next_to_read(const Workspace& w, int stored, int n_rows) {
  const auto next = static_cast<size_t>(stored) + 1;
  const bool is_known = stored != kNone && next < w.routed.size() && n_rows <= kAheadRows;
  return is_known && w.store->guesses_pay() ? w.routed[next] : nullptr;
}

// What the next layer's router says of the residual stream as it is now: the layer between changes it little.
void read_ahead(const Context& c, const op::MoeFfn& now, const op::MoeFfn& next, int mixture, Workspace& w) {
  const int64_t width = c.width(now.x);
  const int n = c.batch.n_rows();
  thread_local AlignedFloats rows, logits, keys, weights;
  thread_local std::vector<int32_t> chosen;
  thread_local Activations in;
  const int64_t stride = (next.n_experts + kPanelRows - 1) / kPanelRows * kPanelRows;
  rows.resize(n * width);
  logits.resize(n * stride);
  keys.resize(next.n_experts);
  weights.resize(next.n_used);
  chosen.assign(static_cast<size_t>(n) * next.n_used, kNoExpert);
  for (int t = 0; t < n; ++t) {
    rms_norm(c.row(now.x, t), c.vector(next.norm), next.eps, width, rows.data() + t * width);
  }
  in.bind(rows.data(), width, n, width);
  const PackedMatrix& router = *w.matrices[next.router];
  matmul(router, 0, in, {}, n, ActMode::f32, logits.data(), stride, 0, router.n_panels());
  for (int t = 0; t < n; ++t) {
    choose_experts(c, next, logits.data() + t * stride, keys.data(), chosen.data() + t * next.n_used, weights.data());
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  if (!chosen.empty() && chosen.front() == kNoExpert) chosen.erase(chosen.begin());
  w.store->expect(mixture, chosen);
}

// Up to the choice: who goes to which expert is in w.routing then, and what latent experts see in w.latent.
void route(Team& team, const Context& c, const op::MoeFfn& op, Workspace& w) {
  const PackedMatrix& router = *w.matrices[op.router];
  const PackedMatrix* latent_down = matrix_or_null(w, op.latent_down);
  const int n = c.batch.n_rows();
  const int64_t width = c.width(op.x), expert_width = w.matrices[op.down]->n_rows();
  Routing& r = w.routing;
  Rows& normed = w.normed(width);
  if (latent_down) bind_rows(team, w.latent, n, expert_width);

  team.parallel_for(n, 2, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, width, normed.row(t));
      if (op.has_shared()) {
        r.shared_gate[t] = op.scale * shared_gate_of(normed.row(t), c.vector(op.shared_router), width);
      }
    }
    if (!w.exact) normed.acts.quantize_rows(begin, end);
  });
  const int64_t latent_panels = latent_down ? latent_down->n_panels() : 0;
  team.parallel_for(router.n_panels() + latent_panels, 1, [&](int64_t begin, int64_t end) {
    const int from = static_cast<int>(begin), to = static_cast<int>(end), split = router.n_panels();
    if (from < split) {
      matmul(router, 0, normed.acts, {}, n, ActMode::f32, r.logits.data(), op.n_experts, from, std::min(to, split));
    }
    if (to > split) {
      matmul(*latent_down, 0, normed.acts, {}, n, w.mode(), w.latent.floats.data(), expert_width,
             std::max(from - split, 0), to - split);
    }
  });
  team.parallel_for(n, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      choose_experts(c, op, r.logits.data() + t * op.n_experts, r.keys.data() + t * op.n_experts,
                     r.chosen.data() + t * op.n_used, r.weight.data() + t * op.n_used);
    }
    if (latent_down && !w.exact) w.latent.acts.quantize_rows(begin, end);
  });
  team.each([&](int rank, int) {
    if (rank == 0) group_choices(c, op, w);
  });
}

}  // namespace

void group_choices(const Context& c, const op::MoeFfn& op, Workspace& w) {
  w.routing.group(c.batch.n_rows(), op.n_experts, op.n_used);
  if (const int stored = stored_mixture(w, op); stored != kNone) w.store->begin(stored, w.routing.active);
}

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
  const UpProjection in{matrix_or_null(w, op.gate), *w.matrices[op.up], op.activation};
  const PackedMatrix& down = *w.matrices[op.down];
  const int n = c.batch.n_rows();
  const int64_t width = c.width(op.x);
  Rows& normed = w.normed(width);
  bind_rows(team, w.hidden, n, in.up.n_rows());
  team.parallel_for(n, 4, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      rms_norm(c.row(op.x, t), c.vector(op.norm), op.eps, width, normed.row(t));
    }
    if (!w.exact) normed.acts.quantize_rows(begin, end);
  });
  // What adapters add comes before the activation, which then waits for all panels.
  const bool adapted = is_adapted(c);
  const int64_t ff = in.up.n_rows();
  team.parallel_for(in.up.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    up_panels(in, 0, normed.acts, {}, n, w.mode(), w.gate.data(), w.hidden.floats.data(), static_cast<int>(begin),
              static_cast<int>(end), !adapted);
  });
  if (adapted) {
    if (in.gate) add_adapters(team, c, op.gate, {normed.row(0), width}, {w.gate.data(), ff});
    add_adapters(team, c, op.up, {normed.row(0), width}, {w.hidden.floats.data(), ff});
    team.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) activate(in.activation, ff, w.gate.data() + t * ff, w.hidden.row(t));
    });
  }
  if (!w.exact) {
    team.parallel_for(n, 4, [&](int64_t begin, int64_t end) { w.hidden.acts.quantize_rows(begin, end); });
  }
  team.parallel_for(down.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    matmul(down, 0, w.hidden.acts, {}, n, w.mode(), w.product.data(), width, static_cast<int>(begin),
           static_cast<int>(end));
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, width);
    for (int t = 0; t < n; ++t) {
      for (int64_t i = first; i < last; ++i) c.row(op.x, t)[i] += op.scale * w.product.data()[t * width + i];
    }
  });
  add_adapters(team, c, op.down, {w.hidden.floats.data(), ff}, {c.buffer(op.x), width}, op.scale);
}

void moe_experts(Team& team, const Context& c, const op::MoeFfn& op, Workspace& w) {
  const PackedMatrix& down = *w.matrices[op.down];
  const UpProjection in{matrix_or_null(w, op.gate), *w.matrices[op.up], op.activation, c.vector(op.gate_bias),
                        c.vector(op.up_bias)};
  const PackedMatrix *latent_down = matrix_or_null(w, op.latent_down), *latent_up = matrix_or_null(w, op.latent_up);
  const bool shared = op.has_shared();
  const int n = c.batch.n_rows(), max_slots = n * op.n_used;
  const int64_t width = c.width(op.x), ff = in.up.n_rows(), expert_width = down.n_rows();
  const Routing& r = w.routing;
  Rows& normed = w.normed(width);
  bind_rows(team, w.hidden, max_slots, ff);
  if (shared) bind_rows(team, w.shared_hidden, n, w.matrices[op.shared_up]->n_rows());
  if (latent_up) bind_rows(team, w.latent_sum, n, expert_width);

  const int n_slots = r.expert_begin[op.n_experts];
  // Routed experts first, then the shared one, in shares of a few panels each.
  const Activations& expert_in = latent_down ? w.latent.acts : normed.acts;
  const int64_t shares_of_expert = shares_of(in.up.n_panels());
  const int64_t routed_shares = static_cast<int64_t>(r.active.size()) * shares_of_expert;
  const int64_t shared_shares = shared ? shares_of(w.matrices[op.shared_up]->n_panels()) : 0;
  // Experts that are read from disk come last, behind the shared one, too.
  const int stored = stored_mixture(w, op);
  const int64_t first_routed = stored == kNone ? 0 : shared_shares;
  const op::MoeFfn* next = next_to_read(w, stored, n);
  const int64_t ahead = next ? 1 : 0;  // one worker looks ahead first
  team.parallel_for(ahead + routed_shares + shared_shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t turn = begin - ahead; turn < end - ahead; ++turn) {
      if (turn < 0) {
        read_ahead(c, op, *next, stored + 1, w);
        continue;
      }
      const int64_t share = turn < first_routed ? routed_shares + turn : turn - first_routed;
      if (share < routed_shares) {
        const int e = r.active[share / shares_of_expert];
        if (stored != kNone) w.store->wait(stored, e);
        const int32_t first = r.expert_begin[e], count = r.expert_begin[e + 1] - first;
        const auto panel = static_cast<int>(share % shares_of_expert * kPanelsPerShare);
        up_panels(in, e, expert_in, std::span(r.token_of_slot).subspan(first, count), count, w.mode(),
                  w.gate.data() + first * ff, w.hidden.floats.data() + first * ff, panel,
                  std::min<int>(panel + kPanelsPerShare, in.up.n_panels()));
      } else {
        const UpProjection own{matrix_or_null(w, op.shared_gate), *w.matrices[op.shared_up], op.activation};
        const auto panel = static_cast<int>((share - routed_shares) * kPanelsPerShare);
        up_panels(own, 0, normed.acts, {}, n, w.mode(), w.gate.data() + max_slots * ff, w.shared_hidden.floats.data(),
                  panel, std::min<int>(panel + kPanelsPerShare, own.up.n_panels()));
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
  const auto add_experts = [&](int64_t begin, int64_t end, const auto& row_of) {
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, expert_width);
    const int count_of_rows = static_cast<int>(last - first);
    for (int e : r.active) {
      const int32_t s = r.expert_begin[e], count = r.expert_begin[e + 1] - s;
      // Slots of an expert are consecutive rows of `hidden`: no gather but an offset.
      matmul(down, e, w.hidden.acts, std::span(r.slot_rows).subspan(s, count), count, w.mode(),
             w.product.data() + s * expert_width, expert_width, static_cast<int>(begin), static_cast<int>(end));
    }
    for (int t = 0; t < n; ++t) {
      float* to = row_of(t) + first;
      for (int i = t * op.n_used; i < (t + 1) * op.n_used && r.chosen[i] != kNoExpert; ++i) {
        vec().multiply_add(count_of_rows, r.weight[i], w.product.data() + r.slot[i] * expert_width + first, to);
        if (const float* bias = c.vector(op.down_bias)) {
          vec().multiply_add(count_of_rows, r.weight[i], bias + r.chosen[i] * expert_width + first, to);
        }
      }
    }
  };
  const auto add_shared = [&](int64_t begin, int64_t end) {
    if (!shared) return;
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, width);
    matmul(*w.matrices[op.shared_down], 0, w.shared_hidden.acts, {}, n, w.mode(), w.shared_product.data(), width,
           static_cast<int>(begin), static_cast<int>(end));
    for (int t = 0; t < n; ++t) {
      vec().multiply_add(static_cast<int>(last - first), r.shared_gate[t], w.shared_product.data() + t * width + first,
                         c.row(op.x, t) + first);
    }
  };
  const auto end_use = [&] {
    if (stored != kNone && team.rank() == 0) w.store->end(stored);
  };
  if (!latent_up) {
    team.parallel_for(down.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
      add_experts(begin, end, [&](int t) { return c.row(op.x, t); });
      add_shared(begin, end);
    });
    end_use();
    return;
  }
  const auto sum_row = [&](int64_t t) { return w.latent_sum.floats.data() + t * expert_width; };
  team.parallel_for(down.n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, expert_width);
    for (int t = 0; t < n; ++t) std::fill(sum_row(t) + first, sum_row(t) + last, 0.0f);
    add_experts(begin, end, sum_row);
  });
  end_use();
  if (!w.exact) {
    team.parallel_for(n, 4, [&](int64_t begin, int64_t end) { w.latent_sum.acts.quantize_rows(begin, end); });
  }
  team.parallel_for(latent_up->n_panels(), kPanelsPerShare, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kPanelRows, last = std::min<int64_t>(end * kPanelRows, width);
    matmul(*latent_up, 0, w.latent_sum.acts, {}, n, w.mode(), w.product.data(), width, static_cast<int>(begin),
           static_cast<int>(end));
    for (int t = 0; t < n; ++t) {
      vec().multiply_add(static_cast<int>(last - first), 1.0f, w.product.data() + t * width + first,
                         c.row(op.x, t) + first);
    }
    add_shared(begin, end);
  });
}

void moe_ffn(Team& team, const Context& c, const op::MoeFfn& op, Workspace& w) {
  route(team, c, op, w);
  moe_experts(team, c, op, w);
}

}  // namespace chimere::cpu
