#include "retrieval/passage_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/hash.h"
#include "base/platform/atomic_file.h"
#include "base/platform/mapped_file.h"
#include "retrieval/shared_ngrams.h"

namespace chimere::retrieval {
namespace {

constexpr uint64_t kModel = 7;
constexpr int kDimensions = 5;

// A direction of its own for every number.
std::vector<float> vector_of(int i) {
  std::vector<float> v(kDimensions);
  double squares = 0;
  for (int j = 0; j < kDimensions; ++j) {
    v[j] =
        static_cast<float>(static_cast<double>(hash_mix(static_cast<uint64_t>(i * 31 + j + 1)) >> 40) / (1 << 23) - 1);
    squares += static_cast<double>(v[j]) * v[j];
  }
  for (float& x : v) x = static_cast<float>(x / std::sqrt(squares));
  return v;
}

class Passages : public testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    folder_ = std::filesystem::temp_directory_path() / ("passages_test_" + std::to_string(random()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "a.passages").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void add(int from, int to, const std::string& source) const {
    const Status added = edit_passages(path_, kModel, kDimensions, [&](PassageIndex& index) -> Status {
      for (int i = from; i < to; ++i) TRY(index.add({source, "passage " + std::to_string(i)}, vector_of(i)));
      return Ok{};
    });
    ASSERT_TRUE(added) << added.error().message;
  }
  std::vector<std::byte> bytes() const {
    auto file = MappedFile::open(path_);
    EXPECT_TRUE(file);
    return {file->bytes().begin(), file->bytes().end()};
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(Passages, FindTheNearestAsPlainArithmeticDoes) {
  add(0, 300, "first");
  add(300, 400, "second");
  auto index = PassageIndex::open(path_, kModel, kDimensions);
  ASSERT_TRUE(index) << index.error().message;
  ASSERT_EQ(index->size(), 400u);
  for (int q = 0; q < 400; q += 37) {
    const std::vector<float> query = vector_of(q);
    std::vector<std::pair<double, int>> expected;
    for (int i = 0; i < 400; ++i) {
      const std::vector<float> v = vector_of(i);
      double dot = 0;
      for (int j = 0; j < kDimensions; ++j) dot += static_cast<double>(query[j]) * v[j];
      expected.push_back({-dot, i});
    }
    std::sort(expected.begin(), expected.end());
    const auto found = index->nearest(query, 4);
    ASSERT_EQ(found.size(), 4u);
    EXPECT_EQ(found[0].passage->text, "passage " + std::to_string(q));
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(found[i].score, -expected[i].first, 1e-5);
  }
  EXPECT_EQ(index->nearest(vector_of(1), 1000).size(), 400u);
}

TEST_F(Passages, AreForgottenBySource) {
  add(0, 5, "first");
  add(5, 8, "second");
  size_t removed = 0;
  ASSERT_TRUE(edit_passages(path_, kModel, kDimensions, [&](PassageIndex& index) -> Status {
    removed = index.forget("first");
    return Ok{};
  }));
  EXPECT_EQ(removed, 5u);
  auto index = PassageIndex::open(path_, kModel, kDimensions);
  ASSERT_TRUE(index);
  ASSERT_EQ(index->size(), 3u);
  EXPECT_EQ(index->nearest(vector_of(6), 1)[0].passage->text, "passage 6");
  EXPECT_LT(index->nearest(vector_of(2), 1)[0].score, 0.9999f);
}

TEST_F(Passages, OfAnotherModelOrDamagedAreRefused) {
  add(0, 3, "first");
  const std::vector<std::byte> good = bytes();
  EXPECT_TRUE(PassageIndex::parse(good, "f", kModel, kDimensions));
  EXPECT_EQ(PassageIndex::parse(good, "f", kModel + 1, kDimensions).error().code, Code::invalid_argument);
  EXPECT_EQ(PassageIndex::parse(good, "f", kModel, kDimensions + 1).error().code, Code::invalid_argument);
  for (size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(PassageIndex::parse(std::span(good).first(n), "f", kModel, kDimensions)) << n;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i] ^= std::byte{1};
    // Reserved bytes of the header mean nothing.
    const bool reserved = i >= offsetof(PassageHeader, reserved) && i < offsetof(PassageHeader, n_passages);
    EXPECT_EQ(static_cast<bool>(PassageIndex::parse(bad, "f", kModel, kDimensions)), reserved) << i;
  }
  // A right checksum over a wrong length.
  std::vector<std::byte> bad = good;
  const size_t at = sizeof(PassageHeader) + 3 * kDimensions * sizeof(float);
  const uint32_t huge = 0xfffffff0;
  std::memcpy(bad.data() + at, &huge, sizeof huge);
  const uint64_t checksum = hash64(std::span<const std::byte>(bad).subspan(sizeof(PassageHeader)));
  std::memcpy(bad.data() + offsetof(PassageHeader, checksum), &checksum, sizeof checksum);
  EXPECT_EQ(PassageIndex::parse(bad, "f", kModel, kDimensions).error().code, Code::corrupt);
}

TEST_F(Passages, RefuseWhatTheFileCouldNotHold) {
  PassageIndex index(kModel, kDimensions);
  EXPECT_FALSE(index.add({"", "text"}, vector_of(1)));
  EXPECT_FALSE(index.add({"s", ""}, vector_of(1)));
  EXPECT_FALSE(index.add({"s", std::string(PassageIndex::kMaxTextBytes + 1, 'a')}, vector_of(1)));
  std::vector<float> nowhere = vector_of(1);
  nowhere[2] = INFINITY;
  EXPECT_FALSE(index.add({"s", "text"}, nowhere));
  EXPECT_EQ(index.size(), 0u);
  EXPECT_TRUE(index.nearest(vector_of(1), 3).empty());
}

TEST(CutPassages, AtEmptyLinesSentencesWordsAndCharacters) {
  EXPECT_EQ(cut_passages("", 100), std::vector<std::string>{});
  EXPECT_EQ(cut_passages(" one\n\n\n two \n\n", 100), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(cut_passages("First one. Second one. Third", 24),
            (std::vector<std::string>{"First one. Second one.", "Third"}));
  EXPECT_EQ(cut_passages("aaa bbb ccc", 8), (std::vector<std::string>{"aaa bbb", "ccc"}));
  // Two bytes a character: no half of one.
  for (const std::string& part : cut_passages("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 3)) EXPECT_EQ(part, "\xC3\xA9");
}

TEST(SharedNgrams, AreTheLongestRunsAndWhatFollowsThem) {
  const std::vector<int32_t> query = {1, 2, 3, 4, 9, 5, 6};
  const std::vector<int32_t> passage = {7, 1, 2, 3, 8, 5, 6, 2, 3, 4};
  const auto found = shared_ngrams(query, passage, 8, 10);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].position, 1);
  EXPECT_EQ(found[0].order, 3);
  EXPECT_EQ(found[0].next, 8);
  EXPECT_EQ(found[1].position, 7);
  EXPECT_EQ(found[1].order, 3);
  EXPECT_EQ(found[1].next, -1);
  EXPECT_EQ(found[2].order, 2);
  EXPECT_EQ(found[2].next, 2);
  EXPECT_EQ(shared_ngrams(query, passage, 2, 1).size(), 1u);
  EXPECT_TRUE(shared_ngrams(query, std::vector<int32_t>{1}, 8, 10).empty());
}

}  // namespace
}  // namespace chimere::retrieval
