// Golden vectors (tests/golden/quant) for every block type, and the properties that need no golden file.
#include "tensor/dequantize.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/quant_blocks.h"
#include "tensor/random_blocks.h"

namespace chimere {
namespace {

// Empty when the file is missing.
std::vector<char> read_golden(const std::string& file) {
  std::ifstream in(std::string(CHIMERE_TESTS_DIR) + "/golden/quant/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool is_trivial(DType type) {
  switch (type) {
    case DType::F32:
    case DType::F64:
    case DType::I8:
    case DType::I16:
    case DType::I32:
    case DType::I64: return true;
    default: return false;
  }
}

class Golden : public testing::TestWithParam<DTypeInfo> {};

TEST_P(Golden, DecodesToTheExpectedValues) {
  const DTypeInfo type = GetParam();
  const std::vector<char> blocks = read_golden(std::string(type.name) + ".blocks");
  const std::vector<char> raw = read_golden(std::string(type.name) + ".f32");
  ASSERT_FALSE(blocks.empty()) << "no golden file for " << type.name;
  const size_t prefix = static_cast<size_t>(type.row_prefix_bytes), n_bytes = blocks.size() - prefix;
  ASSERT_EQ(n_bytes % static_cast<size_t>(type.block_bytes), 0u);
  const size_t elems = n_bytes / static_cast<size_t>(type.block_bytes) * static_cast<size_t>(type.block_elems);
  ASSERT_EQ(raw.size(), elems * sizeof(float));
  std::vector<float> expected(elems);
  std::memcpy(expected.data(), raw.data(), raw.size());

  // Every alignment of the source must do.
  for (size_t offset = 0; offset < 4; ++offset) {
    std::vector<std::byte> shifted(blocks.size() + offset);
    std::memcpy(shifted.data() + offset, blocks.data(), blocks.size());
    std::vector<float> found(elems);
    dequantize_row(type.type, shifted.data() + offset, found.data(), static_cast<int64_t>(elems));
    for (size_t i = 0; i < elems; ++i) {
      ASSERT_LE(std::fabs(found[i] - expected[i]), 1e-6f * std::fabs(expected[i]))
          << type.name << " element " << i << ": expected " << expected[i] << ", found " << found[i];
    }
  }
}

std::vector<DTypeInfo> golden_types() {
  std::vector<DTypeInfo> out;
  for (const DTypeInfo& t : all_dtypes()) {
    if (!is_trivial(t.type)) out.push_back(t);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Golden, testing::ValuesIn(golden_types()),
                         [](const auto& param) { return std::string(param.param.name); });

template <class T>
std::vector<float> decode_plain(DType type, const std::vector<T>& values) {
  std::vector<float> out(values.size());
  dequantize_row(type, reinterpret_cast<const std::byte*>(values.data()), out.data(),
                 static_cast<int64_t>(values.size()));
  return out;
}

TEST(Dequantize, PlainTypesConvert) {
  EXPECT_EQ(decode_plain<float>(DType::F32, {1.5f, -0x1p-140f}), (std::vector<float>{1.5f, -0x1p-140f}));
  EXPECT_EQ(decode_plain<double>(DType::F64, {0.1, -3.0}), (std::vector<float>{0.1f, -3.0f}));
  EXPECT_EQ(decode_plain<int8_t>(DType::I8, {-128, 127}), (std::vector<float>{-128, 127}));
  EXPECT_EQ(decode_plain<int16_t>(DType::I16, {-32768, 32767}), (std::vector<float>{-32768, 32767}));
  EXPECT_EQ(decode_plain<int32_t>(DType::I32, {-5, 1 << 30}), (std::vector<float>{-5, 0x1p30f}));
  EXPECT_EQ(decode_plain<int64_t>(DType::I64, {-7, int64_t{1} << 40}), (std::vector<float>{-7, 0x1p40f}));
}

TEST(Dequantize, ScalesOfTheFourBitFloats) {
  for (int e = 0; e < 256; ++e) {
    EXPECT_EQ(mxfp4_scale(static_cast<uint8_t>(e)), std::ldexp(1.0f, e - 128)) << e;
  }
  EXPECT_EQ(nvfp4_scale(0), 0.0f);
  EXPECT_EQ(nvfp4_scale(1), 0x1p-10f);
  EXPECT_EQ(nvfp4_scale(7), 7 * 0x1p-10f);
  EXPECT_EQ(nvfp4_scale(8), 0x1p-7f);
  EXPECT_EQ(nvfp4_scale(0x38), 0.5f);
  EXPECT_EQ(nvfp4_scale(0xB8), 0.5f) << "the sign bit is stripped";
  EXPECT_EQ(nvfp4_scale(0x7E), 224.0f);
  EXPECT_EQ(nvfp4_scale(0x7F), 0.0f);
  EXPECT_EQ(nvfp4_scale(0xFF), 0.0f);
}

TEST(Dequantize, ExpandedSignsHaveEvenParity) {
  for (uint32_t code = 0; code < 128; ++code) {
    const uint8_t signs = expand_signs(code);
    EXPECT_EQ(signs & 127u, code);
    EXPECT_EQ(std::popcount(signs) % 2, 0);
  }
}

// A row is its blocks, one after the other, each on its own.
TEST(Dequantize, BlocksAreIndependent) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.row_prefix_bytes) continue;  // whose blocks have part of their scale there
    constexpr int kBlocks = 3;
    std::vector<std::byte> row(static_cast<size_t>(kBlocks * type.block_bytes));
    random_blocks(type.type, row.data(), kBlocks, 11, 1.0f);
    std::vector<float> whole(static_cast<size_t>(kBlocks * type.block_elems)), parts(whole.size());
    dequantize_row(type.type, row.data(), whole.data(), kBlocks * type.block_elems);
    for (int k = 0; k < kBlocks; ++k) {
      dequantize_row(type.type, row.data() + k * type.block_bytes, parts.data() + k * type.block_elems,
                     type.block_elems);
    }
    EXPECT_EQ(whole, parts) << type.name;
  }
}

template <class Block>
void expect_geometry(DType type) {
  EXPECT_EQ(static_cast<int>(sizeof(Block)), info(type).block_bytes) << name(type);
  EXPECT_EQ(Block::kElems, info(type).block_elems) << name(type);
  EXPECT_EQ(alignof(Block), 1u) << name(type);
}

TEST(QuantBlocks, StructsAgreeWithTheTypeTable) {
  expect_geometry<BlockQ4_0>(DType::Q4_0);
  expect_geometry<BlockQ4_1>(DType::Q4_1);
  expect_geometry<BlockQ5_0>(DType::Q5_0);
  expect_geometry<BlockQ5_1>(DType::Q5_1);
  expect_geometry<BlockQ8_0>(DType::Q8_0);
  expect_geometry<BlockIQ4_NL>(DType::IQ4_NL);
  expect_geometry<BlockMXFP4>(DType::MXFP4);
  expect_geometry<BlockNVFP4>(DType::NVFP4);
  expect_geometry<BlockQ1_0>(DType::Q1_0);
  expect_geometry<BlockQ2_0>(DType::Q2_0);
  expect_geometry<BlockQ2_K>(DType::Q2_K);
  expect_geometry<BlockQ3_K>(DType::Q3_K);
  expect_geometry<BlockQ4_K>(DType::Q4_K);
  expect_geometry<BlockQ5_K>(DType::Q5_K);
  expect_geometry<BlockQ6_K>(DType::Q6_K);
  expect_geometry<BlockTQ1_0>(DType::TQ1_0);
  expect_geometry<BlockTQ2_0>(DType::TQ2_0);
  expect_geometry<BlockIQ4_XS>(DType::IQ4_XS);
  expect_geometry<BlockIQ2_XXS>(DType::IQ2_XXS);
  expect_geometry<BlockIQ2_XS>(DType::IQ2_XS);
  expect_geometry<BlockIQ2_S>(DType::IQ2_S);
  expect_geometry<BlockIQ3_XXS>(DType::IQ3_XXS);
  expect_geometry<BlockIQ3_S>(DType::IQ3_S);
  expect_geometry<BlockIQ1_S>(DType::IQ1_S);
  expect_geometry<BlockIQ1_M>(DType::IQ1_M);
  expect_geometry<BlockIQ2_K>(DType::IQ2_K);
  expect_geometry<BlockIQ3_K>(DType::IQ3_K);
  expect_geometry<BlockIQ4_K>(DType::IQ4_K);
  expect_geometry<BlockIQ5_K>(DType::IQ5_K);
  expect_geometry<BlockIQ6_K>(DType::IQ6_K);
  expect_geometry<BlockIQ4_KS>(DType::IQ4_KS);
}

}  // namespace
}  // namespace chimere
