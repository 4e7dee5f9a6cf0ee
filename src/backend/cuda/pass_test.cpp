#include "backend/cuda/pass.h"

#include <gtest/gtest.h>

#include <memory>

#include "backend/adapter.h"

namespace chimere::cuda {
namespace {

// Slices of the lengths given, at positions 100, 200, ..., with tokens 0, 1, 2, ...
Batch batch_of(const std::vector<int>& lengths, std::vector<int32_t> logit_rows) {
  Batch batch;
  for (int n : lengths) {
    Slice slice;
    slice.pos = 100 * static_cast<int32_t>(batch.slices.size() + 1);
    slice.n_tokens = n;
    slice.first_row = batch.n_rows();
    batch.slices.push_back(slice);
    for (int i = 0; i < n; ++i) batch.tokens.push_back(batch.n_rows());
  }
  batch.logit_rows = std::move(logit_rows);
  return batch;
}

TEST(SplitBatch, GathersClassesAndKeepsDecodePassesShort) {
  const Batch batch = batch_of({1, 20, 16, 16, 17}, {0, 5, 20, 21, 69});
  EXPECT_EQ(split_batch(batch, {32, 1}).size(), 4u);
  const std::vector<Pass> passes = split_batch(batch, {32, 2});
  ASSERT_EQ(passes.size(), 3u);
  EXPECT_TRUE(passes[0].is_decode && passes[1].is_decode && !passes[2].is_decode);
  EXPECT_EQ(passes[0].slices, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(passes[0].outputs, (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(passes[0].n_rows, 17);
  EXPECT_EQ(passes[1].slices, (std::vector<int32_t>{3}));
  EXPECT_EQ(passes[1].max_kv, 416);
  EXPECT_TRUE(passes[1].outputs.empty());
  EXPECT_EQ(passes[2].slices, (std::vector<int32_t>{1, 4}));
  EXPECT_EQ(passes[2].outputs, (std::vector<int32_t>{1, 2, 4}));
  EXPECT_EQ(passes[2].max_tokens, 20);
}

TEST(SplitBatch, PromptsWithAdaptersHavePassesOfTheirOwn) {
  Batch batch = batch_of({20, 1, 20, 1, 20}, {});
  const AdapterSet set{{{std::make_shared<Adapter>(), 1.0f}}}, empty{};
  batch.slices[0].adapters = &empty;
  batch.slices[2].adapters = batch.slices[3].adapters = &set;
  const std::vector<Pass> passes = split_batch(batch, {32, 4});
  ASSERT_EQ(passes.size(), 3u);
  EXPECT_EQ(passes[0].slices, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(passes[1].slices, (std::vector<int32_t>{0, 4}));
  EXPECT_EQ(passes[2].slices, (std::vector<int32_t>{2}));
  EXPECT_TRUE(passes[0].is_adapted && !passes[1].is_adapted && passes[2].is_adapted);
}

TEST(BatchStaging, NumbersTheRowsOfAPassAnew) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  auto staging = BatchStaging::create(ledger, 64, true);
  ASSERT_TRUE(stream && staging);
  Batch batch = batch_of({1, 20, 3}, {0, 20, 22, 23});
  std::vector<std::byte*> pages(8);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = reinterpret_cast<std::byte*>(uintptr_t{64} * (i + 1));
  for (Slice& slice : batch.slices) slice.state.kv_pages = pages.data();
  const std::vector<Pass> passes = split_batch(batch, {16, 1});
  ASSERT_EQ(passes.size(), 2u);

  auto view = staging->stage(batch, passes[0]);
  ASSERT_TRUE(view && staging->parcel().send(*stream) && stream->synchronize());
  ASSERT_EQ(view->n_rows, 4);
  ASSERT_EQ(view->n_slices, 2);
  ASSERT_EQ(view->n_logit_rows, 3);
  EXPECT_EQ(std::vector<int32_t>(view->tokens, view->tokens + 4), (std::vector<int32_t>{0, 21, 22, 23}));
  EXPECT_EQ(std::vector<int32_t>(view->row_slice, view->row_slice + 4), (std::vector<int32_t>{0, 1, 1, 1}));
  EXPECT_EQ(std::vector<int32_t>(view->row_pos, view->row_pos + 4), (std::vector<int32_t>{100, 300, 301, 302}));
  EXPECT_EQ(std::vector<int32_t>(view->logit_rows, view->logit_rows + 3), (std::vector<int32_t>{0, 2, 3}));
  EXPECT_EQ(view->slices[1].first_row, 1);
  EXPECT_EQ(view->slices[1].n_tokens, 3);
  EXPECT_EQ(view->slices[0].kv_pages[1], pages[1]);
  EXPECT_EQ(view->slices[1].kv_pages[4], pages[4]);
}

TEST(BatchStaging, MakesRoomForALongContext) {
  Ledger ledger(uint64_t{1} << 30);
  auto stream = Stream::create();
  auto staging = BatchStaging::create(ledger, 1, true);
  ASSERT_TRUE(stream && staging);
  Batch batch = batch_of({1}, {0});
  batch.slices[0].pos = 20000 * kPageTokens;
  std::vector<std::byte*> pages(20001);
  pages.back() = reinterpret_cast<std::byte*>(uintptr_t{64});
  batch.slices[0].state.kv_pages = pages.data();
  auto view = staging->stage(batch, split_batch(batch, {16, 1})[0]);
  ASSERT_TRUE(view && staging->parcel().send(*stream) && stream->synchronize());
  EXPECT_EQ(view->slices[0].kv_pages[20000], pages[20000]);
}

}  // namespace
}  // namespace chimere::cuda
