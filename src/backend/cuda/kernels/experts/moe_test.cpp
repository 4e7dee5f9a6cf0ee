// Mixture of experts against the oracle, and a row's bits against those of the row alone.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/experts/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

#include "backend/cuda/kernels/common/test_weights.h"
#include "backend/cuda/kernels/experts/experts_choice.h"
#include "backend/reference/reference.h"

namespace chimere::cuda {
namespace {

constexpr float kEps = 1e-6f;
constexpr size_t kLargeShared = 227 << 10;  // as on a card of a data centre

struct Experts {
  int width, d_ff, n_experts, n_used;
  TestWeight router, gate, up, down;
  std::optional<TestWeight> shared_gate, shared_up, shared_down;
  std::vector<float> shared_router;
  std::vector<float> norm;
  bool exact = false;
  op::Activation activation = op::Activation::swiglu;
  RouterStyle style;
  float scale = 1;
  int n_sms = 12;  // for one row: so many that the weights of a block fit into its shared memory
  int n_sms_of_several = 2;
  std::vector<float> selection_bias, router_bias, gate_bias, up_bias, down_bias;

  Experts(DType type, DType down_type, DType shared, int width, int d_ff, int n_experts, int n_used, int d_shared,
          bool gated = true, DType router_type = DType::F32)
      : width(width),
        d_ff(d_ff),
        n_experts(n_experts),
        n_used(n_used),
        router(router_type, width, n_experts, 1, 11),
        gate(type, width, d_ff, n_experts, 12),
        up(type, width, d_ff, n_experts, 13),
        down(down_type, d_ff, width, n_experts, 14),
        norm(random_floats(width, 15)) {
    if (d_shared == 0) return;
    shared_gate.emplace(shared, width, d_shared, 1, 16);
    shared_up.emplace(shared, width, d_shared, 1, 17);
    shared_down.emplace(shared, d_shared, width, 1, 18);
    if (gated) shared_router = random_floats(width, 19, 0.1f);
  }

  // No gates, a sigmoid router, experts chosen with a bias.
  void be_nemotron() {
    activation = op::Activation::relu2;
    selection_bias = random_floats(n_experts, 21, 0.3f);
    style = {op::Gating::sigmoid, true, 2.5f, selection_bias.data()};
    scale = 0.5f;
  }
  // Biases everywhere.
  void be_gpt_oss() {
    activation = op::Activation::clamped_swiglu;
    style.renormalise = false;
    router_bias = random_floats(n_experts, 22, 0.5f);
    gate_bias = random_floats(static_cast<size_t>(n_experts) * d_ff, 23, 0.5f);
    up_bias = random_floats(static_cast<size_t>(n_experts) * d_ff, 24, 0.5f);
    down_bias = random_floats(static_cast<size_t>(n_experts) * width, 25, 0.5f);
  }
  bool has_gates() const { return activation != op::Activation::relu2; }

  MoeArgs args(std::vector<float>& x) const {
    MoeArgs a;
    a.in = {x.data(), norm.data(), kEps, width};
    a.residual = x.data();
    a.n_rows = static_cast<int>(x.size()) / width;
    a.n_used = n_used;
    a.router = router.weight;
    a.router_bias = router_bias.empty() ? nullptr : router_bias.data();
    a.style = style;
    a.activation = activation;
    a.scale = scale;
    if (!gate_bias.empty()) a.gate_bias = gate_bias.data(), a.up_bias = up_bias.data(), a.down_bias = down_bias.data();
    if (has_gates()) a.gate = gate.weight;
    a.up = up.weight;
    a.down = down.weight;
    if (shared_gate) {
      if (has_gates()) a.shared_gate = shared_gate->weight;
      a.shared_up = shared_up->weight;
      a.shared_down = shared_down->weight;
      if (!shared_router.empty()) a.shared_router = shared_router.data();
    }
    a.exact = exact;
    a.n_sms = a.n_rows == 1 ? n_sms : n_sms_of_several;
    return a;
  }

  std::vector<float> run(std::vector<float> x) const {
    MoeArgs a = args(x);
    std::vector<uint4> scratch(moe_scratch_bytes(a, a.n_rows) / 16);
    a.scratch = reinterpret_cast<uint8_t*>(scratch.data());
    const Stream stream;
    EXPECT_TRUE(moe(stream, a));
    return x;
  }

  // The experts of each row, and their weights.
  std::pair<std::vector<int32_t>, std::vector<float>> route(std::vector<float> x) const {
    MoeArgs a = args(x);
    a.choose_only = true;
    std::vector<uint4> scratch(moe_scratch_bytes(a, a.n_rows) / 16);
    a.scratch = reinterpret_cast<uint8_t*>(scratch.data());
    const Stream stream;
    EXPECT_TRUE(moe_route(stream, a));
    const MoeScratch chosen = moe_scratch(a, a.n_rows, a.scratch);
    return {{chosen.ids, chosen.ids + a.n_rows * n_used}, {chosen.weights, chosen.weights + a.n_rows * (n_used + 1)}};
  }

  // One expert as the oracle has it, with activations rounded to bytes where the kernels do so.
  std::vector<double> ffn(const TestWeight& g, const TestWeight& u, const TestWeight& d, int expert,
                          const std::vector<float>& n, bool is_routed) const {
    const auto rounded = [&](std::vector<float> v, const TestWeight& w) {
      if (!exact && !w.weight.is_float()) round_to_bytes(v.data(), v.size());
      return v;
    };
    const auto ff = static_cast<size_t>(g.view.ne[1]);
    std::vector<float> a(ff), b(ff), y(width);
    const auto bias = [&](const std::vector<float>& of, size_t rows) {
      return is_routed && !of.empty() ? of.data() + expert * rows : nullptr;
    };
    reference::matmul(g.view, expert, rounded(n, g).data(), 1, bias(gate_bias, ff), a.data());
    reference::matmul(u.view, expert, rounded(n, u).data(), 1, bias(up_bias, ff), b.data());
    for (size_t i = 0; i < ff; ++i) {
      if (activation == op::Activation::swiglu) {
        a[i] = static_cast<float>(reference::silu(a[i]) * b[i]);
      } else if (activation == op::Activation::relu2) {
        a[i] = b[i] > 0 ? b[i] * b[i] : 0;
      } else {
        const double gated = std::min(a[i], 7.0f), up = std::clamp(b[i], -7.0f, 7.0f);
        a[i] = static_cast<float>(gated * reference::sigmoid(1.702 * gated) * (up + 1));
      }
    }
    reference::matmul(d.view, expert, rounded(a, d).data(), 1, bias(down_bias, width), y.data());
    return {y.begin(), y.end()};
  }

  std::vector<float> oracle(const std::vector<float>& x) const {
    std::vector<float> out = x;
    for (size_t t = 0; t < x.size() / width; ++t) {
      std::vector<float> n(width), logits(n_experts);
      reference::rms_norm(x.data() + t * width, norm.data(), kEps, width, n.data());
      reference::matmul(router.view, 0, n.data(), 1, router_bias.empty() ? nullptr : router_bias.data(), logits.data());
      std::vector<double> score(n_experts), key(logits.begin(), logits.end());
      double all = 0, sum = 0;
      for (int e = 0; e < n_experts; ++e) {
        score[e] = style.gating == op::Gating::sigmoid ? reference::sigmoid(logits[e]) : std::exp(double{logits[e]});
        all += score[e];
        if (!selection_bias.empty()) key[e] = score[e] + selection_bias[e];
      }
      std::vector<int> order(n_experts);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key[a] > key[b]; });
      for (int k = 0; k < n_used; ++k) sum += score[order[k]];
      for (int k = 0; k < n_used; ++k) {
        const double weight = scale * style.weight_scale * score[order[k]] / (style.renormalise ? sum : all);
        const auto y = ffn(gate, up, down, order[k], n, true);
        for (int i = 0; i < width; ++i) out[t * width + i] += static_cast<float>(weight * y[i]);
      }
      if (!shared_gate) continue;
      double weight = 1;
      if (!shared_router.empty()) {
        double logit = 0;
        for (int i = 0; i < width; ++i) logit += double{shared_router[i]} * n[i];
        weight = reference::sigmoid(logit);
      }
      const auto y = ffn(*shared_gate, *shared_up, *shared_down, 0, n, false);
      weight *= scale;
      for (int i = 0; i < width; ++i) out[t * width + i] += static_cast<float>(weight * y[i]);
    }
    return out;
  }

  void expect_agreement(int n_rows, float slack) const {
    const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * width, 5);
    const std::vector<float> got = run(x), expected = oracle(x);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], slack) << "row " << i / width << " element " << i % width;
    }
  }
};

class Moe : public testing::TestWithParam<DType> {};

TEST_P(Moe, EveryTypeAgreesWithTheOracle) {
  const DType type = GetParam();
  const Experts experts(type, type, DType::Q5_K, 256, 256, 8, 3, 256);
  for (const int n_rows : {1, 9}) experts.expect_agreement(n_rows, 6e-3f);
}

std::vector<DType> weight_types() {
  std::vector<DType> all;
  for (const DTypeInfo& t : all_dtypes()) {
    if (t.type < DType::I8 || t.type > DType::F64) all.push_back(t.type);
  }
  all.push_back(kIq3Wide);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Moe, testing::ValuesIn(weight_types()), [](const auto& i) { return type_name(i.param); });

TEST(Moe, ARowsBitsAreItsOwn) {
  for (const auto [type, down, shared] :
       {std::array{DType::IQ3_S, DType::IQ3_S, DType::Q5_K}, std::array{kIq3Wide, kIq3Wide, DType::Q5_K},
        std::array{kIq3Wide, kIq3Wide, DType::F16}, std::array{DType::Q4_K, DType::Q6_K, DType::Q4_K},
        std::array{DType::IQ2_XXS, DType::Q3_K, DType::F16}}) {
    const Experts experts(type, down, shared, 512, 256, 12, 4, 256);
    const std::vector<float> x = random_floats(512 * 21, 5);
    const std::vector<float> all = experts.run(x);
    for (const int n_rows : {1, 2, 6}) {
      const std::vector<float> some = experts.run({x.begin() + 3 * 512, x.begin() + (3 + n_rows) * 512});
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 3 * 512)) << n_rows << type_name(type);
    }
  }
}

// Two to seven rows through slots: all of the formats' combinations that have kernels for a shared expert, elements with
// and without gates, biases, and widths of one lane set a row or several side by side.
TEST(Moe, AFewRowsHaveTheBitsOfEachAlone) {
  std::deque<Experts> all;
  for (const auto& [routed, shared] :
       {std::pair{kIq3Wide, DType::Q5_K}, std::pair{DType::IQ3_S, DType::Q5_K}, std::pair{DType::Q8_0, DType::Q8_0},
        std::pair{DType::Q4_0, DType::Q4_0}, std::pair{DType::Q4_K, DType::Q4_K}, std::pair{DType::Q6_K, DType::Q6_K},
        std::pair{DType::MXFP4, DType::Q8_0}}) {
    all.emplace_back(routed, routed, shared, 512, 256, 12, 4, 256);
  }
  all.emplace_back(DType::Q4_0, DType::Q4_0, DType::Q4_0, 2048, 64, 20, 3, 64);
  all.emplace_back(DType::Q4_0, DType::Q4_0, DType::Q4_0, 448, 256, 9, 3, 320, false).be_nemotron();
  all.emplace_back(DType::MXFP4, DType::MXFP4, DType::F32, 128, 128, 8, 3, 0).be_gpt_oss();
  all.emplace_back(DType::Q8_0, DType::Q8_0, DType::Q8_0, 128, 64, 300, 4, 64);  // the router chooses
  simt::set_shared_limit(kLargeShared);
  for (Experts& experts : all) {
    experts.n_sms_of_several = 5;
    const auto width = static_cast<size_t>(experts.width);
    const std::vector<float> x = random_floats(width * kFewDecodeRows, 5);
    std::vector<float> alone;
    for (size_t t = 0; t < kFewDecodeRows; ++t) {
      const std::vector<float> one = experts.run({x.begin() + t * width, x.begin() + (t + 1) * width});
      alone.insert(alone.end(), one.begin(), one.end());
    }
    for (const size_t n_rows : {2, 3, 5, 7}) {
      std::vector<float> some(x.begin(), x.begin() + n_rows * width);
      EXPECT_TRUE(plan_moe(experts.args(some), {true, kLargeShared, experts.n_sms_of_several}).few_rows) << width;
      simt::for_both_schedules([&] {
        const std::vector<float> got = experts.run(some);
        EXPECT_TRUE(std::equal(got.begin(), got.end(), alone.begin()))
            << n_rows << " rows of " << width << ", " << type_name(experts.up.weight.type);
      });
    }
  }
  simt::set_shared_limit(99 << 10);
}

// Rings whose up-projection has the records of all rows in shared memory: rows for which every block chooses, and more,
// for which the router does; runs of tiles that end within a chunk.
TEST(Moe, RowsThatLieNearHaveTheBitsOfEachAlone) {
  std::deque<Experts> all;
  all.emplace_back(kIq3Wide, kIq3Wide, DType::Q5_K, 512, 256, 12, 4, 256);
  all.emplace_back(DType::IQ3_S, DType::Q4_K, DType::F16, 512, 256, 12, 4, 256);
  all.emplace_back(DType::Q4_0, DType::Q4_0, DType::Q4_0, 448, 256, 9, 3, 320, false).be_nemotron();
  all.emplace_back(DType::MXFP4, DType::MXFP4, DType::F32, 128, 128, 8, 3, 0).be_gpt_oss();
  all.emplace_back(DType::Q8_0, DType::Q8_0, DType::Q8_0, 128, 64, 300, 4, 64);  // too many for blocks to choose among
  simt::set_shared_limit(kLargeShared);
  for (Experts& experts : all) {
    experts.n_sms_of_several = 5;
    const auto width = static_cast<size_t>(experts.width);
    constexpr size_t kMost = 43;
    const std::vector<float> x = random_floats(width * kMost, 5);
    std::vector<float> alone;
    for (size_t t = 0; t < kMost; ++t) {
      const std::vector<float> one = experts.run({x.begin() + t * width, x.begin() + (t + 1) * width});
      alone.insert(alone.end(), one.begin(), one.end());
    }
    for (const size_t n_rows : {size_t{8}, size_t{16}, size_t{17}, kMost}) {
      std::vector<float> some(x.begin(), x.begin() + n_rows * width);
      const CardFacts card{true, kLargeShared, experts.n_sms_of_several};
      const MoePlan plan = plan_moe(experts.args(some), card);
      // Not of the most rows where slots are large.
      EXPECT_TRUE(choose_experts(plan, card).near_records || n_rows == kMost) << width;
      EXPECT_EQ(plan.choice_by_block, n_rows <= 16 && experts.n_experts <= 256) << n_rows;
      simt::for_both_schedules([&] {
        const std::vector<float> got = experts.run(some);
        EXPECT_TRUE(std::equal(got.begin(), got.end(), alone.begin()))
            << n_rows << " rows of " << width << ", " << type_name(experts.up.weight.type);
      });
    }
  }
  simt::set_shared_limit(99 << 10);
}

// Blocks that choose leave what the router would have left, and count the experts once.
TEST(Moe, ChoicesOfBlocksAreTheRouters) {
  Experts experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 256, 64, 40, 4, 64);
  const std::vector<float> x = random_floats(256 * 16, 5);
  const auto [ids, weights] = experts.route(x);
  for (const size_t n_rows : {6, 16}) {
    std::vector<float> some(x.begin(), x.begin() + n_rows * 256);
    std::vector<uint32_t> uses(40), expected(40);
    MoeArgs a = experts.args(some);
    a.uses = uses.data();
    std::vector<uint4> scratch(moe_scratch_bytes(a, a.n_rows) / 16);
    a.scratch = reinterpret_cast<uint8_t*>(scratch.data());
    ASSERT_TRUE(moe(Stream(), a));
    const MoeScratch left = moe_scratch(a, a.n_rows, a.scratch);
    EXPECT_TRUE(std::equal(left.ids, left.ids + n_rows * 4, ids.begin()));
    EXPECT_TRUE(std::equal(left.weights, left.weights + n_rows * 5, weights.begin()));
    for (size_t i = 0; i < n_rows * 4; ++i) ++expected[ids[i]];
    EXPECT_EQ(uses, expected);
  }
}

// With a shared expert that has a kernel and with one that has none.
TEST(Moe, BothFormsOfCodeBookWeightsAgree) {
  for (const DType shared : {DType::Q5_K, DType::Q8_0}) {
    const Experts compact(DType::IQ3_S, DType::IQ3_S, shared, 512, 256, 12, 4, 256);
    const Experts wide(kIq3Wide, kIq3Wide, shared, 512, 256, 12, 4, 256);
    for (const int n_rows : {1, 2, 21}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * 512, 5);
      EXPECT_EQ(compact.run(x), wide.run(x)) << n_rows << " rows, shared " << name(shared);
    }
  }
}

TEST(Moe, WideShapes) {
  for (const int d_ff : {1280, 2048}) {
    const Experts experts(DType::IQ3_S, DType::IQ3_S, DType::Q5_K, 1024, d_ff, 3, 2, 256);
    for (const int n_rows : {1, 2}) experts.expect_agreement(n_rows, 6e-3f);
    const std::vector<float> x = random_floats(1024 * 5, 5);
    const std::vector<float> all = experts.run(x), one = experts.run({x.begin() + 1024, x.begin() + 2048});
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 1024));
  }
}

TEST(Moe, SchedulesAgree) {
  const Experts experts(DType::IQ3_S, DType::Q4_K, DType::Q5_K, 512, 256, 40, 8, 512);
  const std::vector<float> x = random_floats(512 * 7, 5);
  std::vector<std::vector<float>> results;
  simt::for_both_schedules([&] { results.push_back(experts.run(x)); });
  EXPECT_EQ(results[0], results[1]);
}

// One row, and numbers that have blocks of two, four and eight experts; rows of two and of four passes; a router that
// is not of floats.
TEST(Moe, ARowsChoiceIsItsOwn) {
  for (Experts experts : {Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 2176, 32, 40, 6, 32),
                          Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 8192, 32, 9, 6, 32),
                          Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 32, 290, 6, 32),
                          Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 32, 21, 6, 32, true, DType::Q8_0)}) {
    const int width = experts.width;
    const std::vector<float> x = random_floats(static_cast<size_t>(width) * 17, 5);
    for (const bool biased : {false, true}) {
      if (biased) experts.be_nemotron();
      const auto all = experts.route(x);
      // The only row also with a multiprocessor for every expert.
      for (const auto& [n_rows, n_sms] : {std::pair{1, 12}, std::pair{1, 300}, std::pair{3, 12}, std::pair{12, 12}}) {
        const int first = 4;
        experts.n_sms = n_sms;
        const auto some = experts.route({x.begin() + first * width, x.begin() + (first + n_rows) * width});
        EXPECT_TRUE(std::equal(some.first.begin(), some.first.end(), all.first.begin() + first * 6)) << n_rows;
        EXPECT_TRUE(std::equal(some.second.begin(), some.second.end(), all.second.begin() + first * 7)) << n_rows;
      }
    }
  }
}

// The bits of rows that the router quantises for the experts.
TEST(Moe, AWideRowsBitsAreItsOwn) {
  for (Experts experts : {Experts(DType::Q4_0, DType::Q4_0, DType::Q4_0, 2176, 64, 11, 3, 64, false),
                          Experts(DType::Q4_0, DType::Q4_0, DType::Q4_0, 8192, 64, 11, 3, 64)}) {
    if (experts.shared_router.empty()) experts.be_nemotron();
    const std::vector<float> x = random_floats(experts.width * 6, 5);
    const std::vector<float> all = experts.run(x);
    for (const int n_sms : {5, 13}) {  // two experts a block, and one
      experts.n_sms = n_sms;
      const std::vector<float> one = experts.run({x.begin() + experts.width, x.begin() + 2 * experts.width});
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + experts.width)) << experts.width << ", " << n_sms;
    }
  }
}

// Few experts with many rows each: chunks of all sizes.
TEST(Moe, ManyRowsOfAnExpert) {
  for (const bool exact : {false, true}) {
    Experts experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 64, 7, 3, 64);
    experts.exact = exact;
    simt::for_both_schedules([&] { experts.expect_agreement(61, exact ? 2e-5f : 3e-3f); });
  }
}

TEST(Moe, MoreExpertsThanLanesAreUsed) {
  Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 64, 70, 40, 0).expect_agreement(3, 6e-3f);
}

// As many experts as Qwen3-Next has: more than a block chooses among, so that the router chooses for a single row too.
// With kernels of the format, with those of any, and in exact mode.
TEST(Moe, FiveHundredAndTwelveExperts) {
  for (Experts experts : {Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 64, 512, 10, 64),
                          Experts(DType::F16, DType::F16, DType::F16, 64, 32, 512, 10, 32)}) {
    for (const int n_rows : {1, 2, 5, 33}) experts.expect_agreement(n_rows, 6e-3f);
    const std::vector<float> x = random_floats(static_cast<size_t>(experts.width) * 5, 5);
    const std::vector<float> all = experts.run(x);
    for (const int n_rows : {1, 2}) {
      const std::vector<float> some = experts.run({x.begin(), x.begin() + n_rows * experts.width});
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << n_rows << type_name(experts.up.weight.type);
    }
    experts.exact = true;
    for (const int n_rows : {1, 2}) experts.expect_agreement(n_rows, 2e-5f);
  }
}

TEST(Moe, OddShapes) {
  Experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 96, 32, 5, 3, 64).expect_agreement(3, 3e-3f);
  Experts(DType::F32, DType::F32, DType::F32, 97, 33, 5, 2, 17).expect_agreement(6, 1e-5f);
  Experts(DType::Q8_0, DType::F16, DType::F32, 96, 48, 5, 2, 17, false).expect_agreement(2, 3e-3f);
  Experts(DType::Q4_0, DType::Q4_0, DType::F32, 96, 96, 300, 6, 0).expect_agreement(2, 3e-3f);
  Experts(DType::Q4_0, DType::Q4_0, DType::Q4_0, 96, 96, 7, 7, 32, true, DType::Q8_0).expect_agreement(2, 3e-3f);
}

TEST(Moe, ExactModeKeepsFloatActivations) {
  Experts experts(DType::IQ3_S, DType::Q4_K, DType::Q5_K, 256, 256, 8, 3, 256);
  experts.exact = true;
  for (const int n_rows : {1, 6}) experts.expect_agreement(n_rows, 2e-5f);
}

TEST(Moe, ExpertsWithoutGates) {
  // The second has rows that no kernel of a format takes, the third an odd number of them.
  for (Experts experts : {Experts(DType::Q4_0, DType::Q4_0, DType::Q4_0, 448, 192, 9, 3, 320, false),
                          Experts(DType::Q5_0, DType::Q5_0, DType::Q8_0, 96, 96, 9, 3, 64, false),
                          Experts(DType::F32, DType::F32, DType::F32, 64, 33, 5, 2, 17, false)}) {
    experts.be_nemotron();
    for (const int n_rows : {1, 3, 7}) experts.expect_agreement(n_rows, 6e-3f);
    const std::vector<float> x = random_floats(experts.width * 7, 5);
    const std::vector<float> all = experts.run(x), one = experts.run({x.begin(), x.begin() + experts.width});
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin())) << type_name(experts.up.weight.type);
    experts.exact = true;
    experts.expect_agreement(2, 2e-5f);
  }
}

TEST(Moe, ExpertsWithBiases) {
  for (Experts experts : {Experts(DType::MXFP4, DType::MXFP4, DType::F32, 128, 128, 8, 3, 0),
                          Experts(DType::Q4_0, DType::Q4_0, DType::Q4_0, 128, 128, 8, 3, 0)}) {
    experts.be_gpt_oss();
    for (const int n_rows : {1, 7}) experts.expect_agreement(n_rows, 6e-3f);
    const std::vector<float> x = random_floats(128 * 7, 5);
    const std::vector<float> all = experts.run(x), one = experts.run({x.begin(), x.begin() + 128});
    EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin()));
  }
}

TEST(Moe, LimitsAreTold) {
  const Experts experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 32, 9, 4, 0);
  MoeArgs a;
  a.router = experts.router.weight;
  a.n_used = 4;
  EXPECT_TRUE(moe_supported(a, kMoeRows));
  EXPECT_FALSE(moe_supported(a, kMoeRows + 1));
  a.n_used = kMoePairs / kMoeRows + 1;
  EXPECT_FALSE(moe_supported(a, kMoeRows));
}

TEST(Moe, TiesGoToTheLowerIndex) {
  Experts experts(DType::Q8_0, DType::Q8_0, DType::Q8_0, 64, 32, 9, 4, 0);
  // All rows of the router alike: the first four experts.
  const size_t row = experts.router.weight.row_bytes;
  for (size_t e = 1; e < 9; ++e) {
    std::copy_n(experts.router.file.begin(), row, experts.router.file.begin() + static_cast<std::ptrdiff_t>(e * row));
  }
  pack_rows(experts.router.view, 0, 9, reinterpret_cast<std::byte*>(experts.router.packed.data()));
  experts.expect_agreement(2, 3e-3f);
}

}  // namespace
}  // namespace chimere::cuda
