// upload_test.cpp  Weights arrive whole through small staging buffers, though copies happen as late as they may.
#include "backend/cuda/runtime/upload.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace chimere::cuda {
namespace {

TEST(Uploader, BringsEveryByteInOrder) {
  Ledger ledger(1 << 20);
  std::vector<uint16_t> a(5000), b(77);
  std::iota(a.begin(), a.end(), uint16_t{1});
  std::iota(b.begin(), b.end(), uint16_t{9000});
  auto to_a = DeviceBuffer<uint16_t>::create(ledger, Purpose::weights, a.size());
  auto to_b = DeviceBuffer<uint16_t>::create(ledger, Purpose::weights, b.size());
  ASSERT_TRUE(to_a && to_b);

  std::vector<uint64_t> told;
  auto uploader = Uploader::create(
      20000,
      [&](uint64_t done, uint64_t total) {
        EXPECT_EQ(total, 20000u);
        told.push_back(done);
      },
      1024);
  ASSERT_TRUE(uploader);
  ASSERT_TRUE(uploader->upload(to_a->data(), a.data(), 10000));
  ASSERT_TRUE(uploader->upload(to_b->data(), b.data(), 154));
  uploader->skip(20000 - 10154);
  ASSERT_TRUE(uploader->finish());
  EXPECT_EQ(std::vector<uint16_t>(to_a->data(), to_a->data() + a.size()), a);
  EXPECT_EQ(std::vector<uint16_t>(to_b->data(), to_b->data() + b.size()), b);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.size(), 12u);
  EXPECT_EQ(told.back(), 20000u);
}

TEST(Uploader, FillsInWholeGranules) {
  Ledger ledger(1 << 20);
  auto to = DeviceBuffer<std::byte>::create(ledger, Purpose::weights, 1000);
  auto uploader = Uploader::create(1000, {}, 256);
  ASSERT_TRUE(to && uploader);
  uint64_t expected_offset = 0;
  ASSERT_TRUE(uploader->upload(to->data(), 1000, 100, [&](std::byte* piece, uint64_t offset, uint64_t bytes) {
    EXPECT_EQ(offset, expected_offset);
    EXPECT_EQ(bytes, 200u);
    expected_offset += bytes;
    for (uint64_t i = 0; i < bytes; i++) piece[i] = static_cast<std::byte>((offset + i) % 251);
  }));
  ASSERT_TRUE(uploader->finish());
  for (uint64_t i = 0; i < 1000; i++) ASSERT_EQ(to->data()[i], static_cast<std::byte>(i % 251));

  const Status refused = uploader->upload(to->data(), 1000, 257, [](std::byte*, uint64_t, uint64_t) {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unsupported);
}

}  // namespace
}  // namespace chimere::cuda
