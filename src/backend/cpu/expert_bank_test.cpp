// expert_bank_test.cpp  Experts in RAM against their formula, and rows that do not depend on their company.
#include "backend/cpu/expert_bank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tensor/dequantize.h"
#include "tensor/random_blocks.h"

namespace chimere::cpu {
namespace {

constexpr int kWidth = 64, kHidden = 96, kExperts = 5, kUsed = 2, kMaxRows = 40;

// Two mixtures: one of quantised experts, one of floats with biases.
class Mixtures {
 public:
  Mixtures() {
    program_.vectors.resize(1);
    std::mt19937 rng(11);
    std::normal_distribution<float> normal(0.0f, 0.3f);
    for (int i = 0; i < kExperts * kWidth; ++i) program_.vectors[0].push_back(normal(rng));
    for (const DType type : {DType::Q8_0, DType::F32}) {
      op::MoeFfn op{};
      op.x = 0;
      op.norm = op.router = kNone;
      op.n_experts = kExperts;
      op.n_used = kUsed;
      op.gate = add(type, kWidth, kHidden);
      op.up = add(type, kWidth, kHidden);
      op.down = add(type, kHidden, kWidth);
      if (type == DType::F32) op.down_bias = 0;
      program_.ops.push_back(op);
    }
    for (size_t i = 0; i < bytes_.size(); ++i) program_.matrices[i].data = bytes_[i].data();
    program_.buffers.push_back({"x", kWidth});
  }

  std::unique_ptr<ExpertBank> bank(bool exact, int n_threads) const {
    LoadOptions options;
    options.exact = exact;
    options.n_threads = n_threads;
    std::vector<const op::MoeFfn*> mixtures;
    for (const Op& op : program_.ops) mixtures.push_back(&std::get<op::MoeFfn>(op));
    auto made = ExpertBank::create(program_, mixtures, kMaxRows, options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }

  // In double, as the op says.
  std::vector<double> expected(int mixture, const float* x, const int32_t* ids, const float* weights) const {
    const auto& op = std::get<op::MoeFfn>(program_.ops[mixture]);
    std::vector<double> sum(kWidth);
    for (int k = 0; k < kUsed; ++k) {
      std::vector<double> hidden(kHidden);
      for (int h = 0; h < kHidden; ++h) {
        const double g = dot(op.gate, ids[k], h, x);
        hidden[h] = g / (1 + std::exp(-g)) * dot(op.up, ids[k], h, x);
      }
      for (int i = 0; i < kWidth; ++i) {
        const double bias = op.down_bias == kNone ? 0.0 : program_.vectors[0][ids[k] * kWidth + i];
        sum[i] += weights[k] * (dot(op.down, ids[k], i, hidden.data()) + bias);
      }
    }
    return sum;
  }

 private:
  MatrixId add(DType type, int64_t in, int64_t out) {
    const int64_t blocks = in / info(type).block_elems * out * kExperts;
    bytes_.emplace_back(static_cast<size_t>(blocks * info(type).block_bytes));
    random_blocks(type, bytes_.back().data(), blocks, bytes_.size(), 0.2f);
    program_.matrices.push_back(
        {"experts", type, {static_cast<uint64_t>(in), static_cast<uint64_t>(out), kExperts, 1}, nullptr});
    return static_cast<MatrixId>(program_.matrices.size() - 1);
  }
  template <class T>
  double dot(MatrixId id, int expert, int row, const T* x) const {
    const TensorView& m = program_.matrices[id];
    std::vector<float> values(m.ne[0]);
    dequantize_row(m.type, m.row(expert * m.ne[1] + row), values.data(), static_cast<int64_t>(m.ne[0]));
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += static_cast<double>(values[i]) * x[i];
    return sum;
  }

  Program program_;
  std::vector<std::vector<std::byte>> bytes_;
};

struct Input {
  std::vector<float> x, weights;
  std::vector<int32_t> ids;

  explicit Input(int n_rows) {
    std::mt19937 rng(3);
    std::normal_distribution<float> normal;
    for (int i = 0; i < n_rows * kWidth; ++i) x.push_back(normal(rng));
    for (int t = 0; t < n_rows; ++t) {
      const auto first = static_cast<int32_t>(rng() % kExperts);
      ids.insert(ids.end(), {first, (first + 1 + static_cast<int32_t>(rng() % (kExperts - 1))) % kExperts});
      weights.insert(weights.end(), {0.7f, 0.3f});
    }
  }
};

TEST(ExpertBank, ComputesTheWeightedSumOfTheChosenExperts) {
  const Mixtures mixtures;
  const Input in(9);
  for (const bool exact : {true, false}) {
    const auto bank = mixtures.bank(exact, 2);
    for (const int mixture : {0, 1}) {
      std::vector<float> out(9 * kWidth, 99.0f);
      bank->run(mixture, 9, in.x.data(), in.ids.data(), in.weights.data(), out.data());
      for (int t = 0; t < 9; ++t) {
        const auto expected = mixtures.expected(mixture, &in.x[t * kWidth], &in.ids[t * kUsed], &in.weights[t * kUsed]);
        double error = 0, size = 0;
        for (int i = 0; i < kWidth; ++i) {
          error += std::pow(out[t * kWidth + i] - expected[i], 2);
          size += std::pow(expected[i], 2);
        }
        EXPECT_LE(std::sqrt(error / size), exact || mixture == 1 ? 1e-5 : 2e-2)
            << "mixture " << mixture << " row " << t;
      }
    }
  }
}

TEST(ExpertBank, RowsDoNotDependOnTheirCompanyNorOnThreads) {
  const Mixtures mixtures;
  const Input in(kMaxRows);
  const auto bank = mixtures.bank(false, 3), other = mixtures.bank(false, 1);
  std::vector<float> together(kMaxRows * kWidth), alone(kMaxRows * kWidth);
  bank->run(0, kMaxRows, in.x.data(), in.ids.data(), in.weights.data(), together.data());
  for (int t = 0; t < kMaxRows; ++t) {
    other->run(0, 1, &in.x[t * kWidth], &in.ids[t * kUsed], &in.weights[t * kUsed], &alone[t * kWidth]);
  }
  EXPECT_EQ(together, alone);
}

TEST(ExpertBank, TellsHowMuchItHolds) {
  const Mixtures mixtures;
  EXPECT_GE(mixtures.bank(false, 1)->weight_bytes(), 3u * kExperts * kWidth * kHidden * (4 + 1));
}

}  // namespace
}  // namespace chimere::cpu
