// state_memory_test.cpp  Blocks of state: zeroed, apart from each other, booked by purpose, and given back under need.
#include "backend/cuda/runtime/state_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "backend/cuda/runtime/device.h"
#include "backend/cuda/units_for_test.h"
#include "base/check.h"

namespace chimere::cuda {
namespace {

struct StateMemoryTest : testing::Test {
  Stream stream = [] {
    auto s = Stream::create();
    CHECK(s);
    return std::move(*s);
  }();
  Ledger ledger{64 * kMiB};
  DeviceStateMemory memory{ledger, stream, kMiB};
};

TEST_F(StateMemoryTest, BlocksAreZeroAndKeepWhatIsWritten) {
  std::mt19937 rng(3);
  struct Held {
    std::byte* block;
    uint64_t bytes;
    std::byte mark;
  };
  std::vector<Held> held;
  std::vector<std::byte> host(kMiB);
  for (int i = 0; i < 400; i++) {
    if (rng() % 2 && !held.empty()) {
      const size_t victim = rng() % held.size();
      const Held h = held[victim];
      memory.read(host.data(), h.block, h.bytes);
      for (uint64_t j = 0; j < h.bytes; j++) ASSERT_EQ(host[j], h.mark);
      memory.release(h.block, h.bytes);
      held.erase(held.begin() + static_cast<long>(victim));
      continue;
    }
    const uint64_t bytes = std::vector<uint64_t>{kMiB, 1000, 70000}[rng() % 3];
    auto block = memory.allocate(bytes);
    if (!block) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*block) % 64, 0u);
    memory.read(host.data(), *block, bytes);
    for (uint64_t j = 0; j < bytes; j++) ASSERT_EQ(host[j], std::byte{0});
    const std::byte mark = static_cast<std::byte>(i % 255 + 1);
    std::memset(host.data(), static_cast<int>(mark), bytes);
    memory.write(*block, host.data(), bytes);
    held.push_back({*block, bytes, mark});
  }
  EXPECT_LE(ledger.peak_bytes(), ledger.budget_bytes());
  for (const Held& h : held) memory.release(h.block, h.bytes);
  memory.trim();
  EXPECT_EQ(ledger.used_bytes(), 0u);
  EXPECT_TRUE(memory.failure());
}

TEST_F(StateMemoryTest, CopiesInsideTheDevice) {
  auto a = memory.allocate(512), b = memory.allocate(512);
  ASSERT_TRUE(a && b);
  const uint64_t value = 42;
  uint64_t read = 0;
  memory.write(*a, reinterpret_cast<const std::byte*>(&value), 8);
  memory.copy(*b, *a, 512);
  memory.read(reinterpret_cast<std::byte*>(&read), *b, 8);
  EXPECT_EQ(read, 42u);
  memory.release(*a, 512);
  memory.release(*b, 512);
}

TEST_F(StateMemoryTest, UsesTheBudgetToTheLastBlock) {
  // Pages of 1 MiB: a slab of 32, then 32 more in one or several pieces; nothing is left then.
  std::vector<std::byte*> pages;
  while (auto page = memory.allocate(kMiB)) pages.push_back(*page);
  EXPECT_EQ(pages.size(), 64u);
  EXPECT_EQ(ledger.used_bytes(Purpose::kv), 64 * kMiB);
  EXPECT_EQ(ledger.used_bytes(Purpose::recurrent), 0u);
  auto refused = memory.allocate(kMiB);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_NE(refused.error().message.find("sequence state: device memory: "), std::string::npos);
  EXPECT_NE(refused.error().message.find("kv 64.00 MiB"), std::string::npos);

  // A state of another size fits once the pages are gone, though nobody trimmed.
  for (std::byte* page : pages) memory.release(page, kMiB);
  auto blob = memory.allocate(40 * kMiB);
  ASSERT_TRUE(blob);
  EXPECT_EQ(ledger.used_bytes(Purpose::recurrent), 40 * kMiB);
  memory.release(*blob, 40 * kMiB);
}

TEST_F(StateMemoryTest, APageCostsNoNewAllocation) {
  auto first = memory.allocate(kMiB);
  ASSERT_TRUE(first);
  const uint64_t used = ledger.used_bytes();
  auto second = memory.allocate(kMiB);
  ASSERT_TRUE(second);
  EXPECT_EQ(ledger.used_bytes(), used);
  memory.release(*first, kMiB);
  memory.release(*second, kMiB);
  EXPECT_EQ(ledger.used_bytes(), used);
}

TEST_F(StateMemoryTest, TellsWhatIsLeft) {
  EXPECT_EQ(memory.free_bytes(), 64 * kMiB);
  auto page = memory.allocate(kMiB);
  ASSERT_TRUE(page);
  EXPECT_EQ(memory.free_bytes(), 63 * kMiB) << "the rest of its slab can be had";
  memory.release(*page, kMiB);
  EXPECT_EQ(memory.free_bytes(), 64 * kMiB);
}

// Other programs have taken what the budget counts on.
TEST_F(StateMemoryTest, ADeviceMayRefuseWhatTheBudgetHas) {
  refuse_device_beyond(4 * kMiB);
  std::vector<std::byte*> pages;
  auto page = memory.allocate(kMiB);
  for (; page; page = memory.allocate(kMiB)) pages.push_back(*page);
  EXPECT_EQ(page.error().code, Code::exhausted);
  EXPECT_EQ(pages.size(), 4u);
  memory.release(pages.back(), kMiB);
  EXPECT_TRUE(memory.allocate(kMiB)) << "what is given back can be had again";
  refuse_device_beyond(UINT64_MAX);
  page = memory.allocate(kMiB);
  ASSERT_TRUE(page);
  pages.push_back(*page);
  for (std::byte* one : pages) memory.release(one, kMiB);
}

}  // namespace
}  // namespace chimere::cuda
