#include "backend/cuda/step_graphs.h"

#include <gtest/gtest.h>

namespace chimere::cuda {
namespace {

StepShape shape_of(int n_rows) {
  StepShape shape;
  shape.pass.batch.n_rows = n_rows;
  return shape;
}

// What a stream was given: how often the work ran, and how often it was written down anew.
struct Work {
  int n_run = 0, n_recorded = 0;

  std::function<Status()> on(const Stream& stream) {
    return [this, &stream]() -> Status {
      n_recorded++;
      stream.submit([this] { n_run++; });
      return Ok{};
    };
  }
};

TEST(StepGraphs, CapturesAShapeWhenItComesBack) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  StepGraphs graphs(ledger);
  Work work;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(graphs.launch(*stream, shape_of(1), work.on(*stream)));
    ASSERT_TRUE(stream->synchronize());
    EXPECT_EQ(work.n_run, i + 1);
  }
  EXPECT_EQ(work.n_recorded, 2);
  EXPECT_EQ(graphs.n_graphs(), 1u);
  EXPECT_EQ(graphs.n_launches(), 4u);
}

TEST(StepGraphs, WhatIsDrawnIsPartOfTheShape) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  StepGraphs graphs(ledger);
  Work work;
  StepShape without = shape_of(1), greedy = without, penalised = without;
  greedy.draws.n_rows = penalised.draws.n_rows = 1;
  penalised.draws.needs.edits = true;
  for (const StepShape& shape : {without, greedy, penalised, without, greedy, penalised, penalised}) {
    ASSERT_TRUE(graphs.launch(*stream, shape, work.on(*stream)));
  }
  EXPECT_EQ(work.n_recorded, 6);
  EXPECT_EQ(graphs.n_graphs(), 3u);
  graphs.clear();
  EXPECT_EQ(graphs.n_graphs(), 0u);
  ASSERT_TRUE(graphs.launch(*stream, greedy, work.on(*stream)));
  EXPECT_EQ(work.n_recorded, 7);
}

TEST(StepGraphs, ForgetsTheShapeUsedLongestAgo) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  StepGraphs graphs(ledger);
  Work work;
  const int most = static_cast<int>(StepGraphs::kMost);
  const auto twice = [&](int n_rows) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(graphs.launch(*stream, shape_of(n_rows), work.on(*stream)));
  };
  for (int n = 1; n <= most; ++n) twice(n);
  twice(1);
  twice(most + 1);
  EXPECT_EQ(graphs.n_graphs(), StepGraphs::kMost);
  const int before = work.n_recorded;
  twice(1);  // kept
  EXPECT_EQ(work.n_recorded, before);
  twice(2);  // gone
  EXPECT_EQ(work.n_recorded, before + 2);
}

}  // namespace
}  // namespace chimere::cuda
