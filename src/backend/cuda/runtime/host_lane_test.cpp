// host_lane_test.cpp  The host's work sees what the stream did before it rang, and what waits for it sees the work.
#include "backend/cuda/simt/simt.h"

#include "backend/cuda/runtime/host_lane.h"

#include <gtest/gtest.h>

#include <vector>

#include "backend/cuda/runtime/graph.h"

namespace chimere::cuda {
namespace {

constexpr int kBlocks = 3;

// before -> (work on the host) -> after, and beside meanwhile.
struct Numbers {
  int source = 1, beside = 0;
  int before[kBlocks] = {}, work[kBlocks] = {}, after[kBlocks] = {};
};

__global__ void ringing_kernel(HostBell bell, Numbers* n) {
  const int b = static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) {
    n->before[b] = n->source + b;
    bell.done[b] = 0;
  }
  __syncthreads();
  if (threadIdx.x == 0) simt::store_for_host(&bell.rung[b], bell.message);
}

__global__ void hearing_kernel(HostBell bell, Numbers* n) {
  const int b = static_cast<int>(blockIdx.x);
  if (threadIdx.x > 0) return;
  while (simt::load_of_host(&bell.done[b]) == 0) simt::pause(0);
  n->after[b] = n->work[b];
}

// The lane multiplies by ten times its task.
HostLane::Work multiply(Numbers& n) {
  return [&n](int task, int n_blocks) {
    for (int b = 0; b < n_blocks; ++b) n.work[b] = 10 * task * n.before[b];
  };
}

Status give(const Stream& stream, HostLane& lane, Numbers& n, int task) {
  const HostBell bell = lane.bell(task, kBlocks);
  TRY(simt::launch(ringing_kernel, {dim3(kBlocks), dim3(32), 0, stream, false}, bell, &n));
  TRY(stream.copy(&n.beside, &n.source, sizeof(int)));
  lane.join(stream);
  return simt::launch(hearing_kernel, {dim3(kBlocks), dim3(32), 0, stream, false}, bell, &n);
}

TEST(HostLane, StandsInTheOrderOfItsStream) {
  auto stream = Stream::create();
  Numbers n;
  auto lane = HostLane::create(kBlocks + 1, multiply(n));
  ASSERT_TRUE(stream && lane);
  const HostLane::Attention attention(lane->get());
  for (const int task : {1, 40}) {
    ASSERT_TRUE(give(*stream, **lane, n, task));
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(n.beside, 1);
    for (int b = 0; b < kBlocks; ++b) EXPECT_EQ(n.after[b], 10 * task * (1 + b));
  }
}

TEST(HostLane, RunsAgainWithEveryLaunchOfAGraph) {
  auto stream = Stream::create();
  Numbers n;
  auto lane = HostLane::create(kBlocks, multiply(n));
  ASSERT_TRUE(stream && lane);
  const HostLane::Attention attention(lane->get());
  const auto graph = Graph::capture(*stream, [&]() -> Status {
    TRY(give(*stream, **lane, n, 2));
    return give(*stream, **lane, n, 3);
  });
  ASSERT_TRUE(graph);
  EXPECT_EQ(n.work[0], 0);
  for (const int source : {2, 3}) {
    n.source = source;
    ASSERT_TRUE(graph->launch(*stream));
    ASSERT_TRUE(stream->synchronize());
    for (int b = 0; b < kBlocks; ++b) EXPECT_EQ(n.after[b], 30 * (source + b));
  }
}

}  // namespace
}  // namespace chimere::cuda
