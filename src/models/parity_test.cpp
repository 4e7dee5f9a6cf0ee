// parity_test.cpp  The parity table: every op, in shapes that divide nothing, on the CPU backend against the oracle.
//
// A row of the table is a tiny program around one op. Its inputs come straight from embedding tables, so both sides
// see the same bits, and its output is read back unchanged (ProgramForTest::observe). Each row runs in float32 and in
// 8-bit activations, with 1 and with 3 threads; the number of threads may not change a bit.
//
// Tolerances are computed from the weights and inputs of the row (approx_for_test.h); those of attention and GDN are
// argued beside their rows.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "models/approx_for_test.h"
#include "models/program_for_test.h"

namespace chimere {
namespace {

// One row of the table.
struct ParityCase {
  explicit ParityCase(int n_vocab) : p(n_vocab) {}
  ProgramForTest p;
  KvFormat kv{DType::F32, DType::F32, false};
  // Batches, each a list of (sequence, tokens).
  std::vector<std::vector<std::pair<int, int>>> steps = {{{0, 1}}, {{0, 18}, {1, 1}, {2, 5}}, {{1, 7}, {0, 1}}};
  // Of one output row, given its token.
  std::function<std::vector<double>(int32_t token, bool int8)> tolerance;
};

struct Row {
  std::string name;
  std::function<std::unique_ptr<ParityCase>()> make;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

constexpr int kMaxRows = 320;

// Hidden rows of all sequences, and their tokens.
void run_case(const ParityCase& c, Executable& executable, std::vector<std::vector<float>>& hidden,
              std::vector<std::vector<int32_t>>& tokens) {
  std::deque<Sequence> sequences;
  for (const auto& step : c.steps) {
    std::vector<Part> parts;
    for (auto [s, n] : step) {
      while (s >= static_cast<int>(sequences.size())) sequences.push_back(new_sequence(executable));
      parts.push_back({&sequences[s], script_tokens(s, sequences[s].length(), n, c.p.program.n_vocab)});
    }
    run_batch(executable, parts);
    for (Part& part : parts) {
      hidden.push_back(std::move(part.hidden));
      tokens.push_back(std::move(part.tokens));
    }
  }
}

class Parity : public testing::TestWithParam<Row> {};

TEST_P(Parity, WithTheOracle) {
  const std::unique_ptr<ParityCase> c = GetParam().make();
  const size_t width = c->p.program.d_model;
  LoadOptions options;
  options.kv = c->kv;
  options.max_rows = kMaxRows;
  const ExecutablePtr oracle = compiled(reference::compile(c->p.program, options));
  ASSERT_TRUE(oracle);
  std::vector<std::vector<float>> expected;
  std::vector<std::vector<int32_t>> tokens;
  run_case(*c, *oracle, expected, tokens);

  for (bool exact : {true, false}) {
    std::map<int32_t, std::vector<double>> tolerance;
    std::vector<std::vector<float>> first;
    for (int n_threads : {1, 3}) {
      options.exact = exact;
      options.n_threads = n_threads;
      const ExecutablePtr executable = compiled(cpu::compile(c->p.program, options));
      ASSERT_TRUE(executable);
      std::vector<std::vector<float>> found;
      std::vector<std::vector<int32_t>> same_tokens;
      run_case(*c, *executable, found, same_tokens);
      if (first.empty()) first = found;
      ASSERT_TRUE(found == first) << "bits depend on the number of threads";
      for (size_t b = 0; b < expected.size(); ++b) {
        for (size_t t = 0; t < tokens[b].size(); ++t) {
          std::vector<double>& allowed = tolerance[tokens[b][t]];
          if (allowed.empty()) allowed = c->tolerance(tokens[b][t], !exact);
          for (size_t i = 0; i < width; ++i) {
            const float want = expected[b][t * width + i] * ProgramForTest::kObserved;
            const float have = found[b][t * width + i] * ProgramForTest::kObserved;
            ASSERT_NEAR(have, want, allowed[i] + 2 * kUlp * std::abs(want))
                << (exact ? "exact" : "int8") << ", slice " << b << " token " << t << " column " << i;
          }
        }
      }
    }
  }
}

std::string lower(DType type) {
  std::string s(name(type));
  for (char& ch : s) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  return s;
}

// Types a weight may have: all but the integers, which hold ids and counts.
std::vector<DType> matrix_types() {
  std::vector<DType> out;
  for (const DTypeInfo& t : all_dtypes()) {
    if (t.type < DType::I8 || t.type > DType::I64) out.push_back(t.type);
  }
  return out;
}

// About `blocks` blocks, or a prime number of floats.
int odd_width(DType type, int blocks) {
  const int block = info(type).block_elems;
  return block == 1 ? 75 : block < 64 ? (2 * blocks + 1) * block : blocks * block;
}

void embed_rows(std::vector<Row>& rows) {
  for (DType type : matrix_types()) {
    rows.push_back({"embed_" + lower(type), [type] {
                      auto c = std::make_unique<ParityCase>(53);
                      const int width = odd_width(type, 1);
                      c->p.observe(c->p.input(width, 0.5f, type));
                      c->tolerance = [width](int32_t, bool) { return std::vector<double>(width, 0.0); };
                      return c;
                    }});
  }
  // A table that is the output head too lives in panels.
  rows.push_back({"embed_tied_q6_k", [] {
                    auto c = std::make_unique<ParityCase>(53);
                    const BufferId x = c->p.input(512, 0.5f, DType::Q6_K);
                    c->p.observe(x);
                    std::get<op::LmHead>(c->p.program.ops.back()).weight = 0;
                    c->tolerance = [](int32_t, bool) { return std::vector<double>(512, 0.0); };
                    return c;
                  }});
}

std::unique_ptr<ParityCase> norm_matmul_case(DType type, bool norm, bool bias) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const int width = odd_width(type, 2);
  const BufferId x = p.input(width, 1.5f);
  const BufferId seen = p.zero_input(width);
  op::NormMatmul o{x, norm ? p.vector(width, 1.0f, 0.3f) : kNone, 1e-6f, {}};
  const std::vector<int> outs = {33, 1, 19};
  for (int n : outs) o.outs.push_back({p.matrix(type, width, n), bias ? p.vector(n, 0, 1) : kNone, p.buffer(n)});
  p.program.ops.push_back(o);
  int at = 0;
  for (const op::Projection& out : o.outs) {
    p.add_at(out.out, seen, at);
    at += p.program.buffers[out.out].width;
  }
  p.observe(seen);
  c->tolerance = [&p, o, width](int32_t token, bool int8) {
    Approx n = exactly(p.row(0, token));
    if (o.norm != kNone) n = normed(n, p.program.vectors[o.norm], o.eps);
    std::vector<double> allowed;
    for (const op::Projection& out : o.outs) {
      const Approx y = product(p, out.weight, 0, p.program.buffers[out.out].width, n, int8);
      for (size_t i = 0; i < y.size(); ++i) {
        const double b = out.bias == kNone ? 0.0 : std::abs(p.program.vectors[out.bias][i]);
        allowed.push_back(y.error[i] + 2 * kUlp * b);
      }
    }
    allowed.resize(width, 0.0);
    return allowed;
  };
  return c;
}

std::unique_ptr<ParityCase> matmul_add_case(DType type, int in, int out, bool bias, float scale = 1) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(in, 1.5f), residual = p.input(out, 1.0f);
  const MatrixId w = p.matrix(type, in, out);
  const VectorId b = bias ? p.vector(out, 0, 1) : kNone;
  p.program.ops.push_back(op::MatmulAdd{x, w, b, residual, scale});
  p.observe(residual);
  c->tolerance = [&p, w, out](int32_t token, bool int8) {
    std::vector<double> allowed = product(p, w, 0, out, exactly(p.row(0, token)), int8).error;
    for (double& a : allowed) a += 4 * kUlp * 8;  // sums of three numbers below 8
    return allowed;
  };
  return c;
}

void matmul_rows(std::vector<Row>& rows) {
  for (DType type : matrix_types()) {
    rows.push_back({"norm_matmul_" + lower(type), [type] { return norm_matmul_case(type, true, true); }});
  }
  rows.push_back({"norm_matmul_no_norm_q8_0", [] { return norm_matmul_case(DType::Q8_0, false, true); }});
  rows.push_back({"norm_matmul_no_norm_f16", [] { return norm_matmul_case(DType::F16, false, false); }});
  rows.push_back({"norm_matmul_no_bias_iq3_s", [] { return norm_matmul_case(DType::IQ3_S, true, false); }});
  rows.push_back({"matmul_add_f32", [] { return matmul_add_case(DType::F32, 37, 113, true); }});
  rows.push_back({"matmul_add_bf16", [] { return matmul_add_case(DType::BF16, 131, 7, false); }});
  rows.push_back({"matmul_add_q8_0", [] { return matmul_add_case(DType::Q8_0, 96, 41, true); }});
  rows.push_back({"matmul_add_q4_0", [] { return matmul_add_case(DType::Q4_0, 32, 257, false); }});
  rows.push_back({"matmul_add_q4_k", [] { return matmul_add_case(DType::Q4_K, 768, 35, true); }});
  rows.push_back({"matmul_add_iq3_s", [] { return matmul_add_case(DType::IQ3_S, 256, 77, false); }});
  rows.push_back({"matmul_add_scaled_q5_0", [] { return matmul_add_case(DType::Q5_0, 96, 41, true, 0.25f); }});
  rows.push_back({"matmul_add_mxfp4", [] { return matmul_add_case(DType::MXFP4, 160, 51, false); }});
}

struct FfnShape {
  DType in_type, down_type;
  int d_model, d_ff;
  int n_experts = 0, n_used = 0;
  int shared_ff = 0;
  bool shared_gated = false;
  bool ties = false;
  DType router = DType::F32;
  op::Activation activation = op::Activation::swiglu;
  float scale = 1;
  op::Gating gating = op::Gating::softmax;
  bool renormalise = true;
  float weight_scale = 1;
  bool selection_bias = false, biases = false;
  int latent = 0;
  int n_least = 0;  // adaptive

  bool gated() const { return activation != op::Activation::relu2; }
};

std::unique_ptr<ParityCase> dense_ffn_case(const FfnShape& s) {
  auto c = std::make_unique<ParityCase>(31);
  ProgramForTest& p = c->p;
  const BufferId x = p.input(s.d_model, 1.0f);
  op::DenseFfn o{x,
                 p.vector(s.d_model, 1.0f, 0.3f),
                 1e-6f,
                 s.gated() ? p.matrix(s.in_type, s.d_model, s.d_ff) : kNone,
                 p.matrix(s.in_type, s.d_model, s.d_ff),
                 p.matrix(s.down_type, s.d_ff, s.d_model),
                 s.activation,
                 s.scale};
  p.program.ops.push_back(o);
  p.observe(x);
  c->tolerance = [&p, o](int32_t token, bool int8) {
    const Approx n = normed(exactly(p.row(0, token)), p.program.vectors[o.norm], o.eps);
    return expert_output(p, {o.gate, o.up, o.down}, o.activation, 0, n, int8).error;
  };
  return c;
}

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

void ffn_rows(std::vector<Row>& rows) {
  const auto dense = [&](const std::string& name, const FfnShape& s) {
    rows.push_back({"dense_ffn_" + name, [s] { return dense_ffn_case(s); }});
  };
  dense("f32", {DType::F32, DType::F32, 45, 131});
  dense("q8_0", {DType::Q8_0, DType::Q8_0, 96, 160});
  dense("q4_k_q6_k", {DType::Q4_K, DType::Q6_K, 256, 512});
  dense("iq3_s_q4_0", {DType::IQ3_S, DType::Q4_0, 256, 96});
  FfnShape relu2{DType::Q5_0, DType::Q4_1, 96, 160};
  relu2.activation = op::Activation::relu2;
  relu2.scale = 0.3f;
  dense("relu2_scaled_q5_0_q4_1", relu2);
  const auto moe = [&](const std::string& name, const FfnShape& s) {
    rows.push_back({"moe_ffn_" + name, [s] { return moe_ffn_case(s); }});
  };
  moe("f32", {DType::F32, DType::F32, 45, 23, 5, 2});
  moe("f32_shared_gated", {DType::F32, DType::F32, 45, 23, 37, 7, 51, true});
  moe("f32_all_experts", {DType::F32, DType::F32, 33, 17, 5, 5});
  moe("f32_one_expert", {DType::F32, DType::F32, 33, 17, 3, 1});
  moe("f32_ties", {DType::F32, DType::F32, 45, 23, 6, 3, 0, false, true});
  moe("q8_0_shared", {DType::Q8_0, DType::Q8_0, 96, 32, 5, 2, 96, false});
  moe("q4_0_shared_gated", {DType::Q4_0, DType::Q4_0, 96, 32, 37, 7, 64, true});
  moe("q4_k_q5_1", {DType::Q4_K, DType::Q5_1, 256, 96, 5, 2, 32, true, false, DType::BF16});
  moe("iq3_s_iq4_nl", {DType::IQ3_S, DType::IQ4_NL, 256, 32, 37, 7, 64, true, false, DType::Q8_0});
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
  moe("q8_0_ties", {DType::Q8_0, DType::Q8_0, 96, 32, 37, 7, 32, false, true});
}

// Slices of 1, 16, 17, 63, 64, 65 and 150 tokens, cut at odd places and at the grid, alone and in company.
const std::vector<std::vector<std::pair<int, int>>> kSlices = {
    {{0, 150}},        {{1, 1}},  {{1, 16}, {2, 17}, {0, 1}}, {{1, 17}, {0, 1}},
    {{2, 63}, {1, 2}}, {{1, 64}}, {{1, 65}, {0, 5}, {2, 1}}};
constexpr int kSlicesLength = 165;  // of the longest of them

struct GdnShape {
  int d_head, n_key_heads, ratio;
  bool tiled;
  int kernel;
};

std::unique_ptr<ParityCase> gdn_case(const GdnShape& s) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::GdnMix o{};
  o.n_key_heads = s.n_key_heads;
  o.n_value_heads = s.n_key_heads * s.ratio;
  o.d_head = s.d_head;
  o.tiled_heads = s.tiled;
  o.eps = 1e-2f;
  o.qkv = p.input(o.channels(), 1.0f);
  o.z = p.input(o.n_value_heads * s.d_head, 1.0f);
  o.alpha = p.input(o.n_value_heads, 1.0f);
  o.beta = p.input(o.n_value_heads, 1.0f);
  o.conv = p.vector(int64_t{o.channels()} * s.kernel, 0, 0.5f);
  // Decays from almost none to fast: softplus of about 1 times 0.01 to 3.
  std::vector<float> a;
  for (int j = 0; j < o.n_value_heads; ++j) a.push_back(-0.01f * std::pow(300.0f, (j + 0.5f) / o.n_value_heads));
  o.a = p.vector_of(a);
  o.dt_bias = p.vector(o.n_value_heads, 0, 1);
  o.norm = p.vector(s.d_head, 1.0f, 0.3f);
  o.recurrent_layer = 1;
  o.out = p.buffer(o.n_value_heads * s.d_head);
  // A first layer of another shape, so that offsets matter.
  p.program.recurrent_layers = {{2, 5, 1, 3, 3}, {s.kernel - 1, o.channels(), o.n_value_heads, s.d_head, s.d_head}};
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->steps = kSlices;
  // Inside, S <- exp(g) (I - beta k k^T) S + beta k v^T never amplifies an error of S, for |k| = 1: the errors of T
  // tokens add up, each that of sums of d products. Rounding has no preferred sign, so they add as squares: 8 standard
  // deviations sqrt(T d / 3) kUlp are allowed, relative to the columns of S, which are of the order of the largest |v|
  // (5: silu of a conv of standard deviation near 1). q is scaled by 1 / sqrt(d). The norm multiplies by at most
  // 1 / sqrt(eps), its weight by 1.9, silu(z) by 4.
  const double sums = 8 * std::sqrt(double{kSlicesLength} * s.d_head / 3) * kUlp;
  const double bound = sums * 5 / std::sqrt(s.d_head) / std::sqrt(o.eps) * 1.9 * 4;
  const int width = o.n_value_heads * s.d_head;
  c->tolerance = [bound, width](int32_t, bool) { return std::vector<double>(width, bound); };
  return c;
}

void gdn_rows(std::vector<Row>& rows) {
  for (const GdnShape& s : std::vector<GdnShape>{{48, 1, 1, false, 4},
                                                 {48, 3, 2, true, 2},
                                                 {48, 2, 3, false, 5},
                                                 {64, 1, 3, true, 3},
                                                 {64, 2, 2, true, 4},
                                                 {64, 3, 1, false, 4},
                                                 {128, 1, 2, true, 4},
                                                 {128, 2, 1, false, 5}}) {
    rows.push_back({"gdn_mix_d" + std::to_string(s.d_head) + "_key" + std::to_string(s.n_key_heads) + "_ratio" +
                        std::to_string(s.ratio) + (s.tiled ? "_tiled" : "_grouped") + "_conv" +
                        std::to_string(s.kernel),
                    [s] { return gdn_case(s); }});
  }
}

struct MambaShape {
  int d_head, n_heads, n_groups, d_state, kernel;
  bool bias = true, norm = true;
};

// Inside, S <- exp(dt a) S + B (dt x)^T never amplifies an error of S: rounding errors of T tokens and of d_state
// products add up as squares, 8 standard deviations of sqrt((T + d_state) / 3) kUlp, relative to sums whose terms are
// of random sign and so some sqrt(d_state) times larger than their result; 4 times that is allowed.
double recurrence_error(int d_state) {
  return 8 * std::sqrt((double{kSlicesLength} + d_state) / 3) * kUlp * 4 * std::sqrt(d_state);
}

std::unique_ptr<ParityCase> mamba2_case(const MambaShape& s) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::Mamba2Mix o{};
  o.n_heads = s.n_heads, o.d_head = s.d_head, o.n_groups = s.n_groups, o.d_state = s.d_state;
  o.eps = 1e-2f;
  o.in = p.input(o.width(), 1.0f);
  o.conv = p.vector(int64_t{o.channels()} * s.kernel, 0, 0.5f);
  o.conv_bias = s.bias ? p.vector(o.channels(), 0, 0.5f) : kNone;
  // Decays from almost none to fast.
  std::vector<float> a;
  for (int j = 0; j < s.n_heads; ++j) a.push_back(-0.05f * std::pow(60.0f, (j + 0.5f) / s.n_heads));
  o.a = p.vector_of(a);
  o.d = p.vector(s.n_heads, 1.0f, 0.5f);
  o.dt_bias = p.vector(s.n_heads, -1.0f, 0.5f);
  o.norm = s.norm ? p.vector(o.d_inner(), 1.0f, 0.3f) : kNone;
  o.recurrent_layer = 1;
  o.out = p.buffer(o.d_inner());
  // A first layer of another shape, so that offsets matter.
  p.program.recurrent_layers = {{2, 5, 1, 3, 3},
                                {s.kernel - 1, o.channels(), s.n_heads, s.d_state, s.d_head, s.n_heads}};
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->steps = kSlices;
  // No element of a normalised group exceeds the root of its size, nor a weight 1.9. Without the norm: sums of d_state
  // products of state elements (some sqrt(T) terms of order 1) with C, and a gate of at most 4.
  const double largest = s.norm ? 1.9 * std::sqrt(o.d_inner() / s.n_groups) : 4 * std::sqrt(s.d_state * kSlicesLength);
  const double bound = recurrence_error(s.d_state) * largest;
  const int width = o.d_inner();
  c->tolerance = [bound, width](int32_t, bool) { return std::vector<double>(width, bound); };
  return c;
}

std::unique_ptr<ParityCase> mamba1_case(int channels, int d_state, int kernel, bool norms) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  op::CausalConv conv{};
  conv.in = p.input(2 * channels, 1.0f);
  conv.conv = p.vector(int64_t{channels} * kernel, 0, 0.5f);
  conv.conv_bias = norms ? p.vector(channels, 0, 0.5f) : kNone;
  conv.channels = channels;
  conv.recurrent_layer = 1;
  conv.out = p.buffer(channels);
  op::SelectiveScan o{};
  o.x = conv.out;
  o.dt = p.input(channels, 1.0f);
  o.b = p.input(d_state, 1.0f);
  o.c = p.input(d_state, 1.0f);
  o.z = conv.in;
  o.z_at = channels;
  std::vector<float> a;
  for (int i = 0; i < channels * d_state; ++i) a.push_back(-0.1f - 0.5f * static_cast<float>(i % 37));
  o.a = p.vector_of(a);
  o.d = p.vector(channels, 1.0f, 0.5f);
  o.b_norm = norms ? p.vector(d_state, 1.0f, 0.3f) : kNone;
  o.c_norm = norms ? p.vector(d_state, 1.0f, 0.3f) : kNone;
  o.eps = 1e-2f;
  o.channels = channels, o.d_state = d_state, o.recurrent_layer = 1;
  o.out = p.buffer(channels);
  p.program.recurrent_layers = {{2, 5, 1, 3, 3}, {kernel - 1, channels, 1, d_state, channels, 2 * channels + d_state}};
  p.program.ops.push_back(conv);
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->steps = kSlices;
  const double bound = recurrence_error(d_state) * 4 * std::sqrt(d_state * kSlicesLength);
  c->tolerance = [bound, channels](int32_t, bool) { return std::vector<double>(channels, bound); };
  return c;
}

void mamba_rows(std::vector<Row>& rows) {
  for (const MambaShape& s : std::vector<MambaShape>{
           {16, 8, 2, 16, 4}, {48, 3, 1, 24, 2, false}, {20, 6, 3, 32, 5, true, false}, {64, 4, 2, 128, 4}}) {
    rows.push_back({"mamba2_mix_d" + std::to_string(s.d_head) + "_heads" + std::to_string(s.n_heads) + "_groups" +
                        std::to_string(s.n_groups) + "_state" + std::to_string(s.d_state) + "_conv" +
                        std::to_string(s.kernel) + (s.norm ? "" : "_no_norm"),
                    [s] { return mamba2_case(s); }});
  }
  rows.push_back({"selective_scan_75_state16", [] { return mamba1_case(75, 16, 4, false); }});
  rows.push_back({"selective_scan_160_state24_norms", [] { return mamba1_case(160, 24, 3, true); }});
}

enum class RopeShape { none, half, adjacent, partial };

struct AttentionShape {
  int dk, dv, n_kv_heads, group;
  bool gated = false, norm = false;
  RopeShape rope = RopeShape::none;
  KvFormat kv{DType::F32, DType::F32, false};
  bool long_context = false;
  bool sinks = false;
  int window = 0;
};

// The largest element and the largest norm of a head over all rows of a table, after the optional norm.
struct HeadSize {
  double element = 0, norm = 0;
};

HeadSize head_size(const ProgramForTest& p, MatrixId table, int d, VectorId norm) {
  HeadSize size;
  for (int r = 0; r < p.program.n_vocab; ++r) {
    const std::vector<float> row = p.row(table, r);
    for (size_t h = 0; h < row.size(); h += d) {
      Approx head = exactly({row.begin() + h, row.begin() + h + d});
      if (norm != kNone) head = normed(head, p.program.vectors[norm], 1e-6);
      double sum = 0;
      for (double v : head.value) {
        sum += v * v;
        size.element = std::max(size.element, std::abs(v));
      }
      size.norm = std::max(size.norm, std::sqrt(sum));
    }
  }
  return size;
}

std::unique_ptr<ParityCase> attention_case(const AttentionShape& s) {
  auto c = std::make_unique<ParityCase>(101);
  ProgramForTest& p = c->p;
  const int n_heads = s.n_kv_heads * s.group;
  op::Attention o{};
  o.n_heads = n_heads;
  o.n_kv_heads = s.n_kv_heads;
  o.head_dim_k = s.dk;
  o.head_dim_v = s.dv;
  o.gated = s.gated;
  o.eps = 1e-6f;
  o.scale = 1.0f / std::sqrt(static_cast<float>(s.dk));
  const MatrixId q = static_cast<MatrixId>(p.program.matrices.size());
  o.q = p.input(n_heads * s.dk * (s.gated ? 2 : 1), 1.0f);
  o.k = p.input(s.n_kv_heads * s.dk, 1.0f);
  o.v = p.input(s.n_kv_heads * s.dv, 1.0f);
  o.q_norm = s.norm ? p.vector(s.dk, 1.0f, 0.2f) : kNone;
  o.k_norm = s.norm ? p.vector(s.dk, 1.0f, 0.2f) : kNone;
  o.rope = kNone;
  if (s.rope != RopeShape::none) {
    Rope rope;
    rope.pairing = s.rope == RopeShape::adjacent ? Rope::Pairing::adjacent : Rope::Pairing::half;
    const int n_rot = s.rope == RopeShape::partial ? s.dk / 4 / 2 * 2 : s.dk;
    for (int k = 0; k < n_rot / 2; ++k) rope.inv_freq.push_back(std::pow(1e4f, -2.0f * k / n_rot));
    rope.magnitude = 1.1f;
    p.program.ropes.push_back(rope);
    o.rope = 0;
  }
  if (s.sinks) o.sinks = p.vector(n_heads, 0.5f, 1.0f);
  o.window = s.window;
  o.kv_layer = 1;
  o.out = p.buffer(n_heads * s.dv);
  p.program.kv_layers = {{1, 32, 64}, {s.n_kv_heads, s.dk, s.dv}};
  p.program.ops.push_back(o);
  p.observe(o.out);
  c->kv = s.kv;
  c->steps = kSlices;
  // Contexts beyond 256 and 512 tokens, where the decode class joins pieces of the context.
  if (s.long_context) c->steps = {{{0, 255}}, {{0, 1}, {1, 250}}, {{0, 3}, {1, 16}}, {{0, 250}}, {{0, 9}, {1, 1}}};
  const double length = s.long_context ? 518 : kSlicesLength;

  // A score is a sum of dk products that never exceeds |q| |k| scale: with random signs, 8 standard deviations of
  // sqrt(dk / 3) kUlp of that. The heads' norm, rotation and RoPE cost a few roundings each (30). The angle of a pair
  // may be kept in float32 (the oracle does so): off by pos kUlp at most, in dk / 2 pairs of random sign.
  // A score off by e moves a softmax weight by a factor exp(2 e) at most, so the output, an average of values, by
  // 2 e max|v|; the average itself is a sum of `length` products of random sign, and the exponential adds a few units.
  // Rotation alone adds and subtracts in a given order, so all sides store the same codes. After a norm or RoPE they
  // may round an element of a key to neighbouring codes. That moves its score by one step times an element of q, and
  // the average by p (1 - p) times that, of a distance of at most 2 max|v|.
  const double magnitude = o.rope == kNone ? 1.0 : 1.1;
  const HeadSize qs = head_size(p, q, s.dk, o.q_norm), ks = head_size(p, q + 1, s.dk, o.k_norm);
  const double top_v = head_size(p, q + 2, s.dv, kNone).element;
  double step = 0;
  if (s.norm || o.rope != kNone) {
    const double top_k = ks.element * magnitude * std::sqrt(2.0);
    if (s.kv.k == DType::F16) step = top_k * 0x1p-10;
    if (s.kv.k == DType::Q8_0) step = top_k / 127;
    if (s.kv.k == DType::Q4_0) step = top_k / 8;
  }
  const double angle = o.rope == kNone ? 0.0 : 8 * length / std::sqrt(s.dk / 2.0);
  const double products = qs.norm * ks.norm * magnitude * magnitude * (8 * std::sqrt(s.dk / 3.0) + 30 + angle) * kUlp;
  const double score = o.scale * products;
  const double flip = o.scale * qs.element * magnitude * std::sqrt(2.0) * step;
  const double bound = (2 * score + flip / 2 + (8 * std::sqrt(length / 3) + 30) * kUlp) * top_v;
  const int width = n_heads * s.dv;
  c->tolerance = [bound, width](int32_t, bool) { return std::vector<double>(width, bound); };
  return c;
}

void attention_rows(std::vector<Row>& rows) {
  const auto add = [&](const std::string& name, const AttentionShape& s) {
    rows.push_back({"attention_" + name, [s] { return attention_case(s); }});
  };
  const KvFormat f32{DType::F32, DType::F32, false}, f16{DType::F16, DType::F16, false};
  const KvFormat q8{DType::Q8_0, DType::Q8_0, false}, q4{DType::Q4_0, DType::Q4_0, false};
  const auto rotated = [](KvFormat f) { return KvFormat{f.k, f.v, true}; };
  add("d48", {48, 48, 1, 1});
  add("d48_gqa3_gated_norm_half", {48, 48, 2, 3, true, true, RopeShape::half, f32});
  add("d64_gqa7_adjacent", {64, 64, 1, 7, false, false, RopeShape::adjacent, f32});
  add("d80_partial_norm", {80, 80, 3, 2, false, true, RopeShape::partial, f32});
  add("d128_gqa4_half", {128, 128, 1, 4, false, false, RopeShape::half, f32});
  add("d256_gqa2_gated_norm_partial", {256, 256, 1, 2, true, true, RopeShape::partial, f32});
  add("dk80_dv48", {80, 48, 2, 2, false, false, RopeShape::half, f32});
  add("d80_f16", {80, 80, 1, 3, false, false, RopeShape::none, f16});
  add("d48_f16_rotate", {48, 48, 2, 1, false, false, RopeShape::none, rotated(f16)});
  add("d128_f16_norm_half", {128, 128, 1, 2, true, true, RopeShape::half, f16});
  add("d64_q8_0", {64, 64, 2, 2, false, false, RopeShape::none, q8});
  add("d96_q8_0_rotate", {96, 96, 1, 5, true, false, RopeShape::none, rotated(q8)});
  add("d128_q8_0_norm_half_rotate", {128, 128, 1, 3, true, true, RopeShape::half, rotated(q8)});
  add("d64_q4_0", {64, 64, 2, 3, true, false, RopeShape::none, q4});
  add("d256_q4_0_rotate", {256, 256, 1, 2, false, false, RopeShape::none, rotated(q4)});
  add("d64_q8_0_keys_q4_0_values", {64, 96, 1, 2, false, false, RopeShape::none, {DType::Q8_0, DType::Q4_0, false}});
  add("d48_f32_keys_f16_values", {48, 80, 1, 3, false, false, RopeShape::half, {DType::F32, DType::F16, true}});
  add("d48_long_context", {48, 48, 1, 3, true, true, RopeShape::half, f32, true});
  add("d48_sinks", {48, 48, 2, 3, false, false, RopeShape::half, f32, false, true});
  add("d48_window20", {48, 48, 1, 2, false, false, RopeShape::none, f32, false, false, 20});
  add("d64_sinks_window100_f16", {64, 64, 2, 2, false, false, RopeShape::none, f16, false, true, 100});
  add("d48_window300_long_context", {48, 48, 1, 3, true, true, RopeShape::half, f32, true, true, 300});
  add("d48_window7_long_context", {48, 48, 1, 2, false, false, RopeShape::half, f32, true, false, 7});
  add("d64_long_context_q8_0", {64, 64, 1, 2, false, false, RopeShape::none, q8, true});
}

std::vector<Row> table() {
  std::vector<Row> rows;
  embed_rows(rows);
  matmul_rows(rows);
  ffn_rows(rows);
  gdn_rows(rows);
  mamba_rows(rows);
  attention_rows(rows);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Ops, Parity, testing::ValuesIn(table()), [](const auto& info) { return info.param.name; });

// Logits of chosen rows only, over vocabularies that fill no panel, with a real norm.
TEST(LmHeadParity, ChosenRowsOfOddVocabularies) {
  for (DType type : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_K, DType::Q6_K, DType::IQ3_S}) {
    for (int n_vocab : {1, 15, 17, 131}) {
      ProgramForTest p(n_vocab);
      const int width = odd_width(type, 1);
      p.program.d_model = width;
      const BufferId x = p.input(width, 2.0f);
      const op::LmHead head{x, p.vector(width, 1.0f, 0.3f), 1e-6f, p.matrix(type, width, n_vocab)};
      p.program.ops.push_back(head);
      Batch batch;
      batch.tokens = script_tokens(0, 0, 21, n_vocab);
      batch.slices = {{{}, 0, 21, 0}};
      batch.logit_rows = {0, 3, 4, 19};
      const auto run = [&](const ExecutablePtr& executable, std::vector<float>& logits, std::vector<float>& hidden) {
        ASSERT_TRUE(executable);
        logits.assign(batch.logit_rows.size() * n_vocab, NAN);
        hidden.assign(batch.logit_rows.size() * width, NAN);
        ASSERT_TRUE(executable->run(batch, {.logits = logits.data(), .hidden = hidden.data()}));
        // Asking for less changes nothing of what is left.
        std::vector<float> only(logits.size(), NAN);
        ASSERT_TRUE(executable->run(batch, {.logits = only.data(), .hidden = nullptr}));
        ASSERT_EQ(only, logits);
      };
      LoadOptions options;
      options.max_rows = 21;
      std::vector<float> want, want_hidden;
      run(compiled(reference::compile(p.program, options)), want, want_hidden);
      for (bool exact : {true, false}) {
        for (int n_threads : {1, 3}) {
          options.exact = exact;
          options.n_threads = n_threads;
          std::vector<float> have, have_hidden;
          run(compiled(cpu::compile(p.program, options)), have, have_hidden);
          for (size_t r = 0; r < batch.logit_rows.size(); ++r) {
            const Approx n =
                normed(exactly(p.row(0, batch.tokens[batch.logit_rows[r]])), p.program.vectors[head.norm], head.eps);
            const Approx y = product(p, head.weight, 0, n_vocab, n, !exact);
            for (int v = 0; v < n_vocab; ++v) {
              ASSERT_NEAR(have[r * n_vocab + v], want[r * n_vocab + v], y.error[v]) << name(type) << " of " << n_vocab;
            }
            for (int i = 0; i < width; ++i) {
              ASSERT_NEAR(have_hidden[r * width + i], want_hidden[r * width + i], n.error[i]);
            }
          }
        }
      }
    }
  }
}

// Layers of different widths share the working memory of a batch.
TEST(FfnParity, DenseAndExpertLayersOfDifferentWidths) {
  ProgramForTest p(31);
  const int d = 96;
  const BufferId x = p.input(d, 1.0f);
  const auto dense = [&](int ff) {
    p.program.ops.push_back(op::DenseFfn{x, p.vector(d, 1.0f, 0.3f), 1e-6f, p.matrix(DType::F32, d, ff),
                                         p.matrix(DType::F32, d, ff), p.matrix(DType::F32, ff, d)});
  };
  const auto moe = [&](int ff, int shared_ff) {
    op::MoeFfn o{};
    o.x = x;
    o.norm = p.vector(d, 1.0f, 0.3f);
    o.eps = 1e-6f;
    o.n_experts = 5;
    o.n_used = 2;
    o.router = p.matrix(DType::F32, d, 5, 1, 0.2f);
    o.gate = p.matrix(DType::F32, d, ff, 5);
    o.up = p.matrix(DType::F32, d, ff, 5);
    o.down = p.matrix(DType::F32, ff, d, 5);
    o.shared_gate = p.matrix(DType::F32, d, shared_ff);
    o.shared_up = p.matrix(DType::F32, d, shared_ff);
    o.shared_down = p.matrix(DType::F32, shared_ff, d);
    o.shared_router = kNone;
    p.program.ops.push_back(o);
  };
  dense(577);
  moe(23, 51);
  dense(70);
  moe(41, 17);
  p.observe(x);
  ParityCase c(31);
  LoadOptions options;
  options.max_rows = kMaxRows;
  options.exact = true;
  std::vector<std::vector<float>> want, have;
  std::vector<std::vector<int32_t>> tokens;
  const ExecutablePtr oracle = compiled(reference::compile(p.program, options));
  ASSERT_TRUE(oracle);
  run_case(c, *oracle, want, tokens);
  for (int n_threads : {1, 3}) {
    options.n_threads = n_threads;
    have.clear();
    const ExecutablePtr executable = compiled(cpu::compile(p.program, options));
    ASSERT_TRUE(executable);
    run_case(c, *executable, have, tokens);
    for (size_t b = 0; b < want.size(); ++b) {
      for (size_t i = 0; i < want[b].size(); ++i) {
        // Four layers, each a few hundred roundings of numbers of order 10; routing has no near tie in this table.
        ASSERT_NEAR(have[b][i] * ProgramForTest::kObserved, want[b][i] * ProgramForTest::kObserved,
                    4 * 600 * kUlp * 10);
      }
    }
  }
}

}  // namespace
}  // namespace chimere
