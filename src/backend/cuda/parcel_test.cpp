#include "backend/cuda/parcel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backend/cuda/runtime/graph.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {
namespace {

void write(Parcel& parcel, uint64_t bytes, int seed) {
  ASSERT_TRUE(parcel.resize(bytes));
  for (uint64_t i = 0; i < bytes; ++i)
    parcel.host()[i] = static_cast<std::byte>((i * 7 + static_cast<uint64_t>(seed)) % 251);
}

void expect_arrived(const Parcel& parcel, uint64_t bytes) {
  EXPECT_TRUE(std::equal(parcel.host(), parcel.host() + bytes, parcel.device())) << bytes << " bytes";
}

// One graph brings parcels of every size: what it fetches, and what is sent before it.
TEST(Parcel, OneGraphFetchesAnyNumberOfBytes) {
  simt::for_both_schedules([] {
    Ledger ledger(uint64_t{1} << 30);
    auto stream = Stream::create();
    auto first = Parcel::create(ledger, 3 * Parcel::kMostFetched), second = Parcel::create(ledger, 1 << 16);
    ASSERT_TRUE(stream && first && second);
    const std::array<Fetch, 2> both{first->fetch(), second->fetch()};
    auto graph = Graph::capture(*stream, [&] { return fetch(*stream, both); });
    ASSERT_TRUE(graph);
    int seed = 0;
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{16}, uint64_t{4096}, uint64_t{4097}, uint64_t{40000},
                                 Parcel::kMostFetched, Parcel::kMostFetched + 1, uint64_t{17}}) {
      write(*first, bytes, seed++);
      write(*second, 100, seed++);
      ASSERT_TRUE(first->offer(*stream) && second->offer(*stream));
      ASSERT_TRUE(graph->launch(*stream) && stream->synchronize());
      expect_arrived(*first, bytes);
      expect_arrived(*second, 100);
    }
    EXPECT_EQ(first->n_moves(), 1u);
  });
}

TEST(Parcel, FetchesNoMoreThanIsInIt) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  auto parcel = Parcel::create(ledger, 1);
  ASSERT_TRUE(stream && parcel);
  const std::vector<std::byte> before(parcel->device() + 32, parcel->device() + parcel->capacity());
  write(*parcel, 20, 1);
  const Fetch one = parcel->fetch();
  ASSERT_TRUE(parcel->offer(*stream) && fetch(*stream, {&one, 1}) && stream->synchronize());
  expect_arrived(*parcel, 20);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), parcel->device() + 32));
}

TEST(Parcel, MovesWhenItGrows) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  auto parcel = Parcel::create(ledger, 100);
  ASSERT_TRUE(stream && parcel);
  const uint64_t bytes = parcel->capacity() + 1;
  write(*parcel, bytes, 5);
  EXPECT_EQ(parcel->n_moves(), 2u);
  ASSERT_TRUE(parcel->send(*stream) && stream->synchronize());
  expect_arrived(*parcel, bytes);
}

}  // namespace
}  // namespace chimere::cuda
