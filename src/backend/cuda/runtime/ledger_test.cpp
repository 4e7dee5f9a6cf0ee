// ledger_test.cpp  The budget is never exceeded, whoever asks, and errors tell who holds what.
#include "backend/cuda/runtime/ledger.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "backend/cuda/runtime/buffer.h"
#include "backend/cuda/runtime/device.h"
#include "backend/cuda/units_for_test.h"

namespace chimere::cuda {
namespace {

TEST(Ledger, CountsWhatTheCardTakes) {
  EXPECT_EQ(Ledger::taken_bytes(1), 512u);
  EXPECT_EQ(Ledger::taken_bytes(512), 512u);
  EXPECT_EQ(Ledger::taken_bytes(kMiB - 1), kMiB);
  EXPECT_EQ(Ledger::taken_bytes(kMiB), 2 * kMiB);
  EXPECT_EQ(Ledger::taken_bytes(4 * kMiB + 1), 6 * kMiB);
  EXPECT_GE(Ledger::taken_bytes(~uint64_t{0}), ~uint64_t{0} - 2 * kMiB);

  Ledger ledger(100 * kMiB);
  {
    auto a = DeviceBuffer<float>::create(ledger, Purpose::weights, kMiB);
    auto b = DeviceBuffer<float>::create(ledger, Purpose::scratch, 100);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(ledger.used_bytes(Purpose::weights), 4 * kMiB);
    EXPECT_EQ(ledger.used_bytes(Purpose::scratch), 512u);
    EXPECT_EQ(ledger.used_bytes(), 4 * kMiB + 512);
    *b = std::move(*a);
    EXPECT_EQ(ledger.used_bytes(Purpose::scratch), 0u);
    EXPECT_EQ(ledger.free_bytes(), 96 * kMiB);
  }
  EXPECT_EQ(ledger.used_bytes(), 0u);
  EXPECT_EQ(ledger.peak_bytes(), 4 * kMiB + 512);
  EXPECT_EQ(ledger.peak_bytes(Purpose::scratch), 512u);
}

TEST(Ledger, RefusesWithTheListOfPurposes) {
  Ledger ledger(16 * kMiB);
  auto weights = DeviceBuffer<std::byte>::create(ledger, Purpose::weights, 10 * kMiB);
  ASSERT_TRUE(weights);
  ASSERT_TRUE(ledger.charge(Purpose::context, 3 * kMiB));
  auto kv = DeviceBuffer<std::byte>::create(ledger, Purpose::kv, 4 * kMiB);
  ASSERT_FALSE(kv);
  EXPECT_EQ(kv.error().code, Code::exhausted);
  EXPECT_EQ(kv.error().message,
            "device memory: 4.00 MiB for kv do not fit into the budget: weights 10.00 MiB, context 3.00 MiB; 13.00 MiB "
            "of 16.00 MiB");
  EXPECT_FALSE(ledger.charge(Purpose::graphs, 4 * kMiB));
  EXPECT_EQ(ledger.used_bytes(), 13 * kMiB);  // what was refused leaves no trace
  EXPECT_EQ(ledger.peak_bytes(Purpose::kv), 0u);
  EXPECT_FALSE(ledger.allocate(Purpose::kv, ~uint64_t{0}));
  ledger.discharge(Purpose::context, 3 * kMiB);
  EXPECT_TRUE(DeviceBuffer<std::byte>::create(ledger, Purpose::kv, 4 * kMiB));
}

TEST(Ledger, HoldsTheBudgetBetweenThreads) {
  Ledger ledger(64 << 10);
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; seed++) {
    threads.emplace_back([&, seed] {
      std::mt19937 rng(seed);
      std::vector<DeviceBuffer<std::byte>> held;
      for (int i = 0; i < 2000; i++) {
        if (rng() % 2 && !held.empty()) {
          held.erase(held.begin() + static_cast<long>(rng() % held.size()));
        } else if (auto b = DeviceBuffer<std::byte>::create(ledger, static_cast<Purpose>(rng() % 5), rng() % 9000)) {
          held.push_back(std::move(*b));
        } else {
          refused++;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ledger.used_bytes(), 0u);
  EXPECT_LE(ledger.peak_bytes(), ledger.budget_bytes());
  EXPECT_GT(refused.load(), 0);
}

TEST(Ledger, ArenaCutsOneAllocation) {
  Ledger ledger(kMiB);
  auto arena = DeviceArena::create(ledger, Purpose::weights, DeviceArena::padded(100) + DeviceArena::padded(256));
  ASSERT_TRUE(arena);
  float* a = arena->take_array<float>(25);
  std::byte* b = arena->take(256);
  EXPECT_EQ(arena->take(0), nullptr);
  EXPECT_EQ(b - reinterpret_cast<std::byte*>(a), 256);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 256, 0u);
  EXPECT_EQ(arena->used_bytes(), arena->size_bytes());
  EXPECT_EQ(ledger.used_bytes(Purpose::weights), 512u);
}

TEST(Device, TellsAboutItself) {
  auto info = probe_device();
  ASSERT_TRUE(info);
  EXPECT_GE(info->sm, 80);
  EXPECT_GT(info->memory_bytes, 0u);
  auto none = probe_device(99);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::not_found);
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(3 << 29), "1.50 GiB");
}

TEST(Ledger, SleepsAndWakesWithTheSameBytes) {
  Ledger ledger(100 * kMiB);
  const Stream stream;
  auto large = DeviceBuffer<uint32_t>::create(ledger, Purpose::weights, 9 * kMiB + 3);
  auto other = DeviceBuffer<std::byte>::create(ledger, Purpose::kv, 2 * kMiB);
  auto small = DeviceBuffer<uint32_t>::create(ledger, Purpose::scratch, 100);
  ASSERT_TRUE(large && other && small);
  std::vector<uint32_t> bytes(large->size());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint32_t>(i * 2654435761u);
  ASSERT_TRUE(large->write(stream, bytes));
  ASSERT_TRUE(small->write(stream, std::span(bytes).first(100)));
  const uint64_t used = ledger.used_bytes();
  const uint32_t* const address = large->data();
  for (int night = 0; night < 2; ++night) {
    const auto given = ledger.sleep(stream);
    ASSERT_TRUE(given) << given.error().message;
    EXPECT_EQ(*given, night == 0 ? 40 * kMiB : 38 * kMiB);  // pages of 2 MiB; the small one stays
    EXPECT_NE(large->data()[0], bytes[0]) << "what sleeps is elsewhere";
    if (night == 0) *other = {};  // what ends in its sleep does not come back
    ASSERT_TRUE(ledger.wake(stream));
    std::vector<uint32_t> again(bytes.size());
    ASSERT_TRUE(large->read(stream, again));
    EXPECT_EQ(again, bytes);
    EXPECT_EQ(large->data(), address);
    EXPECT_EQ(small->data()[99], bytes[99]);
  }
  EXPECT_EQ(ledger.used_bytes(), used - 2 * kMiB);
}

}  // namespace
}  // namespace chimere::cuda
