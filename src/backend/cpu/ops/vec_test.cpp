// vec_test.cpp  The vector kernels of every instruction set against doubles, at sizes that divide nothing.
#include "backend/cpu/vec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "backend/cpu/ops/every_isa.h"
#include "backend/cpu/ops/kv_rows.h"
#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace chimere::cpu {
namespace {

class Vec : public EveryIsa {
 protected:
  std::vector<float> normal(int64_t n, float scale = 1) {
    std::normal_distribution<float> d(0, scale);
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = d(rng_);
    return x;
  }
  std::mt19937 rng_{7};
};

double silu(double x) { return x / (1 + std::exp(-x)); }

TEST_P(Vec, Matmul) {
  struct Size {
    int m, n, k;
  };
  for (const Size& s : {Size{1, 1, 1}, Size{8, 32, 16}, Size{7, 33, 5}, Size{64, 64, 128}, Size{13, 50, 300},
                        Size{3, 17, 129}, Size{64, 48, 20}, Size{5, 7, 0}}) {
    for (const bool transposed : {false, true}) {
      for (const bool accumulate : {false, true}) {
        const int64_t b_row = s.n + 3, c_row = s.n + 5;
        const std::vector<float> a = normal(int64_t{s.m} * s.k + 1), b = normal(b_row * s.k + 1);
        const std::vector<float> before = normal(c_row * s.m);
        std::vector<float> c = before;
        const int64_t a_row = transposed ? 1 : s.k, a_col = transposed ? s.m : 1;
        vec().matmul(s.m, s.n, s.k, a.data(), a_row, a_col, b.data(), b_row, c.data(), c_row, accumulate);
        for (int i = 0; i < s.m; ++i) {
          for (int j = 0; j < c_row; ++j) {
            double want = before[i * c_row + j];
            if (j < s.n) {
              want = accumulate ? want : 0;
              for (int p = 0; p < s.k; ++p) want += double{a[i * a_row + p * a_col]} * b[p * b_row + j];
            }
            ASSERT_NEAR(c[i * c_row + j], want, 2e-6 * (4 + s.k)) << s.m << " " << s.n << " " << s.k;
          }
        }
      }
    }
  }
}

TEST_P(Vec, MatmulBitsDoNotDependOnTheTile) {
  const int n = 50, k = 150, m = 13;
  const std::vector<float> a = normal(m * k), b = normal(k * n);
  std::vector<float> whole(m * n), one(n), column(m * n);
  vec().matmul(m, n, k, a.data(), k, 1, b.data(), n, whole.data(), n, false);
  for (int i = 0; i < m; ++i) {
    vec().matmul(1, n, k, a.data() + i * k, k, 1, b.data(), n, one.data(), n, false);
    for (int j = 0; j < n; ++j) ASSERT_EQ(one[j], whole[i * n + j]);
  }
  for (int j = 0; j < n; ++j) vec().matmul(m, 1, k, a.data(), k, 1, b.data() + j, n, column.data() + j, n, false);
  EXPECT_EQ(column, whole);
}

TEST_P(Vec, Transpose) {
  for (const auto& [rows, cols] : {std::pair{64, 128}, {1, 5}, {17, 33}, {63, 20}, {16, 16}}) {
    const std::vector<float> in = normal((cols + 2) * rows);
    std::vector<float> out(static_cast<size_t>(cols) * 64);
    vec().transpose(rows, cols, in.data(), cols + 2, out.data(), 64);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < cols; ++c) ASSERT_EQ(out[c * 64 + r], in[r * (cols + 2) + c]);
    }
  }
}

TEST_P(Vec, ExpIsAccurateAndBounded) {
  std::vector<float> x;
  for (float v = -87.0f; v < 88.2f; v += 0.0173f) x.push_back(v);
  std::vector<float> e = x;
  vec().exp_sum(static_cast<int>(e.size()), 0.0f, e.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(e[i] / std::exp(double{x[i]}), 1.0, 2.5e-7) << x[i];

  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> edge{0.0f, -200.0f, -inf, -0.0f, 1e4f, std::nanf("")};
  vec().exp_sum(static_cast<int>(edge.size()), 0.0f, edge.data());
  EXPECT_EQ(edge[0], 1.0f);
  EXPECT_EQ(edge[1], 0.0f);
  EXPECT_EQ(edge[2], 0.0f);
  EXPECT_EQ(edge[3], 1.0f);
  EXPECT_GT(edge[4], 1e38f);
  EXPECT_TRUE(std::isnan(edge[5]));
}

TEST_P(Vec, Elementwise) {
  for (int n : {1, 3, 4, 8, 15, 16, 17, 48, 100, 128}) {
    const std::vector<float> x = normal(n, 3), w = normal(n), z = normal(n, 20);
    std::vector<float> out(static_cast<size_t>(n) + 1, 77.0f);
    double squares = 0, sum = 0, shifted = 0;
    float best = x[0];
    for (float v : x) squares += double{v} * v, sum += std::exp(double{v}), best = std::max(best, v);
    EXPECT_NEAR(vec().sum_squares(n, x.data()), squares, 1e-5 * squares);
    EXPECT_EQ(vec().max(n, x.data()), best);

    vec().scale(n, 0.5f, x.data(), out.data());
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], 0.5f * x[i]);
    vec().scale_mul(n, 0.5f, x.data(), w.data(), out.data());
    for (int i = 0; i < n; ++i) EXPECT_EQ(out[i], 0.5f * x[i] * w[i]);
    std::vector<float> sums = w;
    vec().multiply_add(n, 0.25f, x.data(), sums.data());
    for (int i = 0; i < n; ++i) EXPECT_NEAR(sums[i], w[i] + 0.25 * x[i], 1e-6);
    vec().scale_mul_silu(n, 0.5f, x.data(), w.data(), z.data(), out.data());
    for (int i = 0; i < n; ++i) {
      const double want = 0.5 * x[i] * w[i] * silu(z[i]);
      EXPECT_NEAR(out[i], want, 1e-6 * std::fabs(want) + 1e-30);
    }
    vec().scale_sigmoid(n, 0.5f, x.data(), z.data(), out.data());
    for (int i = 0; i < n; ++i) EXPECT_NEAR(out[i], 0.5 * x[i] / (1 + std::exp(-double{z[i]})), 1e-6 * std::fabs(x[i]));
    const float row[2] = {-1.5f, 0.25f};
    vec().decay_mul(n, -2.0f, row, w.data(), x.data(), x.data(), out.data());
    for (int i = 0; i < n; ++i) {
      const double want = -2 * double{x[i]} * std::exp(-1.25 - w[i] - x[i]);
      EXPECT_NEAR(out[i], want, 1e-6 * std::fabs(want));
    }
    std::vector<float> e = x;
    const float got = vec().exp_sum(n, 1.0f, e.data());
    for (int i = 0; i < n; ++i) shifted += e[i];
    EXPECT_NEAR(got, sum / std::exp(1.0), 1e-6 * sum);
    EXPECT_NEAR(got, shifted, 1e-6 * shifted);
    EXPECT_EQ(out[n], 77.0f);
  }
}

TEST_P(Vec, ConvSilu) {
  for (int n : {5, 16, 48, 131}) {
    const int taps = 3;
    const std::vector<float> x = normal(int64_t{taps} * n), w = normal(int64_t{taps} * (n + 4));
    const float* rows[] = {x.data(), x.data() + n, x.data() + 2 * n};
    std::vector<float> out(static_cast<size_t>(n));
    vec().conv_silu(n, taps, rows, w.data(), n + 4, out.data());
    for (int c = 0; c < n; ++c) {
      double sum = 0;
      for (int j = 0; j < taps; ++j) sum += double{x[j * n + c]} * w[j * (n + 4) + c];
      EXPECT_NEAR(out[c], silu(sum), 1e-6 * (1 + std::fabs(sum)));
    }
  }
}

TEST_P(Vec, DeltaStep) {
  for (const auto& [dk, dv] : {std::pair{128, 128}, {48, 48}, {20, 20}, {5, 37}}) {
    const std::vector<float> before = normal(dk * dv), q = normal(dk), k = normal(dk, 0.1f), v = normal(dv);
    std::vector<float> state = before, silent = before, o(static_cast<size_t>(dv));
    const float decay = 0.9f, beta = 0.7f;
    DeltaTokens token{1, q.data(), k.data(), v.data(), &decay, &beta, o.data()};
    vec().delta_steps(dk, dv, token, state.data(), state.data());
    token.o = nullptr;
    vec().delta_steps(dk, dv, token, silent.data(), silent.data());
    EXPECT_EQ(state, silent);
    for (int j = 0; j < dv; ++j) {
      double read = 0, out = 0;
      for (int i = 0; i < dk; ++i) read += double{0.9f} * before[i * dv + j] * k[i];
      const double delta = double{0.7f} * (v[j] - read);
      for (int i = 0; i < dk; ++i) {
        const double s = double{0.9f} * before[i * dv + j] + k[i] * delta;
        ASSERT_NEAR(state[i * dv + j], s, 1e-5);
        out += s * q[i];
      }
      ASSERT_NEAR(o[j], out, 1e-4);
    }
  }
}

// Several tokens at once have the bits of as many single ones, in place or with the rest ahead.
TEST_P(Vec, DeltaStepsOfSeveralTokens) {
  for (const auto& [dk, dv] : {std::pair{128, 128}, {48, 48}, {5, 37}}) {
    for (const int n : {2, 3, 16}) {
      const std::vector<float> before = normal(dk * dv), q = normal(n * dk), k = normal(n * dk, 0.1f);
      const std::vector<float> v = normal(n * dv), decay(static_cast<size_t>(n), 0.9f),
                               beta(static_cast<size_t>(n), 0.7f);
      std::vector<float> single = before, o_single(static_cast<size_t>(n * dv)), behind_first;
      for (int t = 0; t < n; ++t) {
        const DeltaTokens token{1, &q[t * dk], &k[t * dk], &v[t * dv], &decay[t], &beta[t], &o_single[t * dv]};
        vec().delta_steps(dk, dv, token, single.data(), single.data());
        if (t == 0) behind_first = single;
      }
      std::vector<float> state = before, split = before, ahead(before.size()), o(o_single.size()), o_split(o.size());
      DeltaTokens tokens{n, q.data(), k.data(), v.data(), decay.data(), beta.data(), o.data()};
      vec().delta_steps(dk, dv, tokens, state.data(), state.data());
      tokens.o = o_split.data();
      vec().delta_steps(dk, dv, tokens, split.data(), ahead.data());
      EXPECT_EQ(state, single);
      EXPECT_EQ(o, o_single);
      EXPECT_EQ(split, behind_first);
      EXPECT_EQ(ahead, single);
      EXPECT_EQ(o_split, o_single);
    }
  }
}

TEST_P(Vec, DecayStep) {
  for (const auto& [dk, dv] : {std::pair{128, 64}, {24, 48}, {20, 20}, {5, 37}}) {
    const std::vector<float> before = normal(dk * dv), q = normal(dk), k = normal(dk), v = normal(dv);
    std::vector<float> state = before, silent = before, o(static_cast<size_t>(dv));
    vec().decay_step(dk, dv, state.data(), q.data(), k.data(), v.data(), 0.9f, o.data());
    vec().decay_step(dk, dv, silent.data(), q.data(), k.data(), v.data(), 0.9f, nullptr);
    EXPECT_EQ(state, silent);
    for (int j = 0; j < dv; ++j) {
      double out = 0;
      for (int i = 0; i < dk; ++i) {
        const double s = double{0.9f} * before[i * dv + j] + double{k[i]} * v[j];
        ASSERT_NEAR(state[i * dv + j], s, 1e-5);
        out += s * q[i];
      }
      ASSERT_NEAR(o[j], out, 2e-4);
    }
  }
}

TEST_P(Vec, SelectiveStep) {
  for (const auto& [n_states, n] : {std::pair{16, 64}, {5, 37}, {3, 1}}) {
    const int row = n + 3;
    const std::vector<float> before = normal(n_states * row), x = normal(n), b = normal(n_states), q = normal(n_states);
    std::vector<float> a = normal(n_states * row), dt = normal(n);
    for (float& r : a) r = -std::abs(r);
    for (float& t : dt) t = std::abs(t);
    std::vector<float> state = before, silent = before, y(static_cast<size_t>(n));
    vec().selective_step(n_states, n, state.data(), a.data(), row, dt.data(), x.data(), b.data(), q.data(), y.data());
    vec().selective_step(n_states, n, silent.data(), a.data(), row, dt.data(), x.data(), b.data(), nullptr, nullptr);
    EXPECT_EQ(state, silent);
    for (int c = 0; c < row; ++c) {
      double out = 0;
      for (int i = 0; i < n_states; ++i) {
        const int at = i * row + c;
        const double s =
            c < n ? std::exp(double{dt[c]} * a[at]) * before[at] + double{b[i]} * dt[c] * x[c] : before[at];
        ASSERT_NEAR(state[at], s, 1e-5);
        out += s * q[i];
      }
      if (c < n) {
        ASSERT_NEAR(y[c], out, 1e-4);
      }
    }
  }
}

TEST_P(Vec, SoftplusIsAccurateEverywhere) {
  std::vector<float> x, out;
  for (float v = -90; v <= 90; v += 0.0371f) x.push_back(v);
  out.resize(x.size());
  vec().softplus(static_cast<int>(x.size()), x.data(), nullptr, out.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = x[i] > 30 ? x[i] : std::log1p(std::exp(double{x[i]}));
    // Where exp ends (no denormals) so does this.
    if (x[i] > -87) {
      ASSERT_NEAR(out[i] / want, 1.0, 1e-6) << x[i];
    }
  }
  const std::vector<float> bias(x.size(), 1.5f);
  std::vector<float> shifted(x.size());
  vec().softplus(static_cast<int>(x.size()), x.data(), bias.data(), shifted.data());
  for (float& v : x) v += 1.5f;
  vec().softplus(static_cast<int>(x.size()), x.data(), nullptr, out.data());
  EXPECT_EQ(shifted, out);
}

TEST_P(Vec, Activations) {
  for (int n : {1, 16, 37, 64}) {
    const std::vector<float> gate = normal(n, 6), up = normal(n, 6);
    std::vector<float> squared = up, clamped = up;
    vec().relu2(n, squared.data());
    vec().clamped_swiglu(n, gate.data(), clamped.data());
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(squared[i], up[i] > 0 ? up[i] * up[i] : 0.0f);
      const double g = std::min(double{gate[i]}, 7.0), u = std::clamp(double{up[i]}, -7.0, 7.0);
      ASSERT_NEAR(clamped[i], g / (1 + std::exp(-1.702 * g)) * (u + 1), 3e-5);
    }
  }
}

TEST_P(Vec, StoredRows) {
  for (const DType type : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0}) {
    for (int d : {32, 64, 96, 256, 20, 49}) {
      if (d % info(type).block_elems != 0) continue;
      const int n = 11, m = 7;
      const int64_t bytes = static_cast<int64_t>(row_bytes(type, d));
      const std::vector<float> values = normal(int64_t{n} * d), q = normal(int64_t{m} * d), w = normal(m * 64);
      std::vector<std::byte> rows(static_cast<size_t>(n * bytes)), oracle(rows.size());
      for (int t = 0; t < n; ++t) {
        encode_kv(type, d, values.data() + t * d, rows.data() + t * bytes);
        quantize_row(type, values.data() + t * d, oracle.data() + t * bytes, d);
      }
      EXPECT_EQ(rows, oracle);
      std::vector<float> exact(values.size()), decoded(values.size());
      for (int t = 0; t < n; ++t) dequantize_row(type, rows.data() + t * bytes, exact.data() + t * d, d);
      const KvKernels& kv = kv_kernels(type);
      kv.decode(n * d, rows.data(), decoded.data());
      EXPECT_EQ(decoded, exact);

      std::vector<float> scores(m * 64, 5.0f), one(m * 64, 5.0f);
      kv.dots(m, n, d, q.data(), rows.data(), bytes, scores.data(), 64);
      for (int i = 0; i < m; ++i) {
        for (int t = 0; t < n; ++t) {
          double want = 0;
          for (int e = 0; e < d; ++e) want += double{q[i * d + e]} * exact[t * d + e];
          ASSERT_NEAR(scores[i * 64 + t], want, 1e-5 * std::sqrt(d) * 4);
          kv.dots(1, 1, d, q.data() + i * d, rows.data() + t * bytes, bytes, one.data() + i * 64 + t, 64);
        }
      }
      EXPECT_EQ(scores, one);

      const std::vector<float> before = normal(int64_t{m} * d);
      std::vector<float> o = before, pieces = before;
      kv.weighted(m, n, d, w.data(), 64, rows.data(), bytes, o.data());
      for (int i = 0; i < m; ++i) {
        for (int e = 0; e < d; ++e) {
          double want = before[i * d + e];
          for (int t = 0; t < n; ++t) want += double{w[i * 64 + t]} * exact[t * d + e];
          ASSERT_NEAR(o[i * d + e], want, 2e-5);
        }
        kv.weighted(1, 4, d, w.data() + i * 64, 64, rows.data(), bytes, pieces.data() + i * d);
        kv.weighted(1, n - 4, d, w.data() + i * 64 + 4, 64, rows.data() + 4 * bytes, bytes, pieces.data() + i * d);
      }
      EXPECT_EQ(o, pieces);
    }
  }
}

TEST_P(Vec, EveryHalf) {
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> got(halves.size()), want(halves.size());
  const std::byte* bytes = reinterpret_cast<const std::byte*>(halves.data());
  kv_kernels(DType::F16).decode(1 << 16, bytes, got.data());
  dequantize_row(DType::F16, bytes, want.data(), 1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Vec, testing::ValuesIn(vector_isas()), isa_name);

}  // namespace
}  // namespace chimere::cpu
