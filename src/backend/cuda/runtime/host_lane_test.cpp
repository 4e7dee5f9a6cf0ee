// host_lane_test.cpp  The host's work sees what the stream did before it, and what comes after join() sees the work.
#include "backend/cuda/runtime/host_lane.h"

#include <gtest/gtest.h>

#include "backend/cuda/runtime/graph.h"

namespace chimere::cuda {
namespace {

// before -> (work on the host) -> after, and beside meanwhile.
struct Numbers {
  int source = 1, before = 0, work = 0, beside = 0, after = 0;
};

Status give(const Stream& stream, HostLane& lane, Numbers& n) {
  TRY(stream.copy(&n.before, &n.source, sizeof(int)));
  TRY(lane.begin(
      stream,
      [](void* data) {
        auto& numbers = *static_cast<Numbers*>(data);
        numbers.work = 10 * numbers.before;
      },
      &n));
  TRY(stream.copy(&n.beside, &n.source, sizeof(int)));
  TRY(lane.join(stream));
  return stream.copy(&n.after, &n.work, sizeof(int));
}

TEST(HostLane, StandsInTheOrderOfItsStream) {
  auto stream = Stream::create();
  auto lane = HostLane::create();
  ASSERT_TRUE(stream && lane);
  Numbers n;
  ASSERT_TRUE(give(*stream, *lane, n));
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(n.beside, 1);
  EXPECT_EQ(n.after, 10);
}

TEST(HostLane, RunsAgainWithEveryLaunchOfAGraph) {
  auto stream = Stream::create();
  auto lane = HostLane::create();
  ASSERT_TRUE(stream && lane);
  Numbers n;
  const auto graph = Graph::capture(*stream, [&]() -> Status {
    TRY(give(*stream, *lane, n));
    return give(*stream, *lane, n);
  });
  ASSERT_TRUE(graph);
  EXPECT_EQ(n.work, 0);
  for (const int source : {2, 3}) {
    n.source = source;
    ASSERT_TRUE(graph->launch(*stream));
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(n.after, 10 * source);
  }
}

}  // namespace
}  // namespace chimere::cuda
