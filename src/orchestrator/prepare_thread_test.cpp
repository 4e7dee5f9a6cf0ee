// prepare_thread_test.cpp  Owners take turns, and nobody's many jobs keep another's out.
#include "orchestrator/prepare_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

namespace chimere::orchestrator {
namespace {

// The thread stands still until it is let go.
struct Held {
  explicit Held(PrepareThread& thread) {
    // The job may outlive this.
    const auto begun = std::make_shared<std::promise<void>>();
    thread.post([begun, wait = std::make_shared<std::future<void>>(go_on.get_future())](bool) {
      begun->set_value();
      wait->wait();
    });
    begun->get_future().wait();
  }
  std::promise<void> go_on;
};

TEST(PrepareThreadTest, OwnersTakeTurns) {
  PrepareThread thread(100);
  Held held(thread);
  std::vector<int> order;
  std::promise<void> last;
  for (int i = 0; i < 10; ++i) {
    thread.post([&order, i](bool) { order.push_back(i); }, 1);
  }
  thread.post([&](bool) { order.push_back(100); }, 2);
  thread.post([&](bool) { order.push_back(101); }, 2);
  thread.post(
      [&](bool) {
        order.push_back(10);
        last.set_value();
      },
      1);
  held.go_on.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 100, 1, 101, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(PrepareThreadTest, AFullQueueRefusesTheOneThatFilledIt) {
  int n_done = 0, n_dropped = 0;
  {
    PrepareThread thread(4);
    Held held(thread);
    auto job = [&](bool go_on) { ++(go_on ? n_done : n_dropped); };
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(thread.post(job, 1));
    EXPECT_FALSE(thread.post(job, 1));
    EXPECT_TRUE(thread.post(job, 2));
    EXPECT_TRUE(thread.post(job, 2));
    EXPECT_FALSE(thread.post(job, 2));
    EXPECT_TRUE(thread.post(job, 3));
    held.go_on.set_value();
  }
  EXPECT_EQ(n_done + n_dropped, 7) << "each is told";
}

}  // namespace
}  // namespace chimere::orchestrator
