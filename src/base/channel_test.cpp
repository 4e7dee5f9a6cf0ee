#include "base/channel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "base/job_threads.h"

namespace chimere {
namespace {

TEST(Channel, GivesValuesInOrderAndTellsTheReader) {
  int n_notified = 0;
  Channel<int> channel([&] { ++n_notified; });
  EXPECT_FALSE(channel.take());
  EXPECT_TRUE(channel.put(1));
  EXPECT_TRUE(channel.put(2));
  EXPECT_EQ(channel.take(), 1);
  EXPECT_EQ(channel.wait(), 2);
  EXPECT_FALSE(channel.take());
  channel.ring();
  EXPECT_EQ(n_notified, 3);
}

TEST(Channel, ACancelledReaderIsStillAnswered) {
  Channel<int> channel;
  channel.cancel();
  EXPECT_TRUE(channel.is_cancelled());
  EXPECT_FALSE(channel.put(1)) << "the writer learns of it";
  EXPECT_EQ(channel.take(), 1);
}

TEST(Channel, WhatComesBehindCloseIsDropped) {
  Channel<std::shared_ptr<int>> channel;
  auto early = std::make_shared<int>(1), late = std::make_shared<int>(2);
  channel.put(early);
  const auto unread = channel.close();
  ASSERT_EQ(unread.size(), 1u);
  EXPECT_EQ(unread.front(), early);
  EXPECT_FALSE(channel.put(late));
  EXPECT_EQ(late.use_count(), 1);
  EXPECT_FALSE(channel.take());
  EXPECT_FALSE(channel.next()) << "and nobody waits for more";
}

TEST(Channel, ARingOfThePastEndsTheNextWait) {
  constexpr std::chrono::hours kNever{1};
  Channel<int> channel;
  channel.ring();
  channel.wait_for(kNever);
  std::thread ringer([&] { channel.ring(); });
  channel.wait_for(kNever);
  ringer.join();
  channel.put(1);
  channel.wait_for(kNever);
  channel.wait_for(std::chrono::milliseconds(1));  // nobody rings: it ends all the same
}

TEST(Channel, WritersAndReadersOnManyThreads) {
  constexpr int kWriters = 4, kValues = 2000;
  Channel<int> channel;
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> readers, writers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (const auto value = channel.next()) sum += *value;
    });
  }
  std::atomic<int> n_left{kWriters};
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      for (int v = 0; v < kValues; ++v) EXPECT_TRUE(channel.put(i * kValues + v));
      --n_left;
    });
  }
  for (std::thread& t : writers) t.join();
  EXPECT_EQ(n_left, 0);
  int64_t rest = 0;
  for (const int value : channel.close()) rest += value;
  for (std::thread& t : readers) t.join();
  const int64_t n = kWriters * kValues;
  EXPECT_EQ(sum + rest, n * (n - 1) / 2) << "each value once";
}

TEST(JobThreads, DoJobsInOrderAndDropWhatHasNotBegun) {
  std::vector<int> order;
  std::promise<void> begun;
  auto dropped = std::make_shared<int>(0);
  {
    // It holds `dropped` from here on: the job before it must not see it as already gone.
    JobThreads::Job never_begun = [dropped] { ++*dropped; };
    JobThreads threads(1);
    for (int i = 0; i < 3; ++i) threads.post([&order, i] { order.push_back(i); });
    threads.post([&] {
      begun.set_value();
      while (dropped.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    threads.post(std::move(never_begun));
    begun.get_future().wait();
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(*dropped, 0);
}

}  // namespace
}  // namespace chimere
