// best_of_part_test.cpp  A part of the output head, copied, and the best token of its logits, in the emulator.
#include "backend/cuda/kernels/sampling/best_of_part.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/hash.h"

namespace chimere::cuda {
namespace {

// Rows of 48 bytes, the last block short; what is behind its end is zero whatever was there before.
TEST(HeadPart, IsTheRowsOfItsBlocks) {
  constexpr int kRows = 2 * kPartBlock + 5;
  constexpr uint32_t kBytes = 48;
  std::vector<uint8_t> bytes(kRows * kBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(1 + hash_mix(i) % 255);
  Weight matrix;
  matrix.data = bytes.data();
  matrix.rows = kRows;
  matrix.row_bytes = kBytes;
  const std::vector<int32_t> blocks = {0, 2};
  alignas(16) uint8_t part[2 * kPartBlock * kBytes];
  std::fill(std::begin(part), std::end(part), uint8_t{7});
  ASSERT_TRUE(gather_head_part(Stream(), matrix, blocks.data(), 2, part));
  for (size_t i = 0; i < std::size(part); ++i) {
    const size_t row = i / kBytes, from = row % kPartBlock + 16u * static_cast<size_t>(blocks[row / kPartBlock]);
    ASSERT_EQ(part[i], from < kRows ? bytes[from * kBytes + i % kBytes] : 0) << i;
  }
}

class Rows {
 public:
  Rows(std::vector<int32_t> blocks, int n_vocab) : blocks_(std::move(blocks)), n_vocab_(n_vocab) {}

  // The ids that are found, -1 where there is none.
  std::vector<int32_t> best(const std::vector<std::vector<float>>& rows, const std::vector<uint64_t>& suppressed = {}) {
    std::vector<float> logits;
    for (const auto& row : rows) logits.insert(logits.end(), row.begin(), row.end());
    std::vector<SampleRow> wishes(rows.size());
    std::vector<int32_t> accepted(rows.size(), -7), ids;
    std::vector<SampledRow> sampled(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      wishes[i].tag = static_cast<uint32_t>(40 + i);
      if (i != 1) wishes[i].accept_into = &accepted[i];
    }
    const uint8_t nothing = 0;
    const HeadPartView part{&nothing, blocks_.data(), static_cast<int>(blocks_.size())};
    EXPECT_TRUE(best_of_part(Stream(), {logits.data(), part, wishes.data(), static_cast<int>(rows.size()), n_vocab_,
                                        suppressed.empty() ? nullptr : suppressed.data(), sampled.data()}));
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(sampled[i].tag, 40 + i);
      EXPECT_EQ(sampled[i].status, sampled[i].id < 0 ? SampleStatus::no_logits : SampleStatus::ok);
      EXPECT_EQ(accepted[i], i == 1 || sampled[i].id < 0 ? -7 : sampled[i].id);
      ids.push_back(sampled[i].id);
    }
    return ids;
  }

 private:
  std::vector<int32_t> blocks_;
  int n_vocab_;
};

TEST(BestOfPart, IsTheFirstOfTheLargestThatMayBeDrawn) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  constexpr int kVocab = 9 * kPartBlock + 3;
  Rows rows({1, 4, 9}, kVocab);  // of the last three tokens
  std::vector<float> row(3 * kPartBlock, -5.0f);
  const auto with = [&](std::vector<std::pair<int, float>> values) {
    std::vector<float> changed = row;
    for (const auto& [at, value] : values) changed[static_cast<size_t>(at)] = value;
    return changed;
  };
  const std::vector<std::vector<float>> all = {
      with({{20, 3.0f}, {7, 3.0f}, {1, kNan}, {2, -kInf}}),
      with({{17, 2.0f}}),
      with({{40, 9.0f}, {34, 1.0f}}),  // the better one is behind the vocabulary
      with({{0, -0.0f}, {5, 0.0f}}),
      with({{6, kInf}, {3, 1e35f}}),
      std::vector<float>(row.size(), kNan),
  };
  EXPECT_EQ(rows.best(all), (std::vector<int32_t>{16 + 7, 64 + 1, 144 + 2, 16, 16 + 3, -1}));
  std::vector<uint64_t> suppressed((kVocab + 63) / 64, 0);
  for (const int id : {16 + 7, 64 + 1}) suppressed[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64);
  EXPECT_EQ(rows.best(all, suppressed), (std::vector<int32_t>{64 + 4, 16, 144 + 2, 16, 16 + 3, -1}));
}

// More tokens than threads.
TEST(BestOfPart, LooksAtAllOfALargeOne) {
  constexpr int kBlocks = 700;
  std::vector<int32_t> blocks;
  for (int b = 0; b < kBlocks; ++b) blocks.push_back(3 * b + 1);
  Rows rows(blocks, 3 * kBlocks * kPartBlock);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    std::vector<float> row(kBlocks * kPartBlock);
    size_t best = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(hash_mix(i + seed * 100000) % 4000);
      if (row[i] > row[best]) best = i;
    }
    const int32_t id = blocks[best / kPartBlock] * kPartBlock + static_cast<int32_t>(best % kPartBlock);
    EXPECT_EQ(rows.best({row}), (std::vector<int32_t>{id}));
  }
}

}  // namespace
}  // namespace chimere::cuda
