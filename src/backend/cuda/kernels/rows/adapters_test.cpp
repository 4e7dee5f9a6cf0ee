// The two products of an adapter against sums in double: ranks that divide nothing, more of them than a window, several
// uses, rows of a batch in any order, and a part of the batch alone.
#include "backend/cuda/kernels/rows/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cuda/kernels/common/kernel_test.h"
#include "backend/cuda/kernels/common/test_weights.h"

namespace chimere::cuda {
namespace {

constexpr int kWidth = 77, kRows = 21, kMatrices = 3;
constexpr int kOut[kMatrices] = {40, 300, 9};

struct Held {
  std::vector<std::vector<float>> values;
  std::vector<DeviceChange> changes;

  explicit Held(const std::vector<int>& ranks, uint64_t seed) {
    for (int m = 0; m < kMatrices; ++m) {
      const auto rank = static_cast<size_t>(ranks[m]);
      values.push_back(random_floats(rank * kWidth, seed + 2 * m, 0.1f));
      values.push_back(random_floats(rank * kOut[m], seed + 2 * m + 1, 0.1f));
    }
    for (int m = 0; m < kMatrices; ++m) {
      changes.push_back({values[2 * m].data(), values[2 * m + 1].data(), ranks[m], 0});
    }
  }
};

class Adapters : public testing::Test {
 protected:
  // Row r has the uses of group r % 3, the third of which has none.
  void SetUp() override {
    held_.emplace_back(std::vector<int>{3, 70, 0}, 1);
    held_.emplace_back(std::vector<int>{8, 61, 0}, 11);
    held_.emplace_back(std::vector<int>{1, 0, 16}, 21);
    uses_ = {
        {held_[0].changes.data(), 0.5f, 0}, {held_[1].changes.data(), -2.0f, 0}, {held_[2].changes.data(), 1.0f, 0}};
    for (const int group : {0, 1}) {
      std::vector<int32_t> rows;
      for (int32_t r = group; r < kRows; r += 3) rows.push_back(r);
      AdapterTile tile{static_cast<int32_t>(rows.size()), group == 0 ? 0 : 2, group == 0 ? 2 : 1, 0, {}};
      std::copy(rows.begin(), rows.end(), tile.rows);
      tiles_.push_back(tile);
    }
    tiles_.push_back({});
    low_.assign(size_t{kMaxAdapted} * 4 * kAdapterRows * kAdapterWindow, NAN);
  }

  AddAdaptersArgs args(const std::vector<AdapterTile>& tiles, int tile_rows) {
    AddAdaptersArgs a;
    a.view = {tiles.data(), uses_.data(), static_cast<int>(tiles.size()), tile_rows, 144, low_.data()};
    a.in.x = x_.data();
    a.in.width = kWidth;
    a.n_rows = kRows;
    a.n_products = kMatrices;
    for (int m = 0; m < kMatrices; ++m)
      a.products[m] = {m, out_[m].data(), kOut[m], kOut[m] + 5, m == 1 ? 0.25f : 1.0f};
    return a;
  }
  void fill_outputs() {
    for (int m = 0; m < kMatrices; ++m) out_[m] = random_floats(size_t{kRows} * (kOut[m] + 5), 90 + m);
  }

  // What row r of matrix m becomes, from n = its input as it is multiplied.
  std::vector<float> expected(int m, int r, const std::vector<double>& n, float factor) const {
    std::vector<double> sums(kOut[m]);
    for (size_t u = 0; u < uses_.size(); ++u) {
      if ((u < 2 ? 0 : 1) != r % 3) continue;
      const DeviceChange& change = uses_[u].changes[m];
      for (int k = 0; k < change.rank; ++k) {
        double dot = 0;
        for (int i = 0; i < kWidth; ++i) dot += n[i] * change.a[k * kWidth + i];
        for (int o = 0; o < kOut[m]; ++o) sums[o] += factor * uses_[u].scale * dot * change.b[k * kOut[m] + o];
      }
    }
    std::vector<float> row(out_[m].begin() + r * (kOut[m] + 5), out_[m].begin() + (r + 1) * (kOut[m] + 5));
    for (int o = 0; o < kOut[m]; ++o) row[o] = static_cast<float>(row[o] + sums[o]);
    return row;
  }

  std::vector<Held> held_;
  std::vector<AdapterUse> uses_;
  std::vector<AdapterTile> tiles_;
  std::vector<float> low_;
  std::vector<float> x_ = random_floats(kRows * kWidth, 7), gate_ = random_floats(kRows * kWidth, 8);
  std::vector<float> norm_ = random_floats(kWidth, 9);
  std::vector<float> out_[kMatrices];
};

TEST_F(Adapters, AddWhatTheyAreTo) {
  enum class Input { plain, normed, gated };
  on_both_schedules([&] {
    for (const Input input : {Input::plain, Input::normed, Input::gated}) {
      fill_outputs();
      AddAdaptersArgs a = args(tiles_, kAdapterRows);
      if (input == Input::normed) a.in.norm = norm_.data(), a.in.eps = 1e-5f;
      if (input == Input::gated) a.in.gate = gate_.data();
      std::vector<std::vector<float>> wanted;
      for (int m = 0; m < kMatrices; ++m) {
        for (int r = 0; r < kRows; ++r) {
          std::vector<double> n(x_.begin() + r * kWidth, x_.begin() + (r + 1) * kWidth);
          double squares = 0;
          for (const double v : n) squares += v * v;
          for (int i = 0; i < kWidth; ++i) {
            const double g = gate_[r * kWidth + i];
            if (input == Input::normed) n[i] *= norm_[i] / std::sqrt(squares / kWidth + 1e-5);
            if (input == Input::gated) n[i] *= g / (1 + std::exp(-g));
          }
          wanted.push_back(expected(m, r, n, m == 1 ? 0.25f : 1.0f));
        }
      }
      const Stream stream = test_stream();
      ASSERT_TRUE(add_adapters(stream, a));
      ASSERT_TRUE(stream.synchronize());
      for (int m = 0; m < kMatrices; ++m) {
        for (int r = 0; r < kRows; ++r) {
          for (int o = 0; o < kOut[m] + 5; ++o) {
            ASSERT_NEAR(out_[m][r * (kOut[m] + 5) + o], wanted[m * kRows + r][o], 2e-5)
                << "matrix " << m << " row " << r << " column " << o << " input " << static_cast<int>(input);
          }
        }
      }
    }
  });
}

// Tiles of one row, and the batch in two parts: the same bits. Rows without adapters keep every bit, a negative zero
// too.
TEST_F(Adapters, BitsDoNotDependOnTiles) {
  fill_outputs();
  out_[0][2 * (kOut[0] + 5)] = -0.0f;
  const std::vector<float> before[kMatrices] = {out_[0], out_[1], out_[2]};
  const Stream stream = test_stream();
  ASSERT_TRUE(add_adapters(stream, args(tiles_, kAdapterRows)) && stream.synchronize());
  const std::vector<float> whole[kMatrices] = {out_[0], out_[1], out_[2]};
  for (int m = 0; m < kMatrices; ++m) {
    for (int r = 2; r < kRows; r += 3) {
      const size_t at = static_cast<size_t>(r) * (kOut[m] + 5);
      EXPECT_EQ(std::memcmp(&whole[m][at], &before[m][at], sizeof(float) * (kOut[m] + 5)), 0);
    }
  }

  for (int m = 0; m < kMatrices; ++m) out_[m] = before[m];
  for (const AdapterTile& tile : tiles_) {
    for (int j = 0; j < tile.n_rows; ++j) {
      const std::vector<AdapterTile> single = {{1, tile.first_use, tile.n_uses, 0, {tile.rows[j]}}};
      ASSERT_TRUE(add_adapters(stream, args(single, 1)) && stream.synchronize());
    }
  }
  for (int m = 0; m < kMatrices; ++m) EXPECT_EQ(out_[m], whole[m]);

  for (int m = 0; m < kMatrices; ++m) out_[m] = before[m];
  for (const int first : {0, 13}) {
    AddAdaptersArgs part = args(tiles_, kAdapterRows);
    part.first_row = first;
    part.n_rows = first == 0 ? 13 : kRows - 13;
    part.in.x += first * kWidth;
    for (int m = 0; m < kMatrices; ++m) part.products[m].out += first * part.products[m].pitch;
    ASSERT_TRUE(add_adapters(stream, part) && stream.synchronize());
  }
  for (int m = 0; m < kMatrices; ++m) EXPECT_EQ(out_[m], whole[m]);
}

TEST(Activate, WritesOverUp) {
  std::vector<float> gate = random_floats(300, 1), up = random_floats(300, 2);
  const std::vector<float> before = up;
  const Stream stream = test_stream();
  ASSERT_TRUE(activate(stream, op::Activation::swiglu, gate.data(), up.data(), 299) && stream.synchronize());
  for (int i = 0; i < 299; ++i) ASSERT_NEAR(up[i], gate[i] / (1 + std::exp(-gate[i])) * before[i], 1e-6);
  EXPECT_EQ(up[299], before[299]);
  up = before;
  ASSERT_TRUE(activate(stream, op::Activation::relu2, nullptr, up.data(), 300) && stream.synchronize());
  for (int i = 0; i < 300; ++i) ASSERT_EQ(up[i], before[i] > 0 ? before[i] * before[i] : 0.0f);
}

}  // namespace
}  // namespace chimere::cuda
