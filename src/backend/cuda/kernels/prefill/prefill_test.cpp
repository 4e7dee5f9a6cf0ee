// prefill_test.cpp  Whole ops of many rows in the emulator against the ops of backend/reference.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/prefill/prefill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backend/cuda/kernels/common/test_weights.h"
#include "backend/reference/reference.h"

namespace chimere::cuda {
namespace {

// A program of one op over a buffer of rows, with what the oracle needs around it.
struct Oracle {
  Program program;
  Batch batch;
  std::vector<std::vector<float>> buffers;

  Oracle(int n_rows, int width, uint64_t seed) {
    program.buffers.push_back({"x", width});
    program.d_model = width;
    batch.tokens.resize(n_rows);
    buffers.push_back(random_floats(static_cast<size_t>(n_rows) * width, seed, 3.0f));
    program.vectors.push_back(random_floats(width, seed + 1));
  }
  MatrixId add(const TestWeight& w) {
    program.matrices.push_back(w.view);
    return static_cast<MatrixId>(program.matrices.size()) - 1;
  }
  template <class O>
  void run(const O& op, Outputs outputs = {}) {
    Result<StateLayout> layout = StateLayout::create({}, {}, {});
    reference::run(reference::Context{program, *layout, batch, buffers, outputs}, op);
  }
  PrefillInput input(int n_rows) const {
    return {buffers[0].data(), program.buffers[0].width, n_rows, nullptr, program.vectors[0].data(), 1e-6f};
  }
};

void expect_close(const std::vector<float>& found, const std::vector<float>& expected, double slack) {
  ASSERT_EQ(found.size(), expected.size());
  double squares = 0, errors = 0, worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(std::isfinite(found[i])) << i;
    const double error = static_cast<double>(found[i]) - expected[i];
    squares += static_cast<double>(expected[i]) * expected[i];
    errors += error * error;
    worst = std::max(worst, std::fabs(error));
  }
  EXPECT_LE(std::sqrt(errors), slack * std::sqrt(squares));
  EXPECT_LE(worst, 10 * slack * std::sqrt(squares / static_cast<double>(found.size())));
}

constexpr double kExact = 2e-6, kFast = 1e-3;

template <class Op>
struct Scratch {
  std::vector<uint64_t> memory;
  PrefillScratch place;
  explicit Scratch(const Op& op) : memory(prefill_scratch_bytes(op) / 8, ~uint64_t{0}) {
    place = {reinterpret_cast<std::byte*>(memory.data()), memory.size() * 8};
  }
};

TEST(Prefill, NormMatmul) {
  const int n_rows = 67, width = 96;
  const TestWeight a(DType::Q8_0, width, 50), b(DType::F16, width, 7, 1, 2);
  for (const bool exact : {false, true}) {
    Oracle oracle(n_rows, width, 5);
    oracle.program.buffers.push_back({"a", 50});
    oracle.program.buffers.push_back({"b", 7});
    oracle.buffers.emplace_back(static_cast<size_t>(n_rows) * 50);
    oracle.buffers.emplace_back(static_cast<size_t>(n_rows) * 7);
    std::vector<float> out_a(oracle.buffers[1].size(), NAN), out_b(oracle.buffers[2].size(), NAN);
    PrefillProduct op;
    op.in = oracle.input(n_rows);
    op.n_outputs = 2;
    op.outputs[0] = {a.weight, nullptr, out_a.data(), 50, false};
    op.outputs[1] = {b.weight, nullptr, out_b.data(), 7, false};
    op.exact = exact;
    Scratch scratch(op);
    ASSERT_TRUE(static_cast<bool>(prefill_product(Stream(), op, scratch.place)));
    oracle.run(op::NormMatmul{0, 0, 1e-6f, {{oracle.add(a), kNone, 1}, {oracle.add(b), kNone, 2}}});
    expect_close(out_a, oracle.buffers[1], exact ? kExact : kFast);
    expect_close(out_b, oracle.buffers[2], exact ? kExact : kFast);
  }
}

TEST(Prefill, LogitsOfSomeRows) {
  const int n_rows = 40, width = 64, n_vocab = 301;
  const TestWeight head(DType::Q4_0, width, n_vocab);
  for (const bool exact : {false, true}) {
    Oracle oracle(n_rows, width, 5);
    oracle.program.n_vocab = n_vocab;
    for (int r = 3; r < n_rows; r += 2) oracle.batch.logit_rows.push_back(r);
    const int n = static_cast<int>(oracle.batch.logit_rows.size());
    std::vector<float> logits(static_cast<size_t>(n) * n_vocab), hidden(static_cast<size_t>(n) * width);
    std::vector<float> expected = logits, expected_hidden = hidden;
    PrefillProduct op;
    op.in = oracle.input(n);
    op.in.gather = oracle.batch.logit_rows.data();
    op.n_outputs = 1;
    op.outputs[0] = {head.weight, nullptr, logits.data(), n_vocab, false};
    op.normed = hidden.data();
    op.exact = exact;
    Scratch scratch(op);
    ASSERT_TRUE(static_cast<bool>(prefill_product(Stream(), op, scratch.place)));
    oracle.run(op::LmHead{0, 0, 1e-6f, oracle.add(head)}, {expected.data(), expected_hidden.data()});
    expect_close(logits, expected, exact ? kExact : kFast);
    expect_close(hidden, expected_hidden, kExact);
  }
}

void check_feed_forward(DType gate_type, DType up_type) {
  const int n_rows = 33, width = 96, d_ff = 160;
  const TestWeight gate(gate_type, width, d_ff, 1, 1), up(up_type, width, d_ff, 1, 2),
      down(DType::Q8_0, d_ff, width, 1, 3);
  for (const bool exact : {false, true}) {
    Oracle oracle(n_rows, width, 5);
    std::vector<float> x = oracle.buffers[0];
    PrefillFfn op;
    op.in = oracle.input(n_rows);
    op.in.x = op.residual = x.data();
    op.weights = {gate.weight, up.weight, down.weight};
    op.exact = exact;
    Scratch scratch(op);
    ASSERT_TRUE(static_cast<bool>(prefill_ffn(Stream(), op, scratch.place)));
    oracle.run(op::DenseFfn{0, 0, 1e-6f, oracle.add(gate), oracle.add(up), oracle.add(down)});
    expect_close(x, oracle.buffers[0], exact ? kExact : kFast);
  }
}

TEST(Prefill, DenseFeedForward) { check_feed_forward(DType::Q5_0, DType::Q5_0); }
TEST(Prefill, GateAndUpOfTwoTypes) {
  check_feed_forward(DType::IQ4_NL, DType::F16);
  check_feed_forward(DType::Q8_0, DType::Q4_1);
}

// Experts as Qwen has them; as Nemotron has them: no gates, a sigmoid router with a selection bias, latent or not; as
// gpt-oss has them: biases everywhere.
enum class Style { qwen, nemotron, latent, gpt_oss };

struct MoeShape {
  int n_rows, width, d_ff, n_experts, n_used;
  DType type;
  bool shared, gated;
  Style style = Style::qwen;
};

class PrefillExperts : public testing::TestWithParam<MoeShape> {};

TEST_P(PrefillExperts, MatchTheOracle) {
  const MoeShape s = GetParam();
  const TestWeight router(DType::F32, s.width, s.n_experts, 1, 9);
  const int d_in = s.style == Style::latent ? 64 : s.width;
  const TestWeight gate(s.type, d_in, s.d_ff, s.n_experts, 1), up(s.type, d_in, s.d_ff, s.n_experts, 2),
      down(s.type, s.d_ff, d_in, s.n_experts, 3);
  const TestWeight latent_down(DType::Q8_0, s.width, d_in, 1, 7), latent_up(DType::Q8_0, d_in, s.width, 1, 8);
  const TestWeight shared_gate(DType::Q8_0, s.width, 64, 1, 4), shared_up(DType::Q8_0, s.width, 64, 1, 5),
      shared_down(DType::Q8_0, 64, s.width, 1, 6);
  const auto check = [&](bool exact) {
    Oracle oracle(s.n_rows, s.width, 5);
    oracle.program.vectors.push_back(random_floats(s.width, 12, 0.1f));
    std::vector<float> x = oracle.buffers[0];
    PrefillMoe op;
    op.in = oracle.input(s.n_rows);
    op.in.x = op.residual = x.data();
    op.router = router.weight;
    op.experts = {gate.weight, up.weight, down.weight};
    op.n_used = s.n_used;
    op::MoeFfn expected{.x = 0,
                        .norm = 0,
                        .eps = 1e-6f,
                        .router = oracle.add(router),
                        .gate = oracle.add(gate),
                        .up = oracle.add(up),
                        .down = oracle.add(down),
                        .n_experts = s.n_experts,
                        .n_used = s.n_used};
    if (s.shared) {
      op.shared = {shared_gate.weight, shared_up.weight, shared_down.weight};
      expected.shared_gate = oracle.add(shared_gate);
      expected.shared_up = oracle.add(shared_up);
      expected.shared_down = oracle.add(shared_down);
      if (s.gated) {
        op.shared_router = oracle.program.vectors[1].data();
        expected.shared_router = 1;
      }
    }
    auto& vectors = oracle.program.vectors;
    const auto vector_of = [&](int n, float stddev) {
      vectors.push_back(random_floats(n, 20 + vectors.size(), stddev));
      return static_cast<VectorId>(vectors.size() - 1);
    };
    if (s.style == Style::nemotron || s.style == Style::latent) {
      expected.activation = op.experts.activation = op.shared.activation = op::Activation::relu2;
      expected.gate = expected.shared_gate = kNone;
      op.experts.gate = op.shared.gate = {};
      expected.gating = op.style.gating = op::Gating::sigmoid;
      expected.weight_scale = op.style.weight_scale = 2.5f;
      expected.scale = op.scale = 0.5f;
      expected.selection_bias = vector_of(s.n_experts, 0.3f);
      op.style.selection_bias = vectors[expected.selection_bias].data();
    }
    if (s.style == Style::latent) {
      expected.renormalise = op.style.renormalise = false;
      expected.latent_down = oracle.add(latent_down);
      expected.latent_up = oracle.add(latent_up);
      op.latent_down = latent_down.weight;
      op.latent_up = latent_up.weight;
    }
    if (s.style == Style::gpt_oss) {
      expected.activation = op.experts.activation = op::Activation::clamped_swiglu;
      expected.renormalise = op.style.renormalise = false;
      expected.router_bias = vector_of(s.n_experts, 0.5f);
      expected.gate_bias = vector_of(s.n_experts * s.d_ff, 0.5f);
      expected.up_bias = vector_of(s.n_experts * s.d_ff, 0.5f);
      expected.down_bias = vector_of(s.n_experts * s.width, 0.5f);
      op.router_bias = vectors[expected.router_bias].data();
      op.experts.gate_bias = vectors[expected.gate_bias].data();
      op.experts.up_bias = vectors[expected.up_bias].data();
      op.experts.down_bias = vectors[expected.down_bias].data();
    }
    op.exact = exact;
    Scratch scratch(op);
    const Status status = prefill_moe(Stream(), op, scratch.place);
    ASSERT_TRUE(static_cast<bool>(status)) << status.error().message;
    oracle.run(expected);
    expect_close(x, oracle.buffers[0], exact ? kExact : kFast);
  };
  simt::for_both_schedules([&] {
    check(false);
    check(true);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, PrefillExperts,
                         testing::Values(MoeShape{17, 96, 64, 12, 3, DType::Q8_0, true, true},
                                         MoeShape{80, 64, 32, 40, 8, DType::Q4_0, true, false},
                                         MoeShape{33, 256, 256, 5, 2, DType::IQ3_S, false, false},
                                         MoeShape{33, 256, 256, 5, 2, kIq3Wide, true, false},
                                         MoeShape{40, 96, 160, 7, 3, DType::Q4_0, true, false, Style::nemotron},
                                         MoeShape{18, 96, 32, 9, 3, DType::Q5_0, true, false, Style::latent},
                                         MoeShape{21, 96, 96, 6, 2, DType::MXFP4, false, false, Style::gpt_oss}));

TEST(Prefill, EqualLogitsGoToTheLowerExpert) {
  const std::vector<float> logits = {1, 3, 3, 0, 3, 2, /**/ 5, 5, 5, 5, 5, 5, /**/ -2, -1, NAN, -1, -3, -4};
  std::vector<int32_t> ids(9);
  std::vector<float> weights(9);
  ASSERT_TRUE(static_cast<bool>(choose_experts(Stream(), {logits.data(), 3, 3, 6, ids.data(), weights.data()})));
  EXPECT_EQ(ids, (std::vector<int32_t>{1, 2, 4, 0, 1, 2, 1, 3, 0}));
  EXPECT_NEAR(weights[0], 1.0f / 3, 1e-6f);
  EXPECT_NEAR(weights[8], std::exp(-1.0) / (2 + std::exp(-1.0)), 1e-6);
}

}  // namespace
}  // namespace chimere::cuda
