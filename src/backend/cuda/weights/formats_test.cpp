// Packing then unpacking gives the weights of dequantize_row, for every type a file may have.
#include "backend/cuda/weights/formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cuda/weights/pack.h"
#include "tensor/dequantize.h"
#include "tensor/random_blocks.h"

namespace chimere::cuda {
namespace {

struct Packed {
  std::vector<std::byte> file;
  std::vector<std::byte> rows;
  TensorView view;
  Weight weight;
};

Packed make(DType type, uint64_t width, uint64_t rows) {
  Packed p;
  p.view.type = type;
  p.view.ne = {width, rows, 1, 1};
  p.file.resize(p.view.size_bytes());
  random_rows(type, p.file.data(), static_cast<int64_t>(rows), static_cast<int64_t>(width), 7, 0.05f);
  p.view.data = p.file.data();
  p.rows.assign(packed_bytes(p.view), std::byte{0xEE});
  pack_rows(p.view, 0, rows, p.rows.data());
  p.weight = packed_weight(p.view, p.rows.data(), &kIqGrids);
  return p;
}

class Formats : public testing::TestWithParam<DType> {};

TEST_P(Formats, UnpackGivesTheFilesWeights) {
  const DType type = GetParam();
  if (info(type).block_elems == 1) GTEST_SKIP() << "no groups";
  constexpr int kWidth = 768, kRows = 3;
  const Packed p = make(type, kWidth, kRows);
  std::vector<float> expected(kWidth);
  for (int r = 0; r < kRows; ++r) {
    dequantize_row(type, p.view.row(r), expected.data(), kWidth);
    for (int g = 0; g < kWidth / kGroup; ++g) {
      Group group;
      unpack_any(p.weight.type, p.weight.row(0, r), kWidth / kGroup, g, p.weight.grids, group);
      for (int e = 0; e < kGroup; ++e) {
        const auto q = static_cast<int8_t>(group.q[e / 4] >> (8 * (e % 4)));
        const float weight = group.scale[e / 16] * static_cast<float>(q) + group.min[e / 16];
        // The same roundings in the same order, but for IQ1_S, where delta times scale is rounded by itself.
        const float slack = type == DType::IQ1_S ? 0x1p-22f * std::fabs(group.scale[0]) : 0.0f;
        ASSERT_NEAR(weight, expected[g * kGroup + e], slack) << "row " << r << " group " << g << " element " << e;
      }
    }
  }
}

TEST_P(Formats, PackedSizeStaysNearTheFile) {
  const DType type = GetParam();
  constexpr int kWidth = 2048;
  const double file = static_cast<double>(row_bytes(type, kWidth));
  const double packed = packed_row_bytes(type, kWidth);
  RecordProperty("bits_per_weight", std::to_string(8 * packed / kWidth));
  if (packed_type(type) != type) return;
  EXPECT_GE(packed, file);
  EXPECT_LE(packed, file * 1.04);
}

TEST_P(Formats, NoByteOfARecordIsLeftUnwritten) {
  const DType type = GetParam();
  const uint64_t width = static_cast<uint64_t>(info(type).block_elems) * 3;
  Packed p = make(type, width, 2);
  const std::vector<std::byte> once = p.rows;
  p.rows.assign(p.rows.size(), std::byte{0x11});
  pack_rows(p.view, 0, 2, p.rows.data());
  EXPECT_EQ(once, p.rows);
}

std::vector<DType> types() {
  std::vector<DType> all;
  for (const DTypeInfo& t : all_dtypes()) all.push_back(t.type);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Formats, testing::ValuesIn(types()),
                         [](const auto& i) { return std::string(name(i.param)); });

// The wide form of IQ3_S: every weight and every bit of a group's scale, up to the power of two between them; whole and
// by quarters, as tensor cores take them.
TEST(Formats, TheWideFormHasTheFilesWeights) {
  constexpr uint32_t kWidth = 1536, kRows = 9, G = kWidth / kGroup;
  const Packed p = make(DType::IQ3_S, kWidth, kRows);
  const uint32_t bytes = packed_row_bytes(DType::IQ3_S, kWidth, PackForm::wide);
  EXPECT_EQ(bytes, 48 * 16 + 6 * 2 + 24 + 12u);  // codes, d of six blocks, scale nibbles, and up to 16
  ASSERT_EQ(packed_bytes(p.view, PackForm::wide), uint64_t{kRows} * bytes);
  std::vector<std::byte> rows(kRows * bytes, std::byte{0xEE});
  pack_rows(p.view, 0, kRows, rows.data(), PackForm::wide);
  const Weight wide = packed_weight(p.view, rows.data(), nullptr, PackForm::wide);
  EXPECT_EQ(wide.type, kIq3Wide);
  EXPECT_EQ(wide.row_bytes, bytes);
  std::vector<float> expected(kWidth);
  for (uint32_t r = 0; r < kRows; ++r) {
    dequantize_row(DType::IQ3_S, p.view.row(r), expected.data(), kWidth);
    for (uint32_t g = 0; g < G; ++g) {
      Group group, compact;
      unpack_any(wide.type, wide.row(0, r), G, g, nullptr, group);
      unpack_any(DType::IQ3_S, p.weight.row(0, r), G, g, &kIqGrids, compact);
      EXPECT_EQ(group.scale[0] * 8, compact.scale[0]);
      for (int e = 0; e < kGroup; ++e) {
        const auto q = static_cast<int8_t>(group.q[e / 4] >> (8 * (e % 4)));
        ASSERT_EQ(group.scale[e / 16] * static_cast<float>(q), expected[g * kGroup + e])
            << "row " << r << " group " << g << " element " << e;
      }
      const auto pair = format::IQ3_S_wide::load_pair(wide.row(0, r), G, g / 2);
      Group half;
      format::IQ3_S_wide::unpack(pair.of[g % 2], CodeBooks{}, half);
      EXPECT_EQ(std::memcmp(half.q, group.q, sizeof(half.q)), 0);
      EXPECT_EQ(half.scale[0], group.scale[0]);
      for (uint32_t q = 0; q < 4; ++q) {
        Group quarters[2];
        format::IQ3_S_wide::load_quarters(SharedRow{wide.row(0, r)}, G, g / 2, q, quarters);
        EXPECT_EQ(quarters[g % 2].q[0], group.q[q]);
        EXPECT_EQ(quarters[g % 2].q[1], group.q[q + 4]);
        EXPECT_EQ(quarters[g % 2].scale[0], group.scale[0]);
      }
    }
  }
}

TEST(Formats, CopiesOfTheCodeBookGiveTheSame) {
  const Packed p = make(DType::IQ3_S, 512, 1);
  std::vector<uint32_t> copies(512 * kIq3Copies);
  for (size_t i = 0; i < copies.size(); ++i) std::memcpy(&copies[i], kIqGrids.iq3_s[i / kIq3Copies], 4);
  for (uint32_t copy = 0; copy < kIq3Copies; ++copy) {
    for (uint32_t g = 0; g < 16; ++g) {
      Group a, b;
      format::IQ3_S::unpack(format::IQ3_S::load(p.weight.row(0, 0), 16, g),
                            {nullptr, reinterpret_cast<const uint8_t*>(copies.data()), 4u * copy}, a);
      unpack_any(DType::IQ3_S, p.weight.row(0, 0), 16, g, &kIqGrids, b);
      EXPECT_EQ(std::memcmp(a.q, b.q, sizeof(a.q)), 0);
      EXPECT_EQ(a.scale[0], b.scale[0]);
    }
  }
}

}  // namespace
}  // namespace chimere::cuda
