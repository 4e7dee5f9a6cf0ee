// The search in a codebook against a look at every entry.
#include "quantizer/encode_books.h"

#include <random>

#include <gtest/gtest.h>

#include "tensor/iq_grids.h"

namespace chimere::quantizer::any_machine {
namespace {

template <int kDims, int kLevels, int kEntries>
void expect_nearest(const int8_t (&grid)[kEntries][kDims], const std::array<int, kLevels>& values, float moved) {
  using TestBook = Book<kDims, kLevels, kEntries>;
  const TestBook book(grid, values);
  typename TestBook::Levels levels;
  for (size_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<float>(values[i]) + moved;
  std::mt19937_64 rng(1);
  std::normal_distribution<float> normal;
  std::lognormal_distribution<float> lognormal(0.0f, 1.5f);
  BookChoice before;  // of other values: a seed may be anything
  for (int round = 0; round < 200; ++round) {
    float x[kDims], w[kDims];
    for (int e = 0; e < kDims; ++e) {
      x[e] = normal(rng);
      w[e] = lognormal(rng);
    }
    typename TestBook::Sums sums;
    TestBook::sum_patterns(x, w, levels, sums);
    for (const float scale : {0.02f, 0.05f, 0.3f, 2.0f}) {
      const auto error = [&](int entry) {
        double sum = 0.0;
        for (int e = 0; e < kDims; ++e) {
          const double miss =
              static_cast<double>(x[e]) -
              static_cast<double>(scale) * (static_cast<double>(grid[entry][e]) + static_cast<double>(moved));
          sum += static_cast<double>(w[e]) * miss * miss;
        }
        return sum;
      };
      double least = INFINITY;
      for (int entry = 0; entry < kEntries; ++entry) least = std::min(least, error(entry));
      const BookChoice unseeded = book.nearest(sums, 2.0f / scale, {});
      const BookChoice seeded = book.nearest(sums, 2.0f / scale, before);
      EXPECT_NEAR(error(unseeded.entry), least, 1e-5 * least + 1e-6) << "round " << round << ", scale " << scale;
      EXPECT_NEAR(error(seeded.entry), least, 1e-5 * least + 1e-6) << "round " << round << ", scale " << scale;
      before = seeded;
    }
  }
}

TEST(Books, FindTheNearestOfAllEntries) {
  const std::array<int, 3> two_bits = {8, 25, 43};
  expect_nearest<8, 3, 256>(kIqGrids.iq2_xxs, two_bits, 0.0f);
  expect_nearest<8, 3, 512>(kIqGrids.iq2_xs, two_bits, 0.0f);
  expect_nearest<8, 3, 1024>(kIqGrids.iq2_s, two_bits, 0.0f);
  expect_nearest<4, 8, 256>(kIqGrids.iq3_xxs, {4, 12, 20, 28, 36, 44, 52, 62}, 0.0f);
  expect_nearest<4, 8, 512>(kIqGrids.iq3_s, {1, 3, 5, 7, 9, 11, 13, 15}, 0.0f);
  expect_nearest<8, 3, 2048>(kIqGrids.iq1, {-1, 0, 1}, 0.125f);
}

}  // namespace
}  // namespace chimere::quantizer::any_machine
