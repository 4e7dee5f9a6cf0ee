#include "backend/cuda/adapters.h"

#include <gtest/gtest.h>
#include "backend/cuda/units_for_test.h"

namespace chimere::cuda {
namespace {

constexpr PassLimits kLimits{16, 4};

Program two_matrices() {
  Program program;
  for (const Shape& shape : {Shape{8, 4, 1, 1}, Shape{4, 6, 1, 1}}) {
    TensorView matrix;
    matrix.ne = shape;
    program.matrices.push_back(matrix);
  }
  return program;
}

// Changes the first or the second matrix.
Adapter adapter(int matrix, int rank) {
  Adapter made;
  made.by_matrix.resize(2);
  const size_t in = matrix == 0 ? 8 : 4, out = matrix == 0 ? 4 : 6;
  made.by_matrix[matrix] = {rank, std::vector<float>(rank * in, 1.0f), std::vector<float>(rank * out, 2.0f)};
  return made;
}

std::shared_ptr<const Adapter> held_adapter(AdapterMemory& memory, int matrix, int rank) {
  auto made = std::make_shared<Adapter>(adapter(matrix, rank));
  auto held = memory.hold(*made);
  EXPECT_TRUE(held) << held.error().message;
  made->held = std::move(*held);
  return made;
}

TEST(AdapterMemory, AccountsForWhatItHolds) {
  Ledger ledger(64 * kMiB);
  const Program program = two_matrices();
  {
    AdapterMemory memory(ledger, program, 64, kLimits);
    EXPECT_EQ(ledger.used_bytes(), 0u) << "without adapters nothing is taken";
    auto first = held_adapter(memory, 0, 3);
    const uint64_t with_one = ledger.used_bytes(Purpose::adapters);
    EXPECT_EQ(ledger.used_bytes(), with_one);
    auto second = held_adapter(memory, 1, 4096);
    EXPECT_GT(ledger.used_bytes(), with_one);
    second.reset();
    EXPECT_EQ(ledger.used_bytes(), with_one);
    const auto refused = memory.hold(adapter(0, 4 << 20));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::exhausted);
    EXPECT_NE(refused.error().message.find("for adapters"), std::string::npos) << refused.error().message;
    EXPECT_EQ(ledger.used_bytes(), with_one);
  }
  EXPECT_EQ(ledger.used_bytes(), 0u);
}

TEST(AdapterMemory, GroupsRowsByWhatTheyUse) {
  Ledger ledger(64 * kMiB);
  const Program program = two_matrices();
  AdapterMemory memory(ledger, program, 64, kLimits);
  auto stream = Stream::create();
  ASSERT_TRUE(stream);
  const auto first = held_adapter(memory, 0, 3), second = held_adapter(memory, 1, 9);
  const AdapterSet one{{{first, 1.0f}}}, same{{{first, 1.0f}}}, weaker{{{first, 0.5f}}},
      both{{{first, 1.0f}, {second, -1.0f}}}, none{};
  Batch batch;
  for (const AdapterSet* set : {&one, static_cast<const AdapterSet*>(nullptr), &same, &weaker, &both, &none}) {
    Slice slice;
    slice.n_tokens = set == &same ? 9 : 1;
    slice.first_row = batch.n_rows();
    slice.adapters = set;
    batch.slices.push_back(slice);
    batch.tokens.resize(batch.tokens.size() + slice.n_tokens);
  }
  const std::vector<Pass> passes = split_batch(batch, kLimits);
  ASSERT_EQ(passes.size(), 1u);
  ASSERT_TRUE(passes[0].is_adapted);
  const auto staged = memory.stage(*stream, batch, passes[0]);
  ASSERT_TRUE(staged && stream->synchronize());
  const AdapterView& view = staged->view;
  ASSERT_EQ(view.n_tiles, 4);
  EXPECT_EQ(view.tile_rows, kAdapterRows);
  EXPECT_EQ(view.max_rank, 8 + 16);
  EXPECT_EQ(staged->changed, (std::vector<bool>{true, true}));
  EXPECT_EQ(std::vector<int32_t>(view.tiles[0].rows, view.tiles[0].rows + 8),
            (std::vector<int32_t>{0, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(view.tiles[1].n_rows, 2);
  EXPECT_EQ(view.tiles[2].rows[0], 11);
  EXPECT_EQ(view.uses[view.tiles[2].first_use].scale, 0.5f);
  ASSERT_EQ(view.tiles[3].n_uses, 2);
  const DeviceChange& change = view.uses[view.tiles[3].first_use + 1].changes[1];
  EXPECT_EQ(change.rank, 9);
  EXPECT_EQ(change.b[9 * 6 - 1], 2.0f);

  // New values of one that is held are where kernels read them.
  Adapter learned = *second;
  learned.by_matrix[1].b.back() = 7.0f;
  ASSERT_TRUE(memory.refresh(*stream, learned));
  EXPECT_EQ(change.b[9 * 6 - 1], 7.0f);
  EXPECT_EQ(change.b[0], 2.0f);
  EXPECT_EQ(staged->head.n_tiles, 0) << "the program has no head";

  Batch plain = batch;
  for (Slice& slice : plain.slices) slice.adapters = nullptr;
  const std::vector<Pass> without = split_batch(plain, kLimits);
  const auto nothing = memory.stage(*stream, plain, without[0]);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
  EXPECT_FALSE(*nothing == *staged);
}

}  // namespace
}  // namespace chimere::cuda
