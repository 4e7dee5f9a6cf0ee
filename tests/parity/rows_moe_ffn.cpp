// Rows of the table: mixtures of experts.
#include "ffn_shape.h"

namespace chimere::parity {
namespace {

std::unique_ptr<ParityCase> moe_ffn_case(const FfnShape& s) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(s.d_model, 1.0f);
  op::MoeFfn o{};
  o.x = x;
  o.norm = p.vector(s.d_model, 1.0f, 0.3f);
  o.eps = 1e-6f;
  o.n_experts = s.n_experts;
  o.n_used = s.n_used;
  o.n_least = s.n_least;
  o.entropy_low = 0.6f;
  if (s.ties) {
    // Every second expert has the router row of the one before: ties in all logits, bit for bit.
    std::vector<float> router;
    const MatrixId random = p.matrix(DType::F32, s.d_model, s.n_experts, 1, 0.2f);
    for (int e = 0; e < s.n_experts; ++e) {
      const std::vector<float> r = p.row(random, e / 2);
      router.insert(router.end(), r.begin(), r.end());
    }
    o.router = p.matrix_of(s.d_model, s.n_experts, router);
  } else {
    o.router = p.matrix(s.router, s.d_model, s.n_experts, 1, 0.2f);
  }
  const int d_in = s.latent > 0 ? s.latent : s.d_model;
  o.gate = s.gated() ? p.matrix(s.in_type, d_in, s.d_ff, s.n_experts) : kNone;
  o.up = p.matrix(s.in_type, d_in, s.d_ff, s.n_experts);
  o.down = p.matrix(s.down_type, s.d_ff, d_in, s.n_experts);
  o.activation = s.activation;
  o.scale = s.scale;
  o.gating = s.gating;
  o.renormalise = s.renormalise;
  o.weight_scale = s.weight_scale;
  if (s.selection_bias) o.selection_bias = p.vector(s.n_experts, 0, 0.2f);
  if (s.biases) {
    o.router_bias = p.vector(s.n_experts, 0, 0.5f);
    o.gate_bias = p.vector(int64_t{s.n_experts} * s.d_ff, 0, 0.3f);
    o.up_bias = p.vector(int64_t{s.n_experts} * s.d_ff, 0, 0.3f);
    o.down_bias = p.vector(int64_t{s.n_experts} * d_in, 0, 0.3f);
  }
  if (s.latent > 0) {
    o.latent_down = p.matrix(s.in_type, s.d_model, s.latent);
    o.latent_up = p.matrix(s.in_type, s.latent, s.d_model);
  }
  o.shared_router = kNone;
  if (s.shared_ff > 0) {
    if (s.gated()) o.shared_gate = p.matrix(s.in_type, s.d_model, s.shared_ff);
    o.shared_up = p.matrix(s.in_type, s.d_model, s.shared_ff);
    o.shared_down = p.matrix(s.down_type, s.shared_ff, s.d_model);
    if (s.shared_gated) o.shared_router = p.vector(s.d_model, 0, 0.2f);
  }
  p.program.ops.push_back(o);
  p.observe(x);
  c->tolerance = [&p, o](int32_t token, bool int8) {
    const Approx n = normed(exactly(p.row(0, token)), p.program.vectors[o.norm], o.eps);
    // The router is never quantised: its choices are those of the oracle unless two logits are closer than their
    // rounding, which no token of these tables comes near (checked here), but for the exact ties.
    Approx logits = product(p, o.router, 0, o.n_experts, n, false);
    double slack = 0, all = 0, total = 0;
    for (int e = 0; e < o.n_experts; ++e) {
      if (o.router_bias != kNone) logits.value[e] += p.program.vectors[o.router_bias][e];
      slack = std::max(slack, logits.error[e] + 2 * kUlp * std::abs(logits.value[e]));
      all += std::exp(logits.value[e]);
    }
    std::vector<double> score, key;
    for (int e = 0; e < o.n_experts; ++e) {
      score.push_back(o.gating == op::Gating::sigmoid ? 1 / (1 + std::exp(-logits.value[e]))
                                                      : std::exp(logits.value[e]) / all);
      const bool biased = o.selection_bias != kNone;
      key.push_back(biased ? score[e] + p.program.vectors[o.selection_bias][e] : logits.value[e]);
    }
    std::vector<int> order(o.n_experts);
    for (int e = 0; e < o.n_experts; ++e) order[e] = e;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key[a] > key[b]; });
    int n_used = o.n_used;
    if (o.n_least > 0) {
      double entropy = 0;
      for (int e = 0; e < o.n_experts; ++e)
        entropy -= std::exp(logits.value[e]) / all * (logits.value[e] - std::log(all));
      entropy /= std::log(static_cast<double>(o.n_experts));
      n_used = o.n_used_at(entropy);
      EXPECT_TRUE(o.n_used_at(entropy - 1e-4) == n_used && o.n_used_at(entropy + 1e-4) == n_used)
          << "token " << token << " is near another number of experts: choose other weights";
    }
    if (n_used < o.n_experts) {
      const double gap = key[order[n_used - 1]] - key[order[n_used]];
      EXPECT_TRUE(gap == 0 || gap > 2 * slack) << "token " << token << " is near a router tie: choose other weights";
    }
    for (int k = 0; k < n_used; ++k) total += score[order[k]];
    Approx in = n;
    if (o.latent_down != kNone) {
      in = product(p, o.latent_down, 0, static_cast<int64_t>(p.program.matrices[o.latent_down].ne[1]), n, int8);
    }
    std::vector<double> allowed(p.program.d_model, 0.0);
    const auto add = [&](double weight, double weight_error, const Approx& y) {
      for (size_t i = 0; i < allowed.size(); ++i) {
        allowed[i] += weight * y.error[i] + weight_error * (std::abs(y.value[i]) + y.error[i]);
      }
    };
    Approx sum{std::vector<double>(in.size(), 0.0), std::vector<double>(in.size(), 0.0)};
    const ExpertForTest expert{o.gate, o.up, o.down, o.gate_bias, o.up_bias, o.down_bias};
    for (int k = 0; k < n_used; ++k) {
      const double w = score[order[k]] / (o.renormalise ? total : 1.0) * o.weight_scale * o.scale;
      // exp and the sums turn a logit error into a relative one of at most 4 times its size.
      const double w_error = w * (4 * slack + (16 + o.n_experts) * kUlp);
      const Approx y = expert_output(p, expert, o.activation, order[k], in, int8);
      for (size_t i = 0; i < sum.size(); ++i) {
        sum.value[i] += w * y.value[i];
        sum.error[i] += w * y.error[i] + w_error * (std::abs(y.value[i]) + y.error[i]) + kUlp * std::abs(sum.value[i]);
      }
    }
    if (o.latent_up != kNone) sum = product(p, o.latent_up, 0, p.program.d_model, sum, int8);
    add(1, 0, sum);
    if (o.has_shared()) {
      double w = 1, w_error = 0;
      if (o.shared_router != kNone) {
        double dot = 0, size = 0;
        for (size_t i = 0; i < n.size(); ++i) {
          dot += p.program.vectors[o.shared_router][i] * n.value[i];
          size += std::abs(p.program.vectors[o.shared_router][i] * n.value[i]);
        }
        w = 1 / (1 + std::exp(-dot));
        w_error = w * (static_cast<double>(2 * n.size()) * kUlp * size + 16 * kUlp);
      }
      const ExpertForTest shared{o.shared_gate, o.shared_up, o.shared_down};
      add(w * o.scale, w_error * o.scale, expert_output(p, shared, o.activation, 0, n, int8));
    }
    // Sums of n_used + 2 terms in float32.
    for (double& a : allowed) a += (o.n_used + 2) * kUlp * 8;
    return allowed;
  };
  return c;
}

}  // namespace

Rows rows_of(Tag<op::MoeFfn>) {
  Rows rows;
  const auto moe = [&](const std::string& name, const FfnShape& s, bool runs_if_slow = true) {
    rows.push_back({"moe_ffn_" + name, [s] { return moe_ffn_case(s); }, runs_if_slow});
  };
  moe("f32", {DType::F32, DType::F32, 45, 23, 5, 2});
  moe("f32_shared_gated", {DType::F32, DType::F32, 45, 23, 37, 7, 51, true});
  moe("f32_all_experts", {DType::F32, DType::F32, 33, 17, 5, 5});
  moe("f32_one_expert", {DType::F32, DType::F32, 33, 17, 3, 1});
  moe("f32_ties", {DType::F32, DType::F32, 45, 23, 6, 3, 0, false, true});
  moe("q8_0_shared", {DType::Q8_0, DType::Q8_0, 96, 32, 5, 2, 96, false});
  moe("q4_0_shared_gated", {DType::Q4_0, DType::Q4_0, 96, 32, 37, 7, 64, true}, false);
  moe("q4_k_q5_1", {DType::Q4_K, DType::Q5_1, 256, 96, 5, 2, 32, true, false, DType::BF16});
  moe("iq3_s_iq4_nl", {DType::IQ3_S, DType::IQ4_NL, 256, 32, 37, 7, 64, true, false, DType::Q8_0}, false);
  FfnShape nemotron{DType::Q8_0, DType::Q5_0, 96, 32, 13, 3, 64};
  nemotron.activation = op::Activation::relu2;
  nemotron.gating = op::Gating::sigmoid;
  nemotron.weight_scale = 2.5f;
  nemotron.selection_bias = true;
  moe("sigmoid_relu2_q8_0", nemotron);
  nemotron.latent = 32;
  moe("sigmoid_relu2_latent_q8_0", nemotron);
  FfnShape granite{DType::F32, DType::F32, 45, 23, 7, 2, 51};
  granite.scale = 0.22f;
  moe("scaled_f32", granite);
  FfnShape jamba{DType::F32, DType::F32, 45, 23, 7, 2};
  jamba.renormalise = false;
  moe("not_renormalised_f32", jamba);
  FfnShape oss{DType::MXFP4, DType::MXFP4, 96, 64, 5, 2};
  oss.activation = op::Activation::clamped_swiglu;
  oss.biases = true;
  moe("clamped_biases_mxfp4", oss);
  FfnShape adaptive{DType::F32, DType::F32, 45, 23, 13, 9, 51, true};
  adaptive.n_least = 2;
  moe("adaptive_f32", adaptive);
  FfnShape adaptive_latent = nemotron;
  adaptive_latent.n_least = 1;
  moe("adaptive_sigmoid_latent_q8_0", adaptive_latent);
  moe("q8_0_ties", {DType::Q8_0, DType::Q8_0, 96, 32, 37, 7, 32, false, true}, false);
  return rows;
}

}  // namespace chimere::parity
