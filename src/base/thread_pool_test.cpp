#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

namespace chimere {
namespace {

TEST(ThreadPool, EveryItemIsDoneOnceInEveryPhase) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int region = 0; region < 20; ++region) {
      std::vector<int> hits(1000, 0);
      pool.run([&](Team& team) {
        for (int phase = 0; phase < 200; ++phase) {
          team.parallel_for(1000, 7, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) ++hits[i];
          });
        }
      });
      for (int h : hits) ASSERT_EQ(h, 200);
    }
  }
}

TEST(ThreadPool, WritesBeforeABarrierAreSeenAfterIt) {
  ThreadPool pool(4);
  std::vector<int64_t> slots(4, 0);
  std::vector<int64_t> sums(4, 0);
  pool.run([&](Team& team) {
    for (int64_t round = 1; round <= 500; ++round) {
      slots[team.rank()] = round;
      team.sync();
      sums[team.rank()] += std::accumulate(slots.begin(), slots.end(), int64_t{0});
      team.sync();
    }
  });
  for (int64_t s : sums) EXPECT_EQ(s, 4 * 500 * 501 / 2);
}

TEST(ThreadPool, SplitWithoutBarrierCoversAllItems) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> hits(100);
  pool.run([&](Team& team) {
    for (int phase = 0; phase < 20; ++phase) {
      team.split(100, 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) hits[i].fetch_add(1);
      });
    }
    team.sync();
  });
  for (auto& h : hits) EXPECT_EQ(h.load(), 20);
}

}  // namespace
}  // namespace chimere
