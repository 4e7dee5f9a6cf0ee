// Decode-class products against the oracle, and a row's bits against those of the row alone.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/kernels/dense/matvec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>

#include "backend/cuda/kernels/common/kernel_test.h"
#include "backend/cuda/kernels/common/test_weights.h"
#include "backend/cuda/kernels/dense/matvec_choice.h"
#include "backend/reference/reference.h"

namespace chimere::cuda {
namespace {

constexpr float kEps = 1e-6f;
constexpr int kSms = 2;
// As on a card with room for the activations of 32 rows and a ring of weights.
constexpr size_t kLargeShared = 227 << 10;

// The rows that products see: normalised like the oracle, rounded to bytes like the kernels.
std::vector<float> seen_rows(const std::vector<float>& x, const std::vector<float>& norm, int width, bool bytes) {
  std::vector<float> seen = x;
  for (size_t at = 0; at < x.size(); at += width) {
    if (!norm.empty()) reference::rms_norm(x.data() + at, norm.data(), kEps, width, seen.data() + at);
    if (bytes) round_to_bytes(seen.data() + at, width);
  }
  return seen;
}

// A code of an activation on the edge between two bytes may fall either way: half a step of one of `width` elements
// times a weight. Everything else is float rounding.
void expect_near_oracle(const TestWeight& w, const std::vector<float>& seen, int n_rows, const float* bias,
                        const float* base, const std::vector<float>& got, float slack) {
  const auto rows = static_cast<int>(w.view.ne[1]);
  std::vector<float> expected(static_cast<size_t>(n_rows) * rows);
  reference::matmul(w.view, 0, seen.data(), n_rows, bias, expected.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i] + (base ? base[i] : 0.0f), slack) << "row " << i / rows << " output " << i % rows;
  }
}

struct Product {
  std::vector<const TestWeight*> weights = {};
  std::vector<float> norm = {};
  bool exact = false;
  bool add = false;
  std::vector<float> bias = {};
  std::vector<int32_t> gather = {};
  std::vector<float> gate = {};
  float scale = 1;
  std::vector<float> head_squares = {};
  int head_width = 0;

  std::vector<std::vector<float>> run(const std::vector<float>& x, int n_rows) const {
    const auto width = static_cast<int>(weights[0]->view.ne[0]);
    MatvecArgs a;
    a.in = {x.data(), norm.empty() ? nullptr : norm.data(),     kEps,
            width,    gather.empty() ? nullptr : gather.data(), gate.empty() ? nullptr : gate.data()};
    if (!head_squares.empty()) a.in.head_squares = head_squares.data();
    a.in.head_width = head_width;
    a.n_rows = n_rows;
    a.n_outs = static_cast<int>(weights.size());
    a.exact = exact;
    a.n_sms = kSms;
    std::vector<uint4> records(matvec_records_bytes(width, n_rows) / 16);
    a.records = reinterpret_cast<uint8_t*>(records.data());
    std::vector<std::vector<float>> outs;
    for (int i = 0; i < a.n_outs; ++i) {
      const Weight& w = weights[i]->weight;
      outs.emplace_back(static_cast<size_t>(n_rows) * w.rows, add ? 0.5f : NAN);
      a.outs[i] = {w, bias.empty() ? nullptr : bias.data(), outs[i].data(), w.rows, add, scale};
    }
    const Stream stream;
    EXPECT_TRUE(matvec(stream, a));
    return outs;
  }
};

class Matvec : public testing::TestWithParam<DType> {};

TEST_P(Matvec, EveryTypeAgreesWithTheOracle) {
  const DType type = GetParam();
  const bool bytes = info(file_type(type)).block_elems > 1;
  for (const int width : {256, 1024, 1536}) {
    const TestWeight w(type, width, 37);
    Product p{.weights = {&w}, .norm = random_floats(width, 3, 0.5f)};
    for (const int n_rows : {1, 3, 6, 11}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * width, 5);
      const auto got = p.run(x, n_rows);
      expect_near_oracle(w, seen_rows(x, p.norm, width, bytes), n_rows, nullptr, nullptr, got[0], 2e-3f);
    }
  }
}

TEST_P(Matvec, ARowsBitsAreItsOwn) {
  const DType type = GetParam();
  for (const int width : {512, 1280, 2048}) {
    const TestWeight w(type, width, 21);
    const Product p{.weights = {&w}, .norm = random_floats(width, 3)};
    const std::vector<float> x = random_floats(static_cast<size_t>(width) * 19, 5);
    const auto all = p.run(x, 19)[0];
    for (const int n_rows : {1, 2, 5, 9}) {
      const auto some = p.run({x.begin() + 2 * width, x.begin() + (2 + n_rows) * width}, n_rows)[0];
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 2 * 21)) << width << " " << n_rows;
    }
  }
}

TEST_P(Matvec, ExactModeKeepsFloatActivations) {
  const DType type = GetParam();
  constexpr int kWidth = 512;
  const TestWeight w(type, kWidth, 9);
  const Product p{.weights = {&w}, .norm = random_floats(kWidth, 3), .exact = true};
  const std::vector<float> x = random_floats(kWidth * 6, 5);
  expect_near_oracle(w, seen_rows(x, p.norm, kWidth, false), 6, nullptr, nullptr, p.run(x, 6)[0], 1e-5f);
}

// The kernel that a product of these rows takes on a card of so much shared memory.
MatvecKernel kernel_of(const Product& p, int n_rows, size_t shared_limit) {
  static uint8_t records;
  MatvecArgs a;
  a.in.width = static_cast<int>(p.weights[0]->view.ne[0]);
  a.n_rows = n_rows;
  a.n_outs = static_cast<int>(p.weights.size());
  for (int i = 0; i < a.n_outs; ++i) a.outs[i].weight = p.weights[i]->weight;
  a.records = &records;
  return choose_matvec(a, {true, shared_limit, kSms}).kernel;
}

// Rows [0, n_rows) of several launches, bit for bit. x has the most rows.
void expect_rows_of_their_own(const Product& p, const std::vector<float>& x, std::initializer_list<int> counts) {
  const auto width = static_cast<size_t>(p.weights[0]->view.ne[0]);
  const auto n_all = static_cast<int>(x.size() / width);
  std::vector<std::vector<float>> alone(p.weights.size());
  for (int t = 0; t < n_all; ++t) {
    const auto one = p.run({x.begin() + t * width, x.begin() + (t + 1) * width}, 1);
    for (size_t i = 0; i < one.size(); ++i) alone[i].insert(alone[i].end(), one[i].begin(), one[i].end());
  }
  for (const int n_rows : counts) {
    const auto got = p.run({x.begin(), x.begin() + n_rows * width}, n_rows);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(std::memcmp(got[i].data(), alone[i].data(), got[i].size() * sizeof(float)), 0)
          << type_name(p.weights[i]->weight.type) << " width " << width << " rows " << n_rows;
    }
  }
}

// Wider than what a thread asks for at once, heads that end within a warp's columns and such that several warps have.
TEST(Matvec, HeadsAreDividedByTheReader) {
  struct Heads {
    int n, width;
  };
  // A quarter of the sums of a wide head is added up at a time.
  const auto sum_of = [](const float* of, int n) {
    const auto quarter = [&](int first) {
      float sums[8] = {};
      std::copy_n(of + first * n / 4, n / 4, sums);
      return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    };
    return n == 2 ? of[0] + of[1] : (quarter(0) + quarter(1)) + (quarter(2) + quarter(3));
  };
  for (const Heads heads :
       {Heads{5, 64}, Heads{20, 128}, Heads{34, 128}, Heads{5, 256}, Heads{9, 512}, Heads{8, 512}, Heads{5, 1024}}) {
    const int width = heads.n * heads.width, of_head = heads.width / 32;
    const TestWeight q8(DType::Q8_0, width, 40), q5(DType::Q5_1, width, 4);
    for (const int n_rows : {1, 3, 6, 9}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * width, 5);
      std::vector<float> squares = random_floats(x.size() / 32, 7);
      for (float& v : squares) v *= v;
      std::vector<float> divided = x;
      for (size_t i = 0; i < x.size(); ++i) {
        const float* of = squares.data() + i / heads.width * of_head;
        divided[i] *= 1.0f / std::sqrt(sum_of(of, of_head) / static_cast<float>(heads.width) + kEps);
      }
      const Product whole{.weights = {&q8, &q5}};
      const Product parts{.weights = {&q8, &q5}, .head_squares = squares, .head_width = heads.width};
      EXPECT_EQ(parts.run(x, n_rows), whole.run(divided, n_rows)) << width << " " << n_rows;
    }
  }
}

std::vector<DType> weight_types() {
  std::vector<DType> all;
  for (const DTypeInfo& t : all_dtypes()) {
    if (t.type < DType::I8 || t.type > DType::F64) all.push_back(t.type);
  }
  all.push_back(kIq3Wide);
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Matvec, testing::ValuesIn(weight_types()),
                         [](const auto& i) { return type_name(i.param); });

TEST(Matvec, ProjectionsOfSeveralTypesShareALaunch) {
  constexpr int kWidth = 768;
  const TestWeight q5(DType::Q5_K, kWidth, 50), q8(DType::Q8_0, kWidth, 6), f32(DType::F32, kWidth, 5),
      iq(DType::IQ2_XS, kWidth, 4), more(DType::Q5_K, kWidth, 3);
  const Product p{.weights = {&q8, &q5, &f32, &more, &iq}, .norm = random_floats(kWidth, 3)};
  simt::for_both_schedules([&] {
    for (const int n_rows : {1, 7}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * kWidth, 5);
      const auto got = p.run(x, n_rows);
      for (size_t i = 0; i < p.weights.size(); ++i) {
        const bool bytes = p.weights[i] != &f32;
        expect_near_oracle(*p.weights[i], seen_rows(x, p.norm, kWidth, bytes), n_rows, nullptr, nullptr, got[i], 2e-3f);
      }
    }
  });
}

// Beside the rows of a projection: few of another type or many, of widths where a warp takes one of them or several at
// a time, and of such numbers that tiles are not whole. Three rows of activations take none of them to shared memory.
TEST(Matvec, RowsOfOtherTypesBesideOneProjection) {
  struct Case {
    DType own;
    int width;
    std::vector<std::pair<DType, int>> sides;
  };
  const std::vector<Case> cases = {
      {DType::Q5_K, 2048, {{DType::Q8_0, 1}}},
      {DType::Q5_K, 2048, {{DType::Q8_0, 3}, {DType::Q8_0, 3}}},
      {DType::Q6_K, 512, {{DType::Q8_0, 41}, {DType::Q4_K, 5}, {DType::Q8_0, 7}}},
      {DType::Q4_0, 192, {{DType::Q8_0, 9}, {DType::F32, 2}, {DType::Q5_1, 6}}},
      {DType::Q8_0, 1024, {{DType::Q5_K, 6}, {DType::BF16, 3}}},
  };
  for (const Case& c : cases) {
    const TestWeight own(c.own, c.width, 37);
    Product p{.weights = {&own}, .norm = random_floats(c.width, 3), .add = true, .bias = random_floats(41, 9)};
    std::vector<std::unique_ptr<TestWeight>> sides;
    for (const auto& [type, n_rows] : c.sides) {
      sides.push_back(std::make_unique<TestWeight>(type, c.width, n_rows, 1, 2 + sides.size()));
      p.weights.push_back(sides.back().get());
    }
    const std::vector<float> x = random_floats(static_cast<size_t>(c.width) * 3, 5);
    on_both_schedules([&] { expect_rows_of_their_own(p, x, {2, 3}); });
  }
}

// No room for all of the side rows: the rest are read from device memory.
TEST(Matvec, SideRowsWithoutRoomInSharedMemory) {
  constexpr int kWidth = 2048;
  const TestWeight own(DType::Q5_K, kWidth, 110), side(DType::Q8_0, kWidth, 60);
  const Product p{.weights = {&own, &side}, .norm = random_floats(kWidth, 3)};
  const std::vector<float> x = random_floats(static_cast<size_t>(kWidth) * 3, 5);
  on_both_schedules([&] { expect_rows_of_their_own(p, x, {3}); });
}

TEST(Matvec, AddsIntoTheResidualWithBias) {
  constexpr int kWidth = 96;  // three groups: no multiple of a warp
  const TestWeight w(DType::Q8_0, kWidth, 40);
  const Product p{.weights = {&w}, .add = true, .bias = random_floats(40, 9)};
  const std::vector<float> x = random_floats(kWidth * 2, 5), base(80, 0.5f);
  expect_near_oracle(w, seen_rows(x, {}, kWidth, true), 2, p.bias.data(), base.data(), p.run(x, 2)[0], 1e-5f);
}

TEST(Matvec, OddWidthsOfFloatMatrices) {
  for (const DType type : {DType::F32, DType::F16, DType::BF16}) {
    for (const int width : {1, 7, 97, 515}) {
      const TestWeight w(type, width, 3);
      const Product p{.weights = {&w}, .norm = random_floats(width, 3)};
      const std::vector<float> x = random_floats(static_cast<size_t>(width) * 5, 5);
      expect_near_oracle(w, seen_rows(x, p.norm, width, false), 5, nullptr, nullptr, p.run(x, 5)[0], 1e-5f);
    }
  }
}

TEST(Matvec, GathersRows) {
  constexpr int kWidth = 256;
  const TestWeight w(DType::Q6_K, kWidth, 12);
  const std::vector<float> x = random_floats(kWidth * 8, 5);
  Product p{.weights = {&w}, .norm = random_floats(kWidth, 3)};
  const auto all = p.run(x, 8)[0];
  p.gather = {6, 1};
  const auto two = p.run(x, 2)[0];
  EXPECT_TRUE(std::equal(two.begin(), two.begin() + 12, all.begin() + 6 * 12));
  EXPECT_TRUE(std::equal(two.begin() + 12, two.end(), all.begin() + 12));
}

TEST(Matvec, RowsLongerThanTheRegisters) {
  constexpr int kWidth = 4352;
  const TestWeight w(DType::Q8_0, kWidth, 3);
  const Product p{.weights = {&w}, .norm = random_floats(kWidth, 3)};
  for (const int n_rows : {1, 5}) {
    const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * kWidth, 5);
    expect_near_oracle(w, seen_rows(x, p.norm, kWidth, true), n_rows, nullptr, nullptr, p.run(x, n_rows)[0], 2e-3f);
  }
}

// So many rows that one row of activations, and two, take the weights through slots; three take them through registers.
// A lane works on four rows of a slot, on two or on one, a warp on one after another or on several side by side, and the
// last tile is not whole.
TEST(Matvec, LargeMatricesComeThroughRings) {
  struct Case {
    DType type;
    int width, n_rows;
  };
  for (const Case c : {Case{DType::Q6_K, 2048, 351}, Case{DType::Q8_0, 2048, 301}, Case{DType::Q5_K, 4096, 203},
                       Case{DType::Q8_0, 2688, 333}, Case{DType::IQ3_S, 1536, 651}, Case{DType::Q4_0, 448, 1803},
                       Case{DType::Q4_0, 1984, 1030}}) {
    const TestWeight w(c.type, c.width, c.n_rows), side(DType::F32, c.width, 5), more(c.type, c.width, 33);
    const Product p{.weights = {&w, &side, &more}, .norm = random_floats(c.width, 3)};
    const Product alone{.weights = {&w}, .norm = p.norm};
    const std::vector<float> x = random_floats(static_cast<size_t>(c.width) * 3, 5);
    const std::vector<float> first(x.begin(), x.begin() + c.width);
    if (c.width == 2048) {
      EXPECT_EQ(kernel_of(p, 2, kLargeShared), MatvecKernel::ring) << c.width;
    }
    for (const size_t shared : {size_t{99} << 10, kLargeShared}) {
      with_shared_limit(shared, [&] {
        on_both_schedules([&] { expect_rows_of_their_own(p, x, {2, 3}); });
        EXPECT_EQ(alone.run(first, 1)[0], p.run(first, 1)[0]) << name(c.type) << " width " << c.width;
      });
    }
    expect_near_oracle(w, seen_rows(first, p.norm, c.width, true), 1, nullptr, nullptr, p.run(first, 1)[0], 2e-3f);
  }
}

TEST(Matvec, GatesRows) {
  constexpr int kWidth = 160, kRows = 6;
  const std::vector<float> x = random_floats(kWidth * kRows, 5);
  Product p{.gate = random_floats(kWidth * kRows, 6)};
  std::vector<float> seen = x;
  for (size_t i = 0; i < x.size(); ++i) seen[i] = static_cast<float>(reference::silu(p.gate[i]) * x[i]);
  for (const DType type : {DType::Q4_0, DType::F16}) {
    const TestWeight w(type, kWidth, 12);
    p.weights = {&w};
    const auto rows = seen_rows(seen, {}, kWidth, type == DType::Q4_0);
    expect_near_oracle(w, rows, kRows, nullptr, nullptr, p.run(x, kRows)[0], type == DType::Q4_0 ? 2e-3f : 1e-5f);
  }
}

TEST(Matvec, ManyRowsInSeveralPasses) {
  constexpr int kWidth = 2048;
  const TestWeight w(DType::IQ3_S, kWidth, 41);
  const Product p{.weights = {&w}};
  for (const int n_rows : {1, 2, 7, 40}) {
    const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * kWidth, 5);
    expect_near_oracle(w, seen_rows(x, {}, kWidth, true), n_rows, nullptr, nullptr, p.run(x, n_rows)[0], 1e-4f);
  }
}

// The codebook looked up at load changes no bit of any product, of one row, of few or of many.
TEST(Matvec, BothFormsOfCodeBookWeightsAgree) {
  constexpr int kWidth = 1536, kRows = 41;
  const TestWeight compact(DType::IQ3_S, kWidth, kRows), wide(kIq3Wide, kWidth, kRows);
  ASSERT_EQ(wide.weight.type, kIq3Wide);
  for (const bool exact : {false, true}) {
    for (const int n_rows : {1, 3, 7, 19}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(n_rows) * kWidth, 5);
      EXPECT_EQ((Product{.weights = {&compact}, .exact = exact}.run(x, n_rows)),
                (Product{.weights = {&wide}, .exact = exact}.run(x, n_rows)))
          << n_rows << " rows, exact " << exact;
    }
  }
}

class MatvecManyRows : public testing::TestWithParam<DType> {};

TEST_P(MatvecManyRows, EachHasTheBitsOfTheRowAlone) {
  for (const int width : {512, 1536, 2048}) {
    const TestWeight w(GetParam(), width, 117);
    const Product p{.weights = {&w}, .norm = random_floats(width, 3), .add = true, .bias = random_floats(117, 9)};
    with_shared_limit(kLargeShared, [&] {
      expect_rows_of_their_own(p, random_floats(static_cast<size_t>(width) * 17, 5), {8, 9, 17});
    });
  }
}
INSTANTIATE_TEST_SUITE_P(TensorCores, MatvecManyRows,
                         testing::Values(DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q4_K, DType::Q5_K,
                                         DType::Q6_K, kIq3Wide, DType::IQ4_NL, DType::IQ4_XS, DType::MXFP4),
                         [](const auto& i) { return type_name(i.param); });

// Where a block's share of the weights fits into shared memory: every number of rows, and tiles in eight parts or
// sixteen, of which the last is not whole.
class MatvecFewRows : public testing::TestWithParam<DType> {};

TEST_P(MatvecFewRows, EachHasTheBitsOfTheRowAlone) {
  for (const int n_weights : {75, 117}) {
    const int width = n_weights == 75 ? 2048 : 1024;
    const TestWeight w(GetParam(), width, n_weights);
    const Product p{.weights = {&w}, .norm = random_floats(width, 3), .add = true, .bias = random_floats(117, 9)};
    EXPECT_EQ(kernel_of(p, 2, kLargeShared), MatvecKernel::staged_two);
    for (const int n_rows : {3, 8}) EXPECT_EQ(kernel_of(p, n_rows, kLargeShared), MatvecKernel::staged_rows) << n_rows;
    with_shared_limit(kLargeShared, [&] {
      expect_rows_of_their_own(p, random_floats(static_cast<size_t>(width) * 8, 5), {2, 3, 4, 5, 6, 7, 8});
    });
  }
}
INSTANTIATE_TEST_SUITE_P(TensorCores, MatvecFewRows,
                         testing::Values(DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q4_K, DType::Q5_K,
                                         DType::Q6_K, kIq3Wide, DType::IQ4_NL, DType::IQ4_XS, DType::MXFP4),
                         [](const auto& i) { return type_name(i.param); });

// Eight, sixteen and 32 lanes a row, some without a pair and some with several; one tile a block, two and three.
TEST(MatvecFewRows, OfAnyWidth) {
  for (const int width : {512, 1472, 1984, 2688, 4096}) {
    for (const int n_weights : {21, 61, 70}) {
      const TestWeight w(DType::Q5_0, width, n_weights);
      const Product p{.weights = {&w}, .norm = random_floats(width, 3), .scale = 0.25f};
      with_shared_limit(kLargeShared, [&] {
        expect_rows_of_their_own(p, random_floats(static_cast<size_t>(width) * 7, 5), {2, 3, 7});
      });
    }
  }
}

TEST(MatvecFewRows, OnBothSchedules) {
  for (const int width : {2048, 4096}) {
    const TestWeight q5(DType::Q5_K, width, 50), more(DType::Q5_K, width, 3), q8(DType::Q8_0, width, 9),
        last(DType::Q8_0, width, 1);
    const Product p{.weights = {&q8, &q5, &more, &last}, .norm = random_floats(width, 3)};
    on_both_schedules([&] {
      with_shared_limit(kLargeShared, [&] {
        expect_rows_of_their_own(p, random_floats(static_cast<size_t>(width) * 5, 5), {2, 3, 5});
      });
    });
  }
}

// Rows that a launch of their own quantises: gated ones, and such as are too long for every block to do it.
TEST(MatvecFewRows, QuantisedBeforehand) {
  constexpr int kRows = 6;
  for (const int width : {1024, 6144}) {
    const TestWeight w(DType::Q4_K, width, 37);
    const std::vector<float> x = random_floats(static_cast<size_t>(width) * kRows, 5);
    with_shared_limit(kLargeShared, [&] {
      if (width > 1024) return expect_rows_of_their_own({.weights = {&w}, .norm = random_floats(width, 3)}, x, {kRows});
      const Product all{.weights = {&w}, .gate = random_floats(x.size(), 6)};
      const auto got = all.run(x, kRows)[0];
      for (int t = 0; t < kRows; ++t) {
        const auto row = [&](const std::vector<float>& of) {
          return std::vector<float>(of.begin() + t * width, of.begin() + (t + 1) * width);
        };
        const auto alone = Product{.weights = {&w}, .gate = row(all.gate)}.run(row(x), 1)[0];
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), got.begin() + t * 37)) << t;
      }
    });
  }
}

// Widths with 4, 8, 16 and 32 lanes a row, with an odd number of groups, and with several pairs a lane.
TEST(MatvecManyRows, OfAnyWidth) {
  for (const int width : {96, 256, 320, 2688, 4096}) {
    const TestWeight w(DType::Q8_0, width, 35);
    const Product p{.weights = {&w}, .add = true, .scale = 0.25f};
    for (const size_t shared : {size_t{99} << 10, kLargeShared}) {
      with_shared_limit(shared, [&] {
        expect_rows_of_their_own(p, random_floats(static_cast<size_t>(width) * 31, 5), {16, 31});
      });
    }
  }
}

// No more tiles than multiprocessors: all warps of a block on one tile, where lanes allow it.
TEST(MatvecManyRows, OfATileABlock) {
  for (const int width : {512, 2688, 4096}) {
    const TestWeight w(DType::Q4_0, width, 21);
    const Product p{.weights = {&w}, .norm = random_floats(width, 3), .bias = random_floats(21, 9)};
    with_shared_limit(kLargeShared, [&] {
      on_both_schedules([&] {
        expect_rows_of_their_own(p, random_floats(static_cast<size_t>(width) * 12, 5), {8, 12});
      });
    });
  }
}

TEST(MatvecManyRows, InSeveralPassesBesideOtherTypes) {
  constexpr int kWidth = 1024;
  const TestWeight q5(DType::Q5_K, kWidth, 150), q8(DType::Q8_0, kWidth, 9), f32(DType::F32, kWidth, 5),
      more(DType::Q5_K, kWidth, 3), iq(DType::IQ2_XS, kWidth, 4);
  const Product p{.weights = {&q8, &q5, &f32, &more, &iq}, .norm = random_floats(kWidth, 3)};
  const std::vector<float> x = random_floats(size_t{kWidth} * 64, 5);
  on_both_schedules([&] {
    with_shared_limit(kLargeShared, [&] { expect_rows_of_their_own(p, x, {32, 64}); });
    expect_rows_of_their_own(p, x, {40});
  });
}

}  // namespace
}  // namespace chimere::cuda
