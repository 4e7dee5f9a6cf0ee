// stream_test.cpp  Order of work: streams, events and graphs, with the emulator as lazy as a device may be.
#include "backend/cuda/runtime/stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "backend/cuda/runtime/event.h"
#include "backend/cuda/runtime/graph.h"
#include "backend/cuda/simt/simt.h"

namespace chimere::cuda {
namespace {

TEST(Stream, DoesNothingUntilSomebodyWaits) {
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  int a = 1, b = 2;
  ASSERT_TRUE(stream->copy(&b, &a, sizeof a));
  EXPECT_EQ(b, 2);
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(b, 1);
  ASSERT_TRUE(stream->zero(&b, sizeof b));
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(b, 0);
}

TEST(Stream, EventsMarkAPointInTheWork) {
  auto stream = Stream::create();
  auto other = Stream::create();
  auto event = Event::create();
  ASSERT_TRUE(stream && other && event);
  ASSERT_TRUE(event->synchronize());  // never recorded: nothing to wait for
  int order = 0, first = 0, second = 0, third = 0;
  stream->submit([&] { first = ++order; });
  ASSERT_TRUE(event->record(*stream));
  stream->submit([&] { third = ++order; });
  ASSERT_TRUE(event->hold(*other));
  other->submit([&] { second = ++order; });
  ASSERT_TRUE(other->synchronize());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_EQ(third, 0);
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(third, 3);
}

TEST(Graph, KeepsWorkAndArgumentsForLater) {
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  int from = 1, by_memory = 0, runs = 0;
  auto graph = Graph::capture(*stream, [&]() -> Status {
    TRY(stream->copy(&by_memory, &from, sizeof from));
    stream->submit([&runs] { runs++; });
    return Ok{};
  });
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->n_nodes(), 2);
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(runs, 0);  // writing down is not running
  for (int step = 1; step <= 3; step++) {
    from = 10 * step;
    ASSERT_TRUE(graph->launch(*stream));
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(runs, step);
    EXPECT_EQ(by_memory, 10 * step);
  }
}

__global__ void add_kernel(int* sum, int by_value, const int* by_memory) {
  simt::wait_for_previous();
  if (threadIdx.x == 0) *sum += by_value + *by_memory;
}

TEST(Graph, KernelArgumentsAreThoseOfTheCapture) {
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  int sum = 0, by_value = 1, by_memory = 10;
  auto graph = Graph::capture(*stream, [&] {
    return simt::launch(add_kernel, {1, 32, 0, *stream, true}, &sum, by_value, &by_memory);
  });
  ASSERT_TRUE(graph);
  by_value = 2;
  by_memory = 20;
  ASSERT_TRUE(graph->launch(*stream));
  EXPECT_EQ(sum, 0);
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(sum, 21);
}

TEST(Graph, AFailedRecordingLeavesTheStreamUsable) {
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  int runs = 0;
  auto graph = Graph::capture(*stream, [&]() -> Status {
    stream->submit([&runs] { runs++; });
    return Error{Code::unsupported, "no such kernel"};
  });
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message, "no such kernel");
  stream->submit([&runs] { runs += 10; });
  ASSERT_TRUE(stream->synchronize());
  EXPECT_EQ(runs, 10);
}

}  // namespace
}  // namespace chimere::cuda
