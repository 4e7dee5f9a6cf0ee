// gemm_test.cpp  Prefill products, rows and experts in the emulator against the formulas of backend/reference.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/prefill/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "backend/cuda/kernels/common/test_weights.h"
#include "backend/cuda/kernels/rows/embed.h"
#include "backend/cuda/kernels/rows/rows.h"
#include "backend/reference/reference.h"
#include "tensor/dequantize.h"

namespace chimere::cuda {
namespace {

// Rows on "the device" in both forms.
struct Rows {
  std::vector<float> floats;
  std::vector<uint16_t> halves;
  std::vector<float> scales;
  int n_rows, width;

  Rows(int n, int w) : halves(static_cast<size_t>(n) * half_stride(w), 0xFFFF), scales(n, NAN), n_rows(n), width(w) {}
  Rows(std::vector<float> x, int n, int w) : Rows(n, w) {
    floats = std::move(x);
    NormArgs args{.x = floats.data(), .width = w, .n_rows = n, .half = half()};
    EXPECT_TRUE(static_cast<bool>(norm_rows(Stream(), args)));
  }
  HalfRows half() { return {halves.data(), scales.data(), half_stride(width)}; }
  GemmInput input(bool exact) { return {half(), exact ? floats.data() : nullptr, n_rows, width}; }
};

// Of the root mean square of what is expected. Halves of inputs and weights are off by 2^-12 or so each.
constexpr double kExactSlack = 1e-6, kFastSlack = 6e-4;
constexpr double kChain = 1.5;  // after two products the errors of both

void expect_near(const std::vector<float>& found, const std::vector<float>& expected, bool exact,
                 const std::string& where, double factor = 1.0) {
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0, squares = 0, error_squares = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(std::isfinite(found[i])) << where << " element " << i;
    const double error = std::fabs(static_cast<double>(found[i]) - expected[i]);
    worst = std::max(worst, error);
    squares += static_cast<double>(expected[i]) * expected[i];
    error_squares += error * error;
  }
  const double size = std::sqrt(squares / static_cast<double>(found.size()));
  const double slack = factor * (exact ? kExactSlack : kFastSlack);
  EXPECT_LE(std::sqrt(error_squares / static_cast<double>(found.size())), slack * size) << where;
  EXPECT_LE(worst, 8 * slack * size) << where;
}

class GemmTypes : public testing::TestWithParam<DType> {};

TEST_P(GemmTypes, MatchesTheOracle) {
  const DType type = GetParam();
  const int block = info(file_type(type)).block_elems;
  const int width = block == 1 ? 75 : block == 32 ? 96 : block * 2;
  const int n_rows = 37, n_out = 141;
  const TestWeight m(type, width, n_out);
  Rows x(random_floats(static_cast<size_t>(n_rows) * width, 3), n_rows, width);
  const std::vector<float> bias = random_floats(n_out, 4);
  std::vector<float> expected(static_cast<size_t>(n_rows) * n_out);
  reference::matmul(m.view, 0, x.floats.data(), n_rows, bias.data(), expected.data());
  for (const bool exact : {false, true}) {
    std::vector<float> out(expected.size(), NAN);
    GemmArgs args{x.input(exact), 1, {{m.weight, bias.data(), out.data(), n_out, false}}};
    const Status status = gemm(Stream(), args);
    ASSERT_TRUE(static_cast<bool>(status)) << status.error().message;
    expect_near(out, expected, exact, exact ? "exact" : "fast");
  }
}

std::vector<DType> weight_types() {
  std::vector<DType> types;
  for (const DTypeInfo& t : all_dtypes()) types.push_back(t.type);
  types.push_back(kIq3Wide);
  return types;
}
INSTANTIATE_TEST_SUITE_P(All, GemmTypes, testing::ValuesIn(weight_types()),
                         [](const auto& i) { return type_name(i.param); });

TEST(Gemm, SeveralOutputsOfSeveralTypesAndTheResidual) {
  simt::for_both_schedules([] {
    const int width = 256, n_rows = 130;
    const TestWeight a(DType::Q5_K, width, 130), b(DType::Q5_K, width, 7, 1, 8), c(DType::Q6_K, width, 64, 1, 9),
        d(DType::F32, width, 3, 1, 10), e(DType::Q4_0, width, 140, 1, 11), f(DType::Q4_0, width, 50, 1, 12);
    Rows x(random_floats(static_cast<size_t>(n_rows) * width, 5), n_rows, width);
    const TestWeight* matrices[] = {&a, &b, &c, &d, &e, &f};
    for (const bool exact : {false, true}) {
      GemmArgs args{x.input(exact), 6, {}};
      std::vector<std::vector<float>> outs, expected;
      for (int i = 0; i < 6; ++i) {
        const int n_out = matrices[i]->weight.rows;
        outs.push_back(random_floats(static_cast<size_t>(n_rows) * n_out, 20 + i));
        expected.emplace_back(outs[i].size());
        reference::matmul(matrices[i]->view, 0, x.floats.data(), n_rows, nullptr, expected[i].data());
        for (size_t j = 0; j < outs[i].size() && i % 2 == 0; ++j) expected[i][j] += outs[i][j];
      }
      for (int i = 0; i < 6; ++i) {
        args.outputs[i] = {matrices[i]->weight, nullptr, outs[i].data(), matrices[i]->weight.rows, i % 2 == 0};
      }
      ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
      for (int i = 0; i < 6; ++i) {
        expect_near(outs[i], expected[i], exact, "output " + std::to_string(i));
      }
    }
  });
}

// Both tile heights, and rows alone: the same bits.
TEST(Gemm, ARowsBitsDoNotDependOnItsNeighbours) {
  const int width = 64, n_rows = 150, n_out = 12300;  // enough column tiles for the large row tiles
  for (const DType type : {DType::Q8_0, DType::Q4_0}) {
    const TestWeight m(type, width, n_out);
    Rows x(random_floats(static_cast<size_t>(n_rows) * width, 3), n_rows, width);
    std::vector<float> all(static_cast<size_t>(n_rows) * n_out), few(static_cast<size_t>(20) * n_out);
    GemmArgs args{x.input(false), 1, {{m.weight, nullptr, all.data(), n_out, false}}};
    ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
    args.outputs[0].out = few.data();
    args.x.half.data += static_cast<size_t>(100) * half_stride(width);
    args.x.half.scale += 100;
    args.x.n_rows = 20;
    ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
    EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin() + static_cast<std::ptrdiff_t>(100) * n_out));
  }
}

TEST(Gemm, ARowsExactBitsDoNotDependOnTheTiles) {
  const int width = 80, n_rows = 130, n_out = 2100;  // few rows go in small tiles, all in large ones
  for (const DType type : {DType::F32, DType::BF16}) {
    const TestWeight m(type, width, n_out);
    Rows x(random_floats(static_cast<size_t>(n_rows) * width, 3), n_rows, width);
    std::vector<float> all(static_cast<size_t>(n_rows) * n_out), few(static_cast<size_t>(37) * n_out);
    GemmArgs args{x.input(true), 1, {{m.weight, nullptr, all.data(), n_out, false}}};
    ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
    args.outputs[0].out = few.data();
    args.x.exact += static_cast<size_t>(90) * width;
    args.x.n_rows = 37;
    ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
    EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin() + static_cast<std::ptrdiff_t>(90) * n_out));
  }
}

TEST(Gemm, HugeAndTinyRowsKeepTheirPrecision) {
  const int width = 64, n_out = 20;
  const TestWeight m(DType::Q8_0, width, n_out);
  for (const float size : {1e-30f, 1e-6f, 1e6f, 1e30f}) {
    Rows x(random_floats(static_cast<size_t>(3) * width, 3, size), 3, width);
    std::vector<float> out(3 * n_out), expected(3 * n_out);
    reference::matmul(m.view, 0, x.floats.data(), 3, nullptr, expected.data());
    GemmArgs args{x.input(false), 1, {{m.weight, nullptr, out.data(), n_out, false}}};
    ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
    expect_near(out, expected, false, "size " + std::to_string(size));
  }
}

std::vector<float> reference_hidden(const TensorView& gate, const TensorView& up, int expert, const float* x) {
  std::vector<float> g(gate.ne[1]), u(gate.ne[1]);
  reference::matmul(gate, static_cast<uint64_t>(expert), x, 1, nullptr, g.data());
  reference::matmul(up, static_cast<uint64_t>(expert), x, 1, nullptr, u.data());
  for (size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(reference::silu(g[i]) * u[i]);
  return g;
}

TEST(Gemm, GatedThenDown) {
  const int width = 96, d_ff = 160, n_rows = 70;
  const TestWeight gate(DType::Q4_0, width, d_ff, 1, 1), up(DType::Q4_0, width, d_ff, 1, 2),
      down(DType::Q8_0, d_ff, width, 1, 3);
  Rows x(random_floats(static_cast<size_t>(n_rows) * width, 3, 4.0f), n_rows, width);
  std::vector<float> residual = random_floats(static_cast<size_t>(n_rows) * width, 9), expected = residual;
  for (int r = 0; r < n_rows; ++r) {
    const std::vector<float> h = reference_hidden(gate.view, up.view, 0, x.floats.data() + r * width);
    std::vector<float> y(width);
    reference::matmul(down.view, 0, h.data(), 1, nullptr, y.data());
    for (int i = 0; i < width; ++i) expected[r * width + i] += y[i];
  }
  for (const bool exact : {false, true}) {
    Rows hidden(n_rows, d_ff);
    hidden.floats.assign(static_cast<size_t>(n_rows) * d_ff, NAN);
    std::vector<float> out = residual;
    const GatedArgs gated{x.input(exact), {gate.weight, up.weight, {}}, {hidden.half(), hidden.floats.data()}};
    ASSERT_TRUE(static_cast<bool>(gated_gemm(Stream(), gated)));
    GemmArgs args{hidden.input(exact), 1, {{down.weight, nullptr, out.data(), width, true}}};
    ASSERT_TRUE(static_cast<bool>(gemm(Stream(), args)));
    expect_near(out, expected, exact, exact ? "exact" : "fast", kChain);
  }
}

struct MoeCase {
  int n_tokens, n_used, n_experts, width, d_ff;
  DType type;
  bool one_sided;  // all tokens to few experts
  int tile_rows;
};

void run_moe(const MoeCase& c) {
  const TestWeight gate(c.type, c.width, c.d_ff, c.n_experts, 1), up(c.type, c.width, c.d_ff, c.n_experts, 2),
      down(c.type, c.d_ff, c.width, c.n_experts, 3);
  Rows x(random_floats(static_cast<size_t>(c.n_tokens) * c.width, 3, 2.0f), c.n_tokens, c.width);
  std::mt19937 rng(5);
  const int n_pairs = c.n_tokens * c.n_used;
  std::vector<int32_t> ids;
  std::vector<float> weights = random_floats(n_pairs, 6);
  for (int t = 0; t < c.n_tokens; ++t) {
    std::vector<int32_t> order(c.one_sided ? c.n_used : c.n_experts);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    ids.insert(ids.end(), order.begin(), order.begin() + c.n_used);
  }
  const std::vector<float> shared = random_floats(static_cast<size_t>(c.n_tokens) * c.width, 7);
  const std::vector<float> shared_gate = random_floats(c.n_tokens, 8);
  const std::vector<float> residual = random_floats(static_cast<size_t>(c.n_tokens) * c.width, 9);
  std::vector<float> expected = residual;
  for (int t = 0; t < c.n_tokens; ++t) {
    for (int i = 0; i < c.width; ++i) expected[t * c.width + i] += shared_gate[t] * shared[t * c.width + i];
    for (int s = 0; s < c.n_used; ++s) {
      const int expert = ids[t * c.n_used + s];
      const std::vector<float> h = reference_hidden(gate.view, up.view, expert, x.floats.data() + t * c.width);
      std::vector<float> y(c.width);
      reference::matmul(down.view, static_cast<uint64_t>(expert), h.data(), 1, nullptr, y.data());
      for (int i = 0; i < c.width; ++i) expected[t * c.width + i] += weights[t * c.n_used + s] * y[i];
    }
  }

  const ExpertChoice choice{ids.data(), weights.data(), c.n_tokens, c.n_used, c.n_experts};
  std::vector<int32_t> pairs(n_pairs, -1);
  const int tile_rows = c.tile_rows;
  std::vector<ExpertTile> tiles(max_expert_tiles(c.n_tokens, c.n_used, c.n_experts, 64));
  int32_t n_tiles = -1;
  ExpertPlan plan{pairs.data(), tiles.data(), &n_tiles, tile_rows};
  ASSERT_TRUE(static_cast<bool>(plan_experts(Stream(), choice, plan)));
  ASSERT_LE(n_tiles, static_cast<int>(tiles.size()));
  int covered = 0;
  for (int i = 0; i < n_tiles; ++i) {
    ASSERT_EQ(tiles[i].first, covered);
    for (int r = 0; r < tiles[i].n_rows; ++r) ASSERT_EQ(ids[pairs[covered + r]], tiles[i].expert);
    ASSERT_LE(tiles[i].n_rows, tile_rows);
    covered += tiles[i].n_rows;
  }
  ASSERT_EQ(covered, n_pairs);
  std::vector<int32_t> sorted = pairs;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < n_pairs; ++i) ASSERT_EQ(sorted[i], i);

  for (const bool exact : {false, true}) {
    plan.tile_rows = exact ? 64 : tile_rows;
    ASSERT_TRUE(static_cast<bool>(plan_experts(Stream(), choice, plan)));
    Rows hidden(n_pairs, c.d_ff);
    hidden.floats.assign(static_cast<size_t>(n_pairs) * c.d_ff, NAN);
    std::vector<float> routed(static_cast<size_t>(n_pairs) * c.width, NAN), out = residual;
    const FfnWeights weights{gate.weight, up.weight, down.weight};
    ASSERT_TRUE(static_cast<bool>(
        expert_gated_gemm(Stream(), {x.input(exact), choice, plan, weights, {hidden.half(), hidden.floats.data()}})));
    ASSERT_TRUE(
        static_cast<bool>(expert_down_gemm(Stream(), {hidden.input(exact), choice, plan, weights, routed.data()})));
    ASSERT_TRUE(static_cast<bool>(
        combine_experts(Stream(), {routed.data(), choice, shared.data(), shared_gate.data(), out.data(), c.width})));
    expect_near(out, expected, exact, exact ? "exact" : "fast", kChain);
  }
}

// Tiles of 64 rows take weights straight into fragments, those of 128 through shared memory: the same bits.
TEST(Experts, WithoutGatesHaveTheSameBitsInSmallAndLargeTiles) {
  const int n_tokens = 90, n_used = 2, n_experts = 5;
  const int n_pairs = n_tokens * n_used;
  for (const int width : {96, 288}) {
    const int d_ff = 160;
    const TestWeight up(DType::Q4_0, width, d_ff, n_experts, 2), down(DType::Q4_0, d_ff, width, n_experts, 3);
    Rows x(random_floats(static_cast<size_t>(n_tokens) * width, 3, 2.0f), n_tokens, width);
    std::vector<int32_t> ids;  // expert 0 has more rows than a small tile, the others 3 to 45
    for (int t = 0; t < n_tokens; ++t) ids.insert(ids.end(), {t < 70 ? 0 : 3, t < 45 ? 1 : t < 87 ? 2 : 4});
    const ExpertChoice choice{ids.data(), nullptr, n_tokens, n_used, n_experts};
    const FfnWeights weights{{}, up.weight, down.weight, nullptr, nullptr, nullptr, op::Activation::relu2};
    std::vector<float> results[2];
    for (const int tile_rows : {64, 128}) {
      std::vector<int32_t> pairs(n_pairs);
      std::vector<ExpertTile> tiles(max_expert_tiles(n_tokens, n_used, n_experts, tile_rows));
      int32_t n_tiles = 0;
      const ExpertPlan plan{pairs.data(), tiles.data(), &n_tiles, tile_rows};
      ASSERT_TRUE(static_cast<bool>(plan_experts(Stream(), choice, plan)));
      Rows hidden(n_pairs, d_ff);
      std::vector<float>& out = results[tile_rows / 128];
      out.assign(static_cast<size_t>(n_pairs) * width, NAN);
      ASSERT_TRUE(static_cast<bool>(
          expert_gated_gemm(Stream(), {x.input(false), choice, plan, weights, {hidden.half(), nullptr}})));
      ASSERT_TRUE(
          static_cast<bool>(expert_down_gemm(Stream(), {hidden.input(false), choice, plan, weights, out.data()})));
    }
    EXPECT_EQ(results[0], results[1]) << width;
  }
}

TEST(Experts, ManyExpertsFewTokens) { run_moe({17, 4, 64, 96, 64, DType::Q8_0, false, 64}); }
TEST(Experts, FewExpertsManyTokens) { run_moe({150, 2, 3, 64, 96, DType::Q4_0, false, 128}); }
TEST(Experts, EmptyExperts) { run_moe({70, 2, 9, 64, 32, DType::IQ4_NL, true, 64}); }
TEST(Experts, CodeBookWeights) {
  for (const DType type : {DType::IQ3_S, kIq3Wide}) {
    simt::for_both_schedules([type] { run_moe({40, 3, 8, 256, 256, type, false, 64}); });
  }
}

TEST(Rows, EmbeddingOfEveryType) {
  for (const DType type : weight_types()) {
    const DTypeInfo& t = info(file_type(type));
    const int width = t.block_elems == 1 ? 33 : t.block_elems;
    const TestWeight table(type, width, 50);
    const std::vector<int32_t> tokens = {3, 49, 0, 3};
    std::vector<float> out(tokens.size() * width), expected(width);
    ASSERT_TRUE(static_cast<bool>(embed_rows(Stream(), {table.weight, tokens.data(), 4, out.data()})));
    std::vector<float> ahead(out.size());
    ASSERT_TRUE(static_cast<bool>(embed_rows(Stream(), {table.weight, tokens.data(), 4, ahead.data(), 1, true})));
    EXPECT_EQ(ahead, out) << type_name(type);
    for (size_t i = 0; i < tokens.size(); ++i) {
      dequantize_row(t.type, table.view.row(tokens[i]), expected.data(), width);
      for (int j = 0; j < width; ++j) {
        ASSERT_NEAR(out[i * width + j], expected[j], std::fabs(expected[j]) * 1e-6f)
            << type_name(type) << " " << i << " " << j;
      }
    }
  }
}

TEST(Rows, NormGatherGateAndHalves) {
  for (const int width : {1, 33, 96, 2048}) {
    const int n_rows = 5;
    const std::vector<float> x = random_floats(static_cast<size_t>(9) * width, 3, 30.0f);
    const std::vector<float> norm = random_floats(width, 4), gate_weight = random_floats(width, 5, 0.1f);
    const std::vector<int32_t> gather = {8, 0, 3, 3, 5};
    Rows rows(n_rows, width);
    rows.floats.resize(static_cast<size_t>(n_rows) * width);
    std::vector<float> gate(n_rows);
    const NormArgs args{
        x.data(),           width,      n_rows, gather.data(), norm.data(), 1e-6f, rows.floats.data(), rows.half(),
        gate_weight.data(), gate.data()};
    ASSERT_TRUE(static_cast<bool>(norm_rows(Stream(), args)));
    std::vector<float> expected(width);
    for (int r = 0; r < n_rows; ++r) {
      reference::rms_norm(x.data() + static_cast<size_t>(gather[r]) * width, norm.data(), 1e-6f, width,
                          expected.data());
      double dot = 0;
      float largest = 0;
      for (int i = 0; i < width; ++i) {
        dot += static_cast<double>(gate_weight[i]) * expected[i];
        largest = std::max(largest, std::fabs(expected[i]));
      }
      EXPECT_NEAR(gate[r], reference::sigmoid(dot), 1e-5);
      for (int i = 0; i < half_stride(width); ++i) {
        const size_t at = static_cast<size_t>(r) * half_stride(width) + i;
        const float value = f16_to_f32(rows.halves[at]) * rows.scales[r];
        if (i >= width) {
          ASSERT_EQ(value, 0.0f);
          continue;
        }
        ASSERT_NEAR(rows.floats[static_cast<size_t>(r) * width + i], expected[i], largest * 1e-6f);
        ASSERT_NEAR(value, expected[i], std::fabs(expected[i]) * 5e-4f + largest * 1e-6f);
      }
    }
  }
}

TEST(Rows, ResidualWithBias) {
  const int width = 300, n_rows = 3;
  const std::vector<float> x = random_floats(n_rows * width, 1), bias = random_floats(width, 2),
                           residual = random_floats(n_rows * width, 3);
  for (const bool with_bias : {false, true}) {
    std::vector<float> out = residual;
    ASSERT_TRUE(static_cast<bool>(
        add_rows(Stream(), {x.data(), with_bias ? bias.data() : nullptr, out.data(), width, n_rows})));
    for (int i = 0; i < n_rows * width; ++i) {
      ASSERT_FLOAT_EQ(out[i], residual[i] + (x[i] + (with_bias ? bias[i % width] : 0.0f)));
    }
  }
}

}  // namespace
}  // namespace chimere::cuda
