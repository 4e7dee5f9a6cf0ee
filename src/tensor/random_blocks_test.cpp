#include "tensor/random_blocks.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/dequantize.h"

namespace chimere {
namespace {

std::vector<std::byte> make(DType type, int64_t blocks, uint64_t seed, float stddev) {
  std::vector<std::byte> bytes(row_bytes(type, static_cast<uint64_t>(blocks * info(type).block_elems)));
  random_blocks(type, bytes.data(), blocks, seed, stddev);
  return bytes;
}

struct Moments {
  double mean;
  double deviation;
  bool finite;
};

Moments decode_moments(const DTypeInfo& type, const std::vector<std::byte>& bytes) {
  const size_t elems = bytes.size() / static_cast<size_t>(type.block_bytes) * static_cast<size_t>(type.block_elems);
  std::vector<float> y(elems);
  dequantize_row(type.type, bytes.data(), y.data(), static_cast<int64_t>(elems));
  double sum = 0, squares = 0;
  bool finite = true;
  for (const float v : y) {
    finite = finite && std::isfinite(v);
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const double n = static_cast<double>(elems);
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n)), finite};
}

bool is_integer(DType type) {
  return type == DType::I8 || type == DType::I16 || type == DType::I32 || type == DType::I64;
}

TEST(RandomBlocks, HaveTheDeviationAskedFor) {
  for (const DTypeInfo& type : all_dtypes()) {
    for (const float stddev : {0.02f, 1.0f, 20.0f}) {
      if (is_integer(type.type) && stddev < 20.0f) continue;  // would round to 0
      const Moments m = decode_moments(type, make(type.type, 65536 / type.block_elems, 5, stddev));
      EXPECT_TRUE(m.finite) << type.name << " at " << stddev;
      EXPECT_GT(m.deviation, stddev * 0.8) << type.name;
      EXPECT_LT(m.deviation, stddev * 1.25) << type.name;
      EXPECT_LT(std::fabs(m.mean), stddev * 0.6) << type.name;
    }
  }
}

TEST(RandomBlocks, StayFiniteAtAnyDeviation) {
  for (const DTypeInfo& type : all_dtypes()) {
    for (const float stddev : {1e-30f, 1e-6f, 1e5f, 1e15f}) {
      EXPECT_TRUE(decode_moments(type, make(type.type, 64, 6, stddev)).finite) << type.name << " at " << stddev;
    }
  }
}

TEST(RandomBlocks, FollowTheSeed) {
  for (const DTypeInfo& type : all_dtypes()) {
    const std::vector<std::byte> a = make(type.type, 64, 7, 20.0f);
    EXPECT_EQ(a, make(type.type, 64, 7, 20.0f)) << type.name;
    EXPECT_NE(a, make(type.type, 64, 8, 20.0f)) << type.name;
  }
}

// Past the pool the blocks repeat, but still in whole blocks: every one of them decodes to the same statistics.
TEST(RandomBlocks, LargeTensorsAreFilledToTheEnd) {
  for (const DType t : {DType::Q6_K, DType::IQ3_S, DType::MXFP4}) {
    const DTypeInfo& type = info(t);
    const int64_t blocks = (10 << 20) / type.block_bytes + 1;
    const std::vector<std::byte> all = make(t, blocks, 9, 0.02f);
    const std::vector<std::byte> tail(all.end() - 2000 * type.block_bytes, all.end());
    const Moments m = decode_moments(type, tail);
    EXPECT_TRUE(m.finite);
    EXPECT_NEAR(m.deviation, 0.02, 0.004) << type.name;
  }
}

}  // namespace
}  // namespace chimere
