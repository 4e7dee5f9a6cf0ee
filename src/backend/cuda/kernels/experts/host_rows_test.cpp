// host_rows_test.cpp  What reaches the host and what comes back, for widths that fours divide and others.
#include "backend/cuda/kernels/experts/host_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backend/cuda/kernels/common/kernel_test.h"

namespace chimere::cuda {
namespace {

std::vector<float> numbers(size_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& v : out) v = normal(rng);
  return out;
}

TEST(HostRows, HandOverNormsRowsAndPacksChoices) {
  on_both_schedules([] {
    const Stream stream = test_stream();
    constexpr int kRows = 3, kUsed = 2;
    constexpr float kEps = 1e-5f;
    for (const int width : {1060, 37}) {
      for (const bool normed : {false, true}) {
        const std::vector<float> x = numbers(kRows * width, 1), norm = numbers(width, 2), w = numbers(kRows * 3, 3);
        const std::vector<int32_t> ids = {4, 1, 0, 3, 2, 9};
        std::vector<float> host_x(kRows * width), host_w(kRows * kUsed);
        std::vector<int32_t> host_ids(kRows * kUsed);
        std::vector<uint32_t> rung(kRows, 0), done(kRows, 1);
        ASSERT_TRUE(hand_over(stream, {x.data(),
                                       normed ? norm.data() : nullptr,
                                       kEps,
                                       ids.data(),
                                       w.data(),
                                       3,
                                       kRows,
                                       width,
                                       kUsed,
                                       host_x.data(),
                                       host_ids.data(),
                                       host_w.data(),
                                       {rung.data(), done.data(), 7}}));
        ASSERT_TRUE(stream.synchronize());
        EXPECT_EQ(rung, std::vector<uint32_t>(kRows, 7)) << "every row rings";
        EXPECT_EQ(done, std::vector<uint32_t>(kRows, 0)) << "what was done is not what is asked for now";
        EXPECT_EQ(host_ids, ids);
        for (int t = 0; t < kRows; ++t) {
          for (int k = 0; k < kUsed; ++k) EXPECT_EQ(host_w[t * kUsed + k], w[t * 3 + k]);
          double squares = 0;
          for (int i = 0; i < width; ++i) squares += double{x[t * width + i]} * x[t * width + i];
          const double by = 1 / std::sqrt(squares / width + kEps);
          for (int i = 0; i < width; ++i) {
            const double expected = normed ? x[t * width + i] * by * norm[i] : x[t * width + i];
            ASSERT_NEAR(host_x[t * width + i], expected, normed ? 1e-5 * (1 + std::abs(expected)) : 0.0);
          }
        }
      }
    }
  });
}

TEST(HostRows, TakeBackAddsTheSharedExpert) {
  on_both_schedules([] {
    const Stream stream = test_stream();
    constexpr int kRows = 2;
    for (const int width : {1028, 33}) {
      const std::vector<float> sums = numbers(kRows * width, 4), shared = numbers(kRows * width, 5);
      const std::vector<float> gate = {0.5f, 9.0f, 9.0f, -2.0f}, before = numbers(kRows * width, 6);
      for (const bool add : {true, false}) {
        for (const bool has_shared : {true, false}) {
          std::vector<float> out = before;
          std::vector<uint32_t> rung(kRows, 0), done(kRows, 1);
          ASSERT_TRUE(take_back(stream, {sums.data(),
                                         has_shared ? shared.data() : nullptr,
                                         gate.data(),
                                         3,
                                         out.data(),
                                         kRows,
                                         width,
                                         add,
                                         1.5f,
                                         {rung.data(), done.data(), 0}}));
          ASSERT_TRUE(stream.synchronize());
          for (int i = 0; i < kRows * width; ++i) {
            const double own = has_shared ? double{gate[i / width * 3]} * shared[i] : 0.0;
            ASSERT_NEAR(out[i], (add ? before[i] : 0.0) + 1.5 * (sums[i] + own), 2e-6 * (1 + std::abs(out[i])));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace chimere::cuda
