// Which kernel decode-class products take: pinned for the shapes of real models and for the edges between kernels.
#include "backend/cuda/kernels/dense/matvec_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace chimere::cuda {
namespace {

constexpr CardFacts kHopper{true, 227 << 10, 132};   // H100, H200
constexpr CardFacts kAmpere{false, 163 << 10, 108};  // A100
constexpr CardFacts kGaming{true, 99 << 10, 170};    // RTX 5090

using Outs = std::vector<std::pair<DType, int>>;  // formats and rows of the matrices

MatvecArgs product(int n_rows, int width, const Outs& outs) {
  static uint8_t records;
  MatvecArgs a;
  a.in.width = width;
  a.n_rows = n_rows;
  a.records = &records;
  for (const auto& [type, rows] : outs) {
    Weight& w = a.outs[a.n_outs++].weight;
    w.type = type;
    w.width = width;
    w.rows = rows;
    w.row_bytes = round_up_16(static_cast<uint32_t>(width) * (type == DType::F32 ? 4 : 2));
    with_format(type, [&](auto f) { w.row_bytes = decltype(f)::row_bytes(static_cast<uint32_t>(width / kGroup)); });
  }
  return a;
}

struct Case {
  const char* what;
  int n_rows, width;
  Outs outs;
  CardFacts card;
  MatvecKernel kernel;
  DType format;
  int pass_rows, blocks;
};

const Outs kGated = {{DType::Q5_K, 8192}, {DType::Q5_K, 4096}, {DType::Q8_0, 32}, {DType::Q8_0, 32}};
const Outs kAttention = {{DType::Q5_K, 8192}, {DType::Q5_K, 512}, {DType::Q5_K, 512}};
const Outs kOutput = {{DType::Q5_K, 2048}};
const Outs kHead = {{DType::Q6_K, 248320}};

const Case kCases[] = {
    // Qwen3.5-35B-A3B: projections of a delta rule, of attention, output projection, head.
    {"delta rule", 1, 2048, kGated, kHopper, MatvecKernel::staged, DType::Q5_K, 1, 132},
    {"delta rule, 2 rows", 2, 2048, kGated, kHopper, MatvecKernel::staged_two, DType::Q5_K, 1, 132},
    {"delta rule, 3 rows", 3, 2048, kGated, kHopper, MatvecKernel::staged_rows, DType::Q5_K, 8, 132},
    {"delta rule, 8 rows", 8, 2048, kGated, kHopper, MatvecKernel::staged_rows, DType::Q5_K, 8, 132},
    {"delta rule, 9 rows", 9, 2048, kGated, kHopper, MatvecKernel::tensor_rows, DType::Q5_K, 16, 132},
    {"delta rule, 32 streams", 32, 2048, kGated, kHopper, MatvecKernel::tensor_rows, DType::Q5_K, 32, 132},
    {"delta rule, 64 streams", 64, 2048, kGated, kHopper, MatvecKernel::tensor_rows, DType::Q5_K, 32, 132},
    {"attention", 1, 2048, kAttention, kHopper, MatvecKernel::staged, DType::Q5_K, 1, 132},
    {"attention, 4 rows", 4, 2048, kAttention, kHopper, MatvecKernel::staged_rows, DType::Q5_K, 8, 132},
    {"output projection", 1, 4096, kOutput, kHopper, MatvecKernel::staged, DType::Q5_K, 1, 132},
    {"output projection, 2 rows", 2, 4096, kOutput, kHopper, MatvecKernel::staged_two, DType::Q5_K, 1, 132},
    {"output projection, 8 rows", 8, 4096, kOutput, kHopper, MatvecKernel::staged_rows, DType::Q5_K, 8, 128},
    {"head", 1, 2048, kHead, kHopper, MatvecKernel::ring, DType::Q6_K, 1, 264},
    {"head, 2 rows", 2, 2048, kHead, kHopper, MatvecKernel::ring, DType::Q6_K, 1, 264},
    {"head, 8 rows", 8, 2048, kHead, kHopper, MatvecKernel::tensor_rows, DType::Q6_K, 8, 132},
    {"head, 32 streams", 32, 2048, kHead, kHopper, MatvecKernel::tensor_rows, DType::Q6_K, 32, 132},
    // The same on cards without bulk copies, and with less shared memory.
    {"delta rule", 1, 2048, kGated, kAmpere, MatvecKernel::registers, DType::Q5_K, 1, 324},
    {"delta rule, 4 rows", 4, 2048, kGated, kAmpere, MatvecKernel::registers, DType::Q5_K, 4, 216},
    {"delta rule, 32 streams", 32, 2048, kGated, kAmpere, MatvecKernel::registers, DType::Q5_K, 16, 108},
    {"head", 1, 2048, kHead, kAmpere, MatvecKernel::registers, DType::Q6_K, 1, 324},
    {"delta rule", 1, 2048, kGated, kGaming, MatvecKernel::ring, DType::Q5_K, 1, 170},
    {"delta rule, 4 rows", 4, 2048, kGated, kGaming, MatvecKernel::registers, DType::Q5_K, 4, 340},
    {"head", 1, 2048, kHead, kGaming, MatvecKernel::ring, DType::Q6_K, 1, 170},
    // Nemotron 3 Nano: width 2688.
    {"Mamba-2", 1, 2688, {{DType::Q4_0, 10304}}, kHopper, MatvecKernel::staged, DType::Q4_0, 1, 132},
    {"Mamba-2, 2 rows", 2, 2688, {{DType::Q4_0, 10304}}, kHopper, MatvecKernel::staged_two, DType::Q4_0, 1, 132},
    {"Mamba-2, 4 rows", 4, 2688, {{DType::Q4_0, 10304}}, kHopper, MatvecKernel::staged_rows, DType::Q4_0, 8, 132},
    {"Mamba-2, out, 4 rows", 4, 4096, {{DType::Q4_0, 2688}}, kHopper, MatvecKernel::staged_rows, DType::Q4_0, 8, 132},
    {"Mamba-2, 32 streams", 32, 2688, {{DType::Q4_0, 10304}}, kHopper, MatvecKernel::tensor_rows, DType::Q4_0, 32, 132},
    {"head of halves", 1, 2688, {{DType::F16, 131072}}, kHopper, MatvecKernel::float_rows, DType::F16, 1, 396},
    {"head of halves, 3 rows", 3, 2688, {{DType::F16, 131072}}, kHopper, MatvecKernel::float_rows, DType::F16, 4, 264},
    {"head of halves, 9 rows", 9, 2688, {{DType::F16, 131072}}, kHopper, MatvecKernel::float_rows, DType::F16, 8, 264},
    // Edges of widths.
    {"an odd number of groups", 1, 96, {{DType::Q8_0, 4096}}, kHopper, MatvecKernel::any_format, DType::F32, 1, 16},
    {"one lane a row", 1, 64, {{DType::Q8_0, 4096}}, kHopper, MatvecKernel::registers, DType::Q8_0, 1, 8},
    {"two lanes a row", 1, 128, {{DType::Q8_0, 4096}}, kHopper, MatvecKernel::staged, DType::Q8_0, 1, 132},
    {"four lanes a row, many rows",
     16,
     256,
     {{DType::Q8_0, 4096}},
     kHopper,
     MatvecKernel::registers,
     DType::Q8_0,
     16,
     16},
    {"eight lanes a row, many rows",
     16,
     512,
     {{DType::Q8_0, 4096}},
     kHopper,
     MatvecKernel::tensor_rows,
     DType::Q8_0,
     16,
     132},
    {"a tile a block", 32, 4096, {{DType::Q5_K, 2048}}, kHopper, MatvecKernel::tensor_rows, DType::Q5_K, 32, 128},
    {"too wide for a pass of 32",
     32,
     4096,
     {{DType::Q5_K, 4096}},
     kHopper,
     MatvecKernel::tensor_rows,
     DType::Q5_K,
     8,
     132},
    {"too wide for tensor cores",
     32,
     12288,
     {{DType::Q4_K, 4096}},
     kHopper,
     MatvecKernel::registers,
     DType::Q4_K,
     8,
     264},
    {"wider than floats go", 1, 24584, {{DType::F32, 256}}, kHopper, MatvecKernel::any_format, DType::F32, 1, 32},
    {"no eights of floats", 1, 100, {{DType::F32, 256}}, kHopper, MatvecKernel::any_format, DType::F32, 1, 32},
    // Formats.
    {"no kernels", 1, 2048, {{DType::IQ2_XXS, 4096}}, kHopper, MatvecKernel::any_format, DType::F32, 1, 396},
    {"codes and no tensor cores",
     32,
     2048,
     {{DType::IQ3_S, 4096}},
     kHopper,
     MatvecKernel::registers,
     DType::IQ3_S,
     16,
     132},
    {"codes and two rows", 2, 2048, {{DType::IQ3_S, 4096}}, kHopper, MatvecKernel::staged_two, DType::IQ3_S, 1, 132},
    {"codes and few rows", 4, 2048, {{DType::IQ3_S, 4096}}, kHopper, MatvecKernel::registers, DType::IQ3_S, 4, 256},
    {"beside another format",
     4,
     2048,
     {{DType::Q4_K, 4096}, {DType::Q6_K, 512}},
     kHopper,
     MatvecKernel::registers,
     DType::Q4_K,
     4,
     264},
    {"codes looked up at load", 32, 2048, {{kIq3Wide, 4096}}, kHopper, MatvecKernel::tensor_rows, kIq3Wide, 32, 132},
    {"most bytes decide",
     1,
     2048,
     {{DType::Q8_0, 64}, {DType::IQ2_XXS, 9000}, {DType::Q4_K, 4096}},
     kHopper,
     MatvecKernel::staged,
     DType::Q4_K,
     1,
     132},
    {"floats of two types",
     1,
     2048,
     {{DType::F16, 64}, {DType::F32, 64}},
     kHopper,
     MatvecKernel::any_format,
     DType::F32,
     1,
     16},
    {"floats beside bytes",
     1,
     2048,
     {{DType::F32, 64}, {DType::Q4_K, 4096}},
     kHopper,
     MatvecKernel::staged,
     DType::Q4_K,
     1,
     132},
};

TEST(MatvecChoice, IsPinned) {
  for (const Case& c : kCases) {
    const MatvecChoice choice = choose_matvec(product(c.n_rows, c.width, c.outs), c.card);
    const std::string which = std::string(c.what) + ", " + std::to_string(c.card.n_sms) + " SMs";
    EXPECT_EQ(choice.kernel, c.kernel) << which;
    EXPECT_EQ(choice.format, c.format) << which;
    EXPECT_EQ(choice.pass_rows, c.pass_rows) << which;
    EXPECT_EQ(choice.blocks, c.blocks) << which;
    EXPECT_LE(choice.shared_bytes, c.card.shared_limit) << which;
  }
}

TEST(MatvecChoice, ExactOrWithoutRecordsIsElsewhere) {
  MatvecArgs a = product(32, 2048, {{DType::Q8_0, 4096}});
  EXPECT_EQ(choose_matvec(a, kHopper).kernel, MatvecKernel::tensor_rows);
  a.records = nullptr;
  EXPECT_EQ(choose_matvec(a, kHopper).kernel, MatvecKernel::registers);
  a.exact = true;
  EXPECT_EQ(choose_matvec(a, kHopper).kernel, MatvecKernel::any_format);
}

// How a few rows share a block: one tile, or an odd number of them, in sixteen parts, two in eight each; short rows are
// quantised by every block, long or gated ones once.
TEST(MatvecChoice, PartsAndRecordsOfAFewRows) {
  const auto choose = [](int n_rows, int width, const Outs& outs) {
    return choose_matvec(product(n_rows, width, outs), kHopper);
  };
  EXPECT_EQ(choose(4, 2048, kGated).parts, 8);               // six tiles
  EXPECT_EQ(choose(4, 2048, kAttention).parts, 16);          // five
  EXPECT_EQ(choose(4, 4096, kOutput).parts, 16);             // one
  EXPECT_EQ(choose(4, 512, {{DType::Q8_0, 256}}).parts, 8);  // one, of eight lanes a row
  EXPECT_EQ(choose(4, 2048, kGated).side_slots, 1);
  EXPECT_TRUE(choose(4, 2048, kGated).makes_records);
  EXPECT_FALSE(choose(5, 2048, kGated).makes_records);
  EXPECT_TRUE(choose(2, 4096, kOutput).makes_records);
  EXPECT_FALSE(choose(3, 4096, kOutput).makes_records);
  MatvecArgs gated = product(2, 2048, {{DType::Q4_K, 1024}});
  static float gate;
  gated.in.gate = &gate;
  EXPECT_EQ(choose_matvec(gated, kHopper).kernel, MatvecKernel::staged_two);
  EXPECT_FALSE(choose_matvec(gated, kHopper).makes_records);
}

// The number of rows must not choose between orders of additions.
TEST(MatvecChoice, RowsDoNotChangeTheOrderOfAdditions) {
  const auto order = [](MatvecKernel k) {
    return k == MatvecKernel::float_rows ? 0 : k == MatvecKernel::any_format ? 1 : 2;
  };
  for (const CardFacts& card : {kHopper, kAmpere, kGaming}) {
    for (const Case& c : kCases) {
      const int alone = order(choose_matvec(product(1, c.width, c.outs), card).kernel);
      for (const int n_rows : {2, 5, 8, 17, 64}) {
        EXPECT_EQ(order(choose_matvec(product(n_rows, c.width, c.outs), card).kernel), alone) << c.what << n_rows;
      }
    }
  }
}

TEST(MatvecChoice, PlanHasTheKernelsFormatFirst) {
  const MatvecArgs a = product(1, 2048, {{DType::Q8_0, 20}, {DType::Q5_K, 300}, {DType::Q8_0, 5}, {DType::Q5_K, 33}});
  const MatvecChoice choice = choose_matvec(a, kHopper);
  const MatvecPlan plan = plan_matvec(a, choice);
  EXPECT_EQ(plan.n_own, 2);
  EXPECT_EQ(plan.args.outs[0].weight.rows, 300);
  EXPECT_EQ(plan.args.outs[1].weight.rows, 33);
  EXPECT_EQ(plan.args.outs[2].weight.rows, 20);
  EXPECT_EQ(plan.args.outs[3].weight.rows, 5);
  EXPECT_EQ(plan.own_tiles, 333);
  EXPECT_EQ(plan.all_tiles, 333 + 25);
}

}  // namespace
}  // namespace chimere::cuda
