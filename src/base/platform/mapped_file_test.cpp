#include "base/platform/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "base/platform/atomic_file.h"

namespace chimere {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  void write(const std::vector<std::byte>& bytes) {
    auto file = AtomicFile::create(path_);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->write(bytes));
    auto status = file->commit();
    ASSERT_TRUE(status) << status.error().message;
  }

  const std::string path_ = testing::TempDir() + "mapped_file_" + std::to_string(std::random_device{}());
};

TEST_F(MappedFileTest, ShowsTheBytesAndSurvivesHints) {
  std::vector<std::byte> bytes(100'003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 13);
  write(bytes);
  auto opened = MappedFile::open(path_);
  ASSERT_TRUE(opened) << opened.error().message;
  MappedFile mapped = std::move(*opened);
  const auto same = [&] {
    return std::equal(bytes.begin(), bytes.end(), mapped.bytes().begin(), mapped.bytes().end());
  };
  EXPECT_TRUE(same());
  for (const Access access : {Access::normal, Access::sequential, Access::random, Access::will_need}) {
    mapped.advise(5000, 20'000, access);
  }
  mapped.advise(99'999, SIZE_MAX, Access::normal);
  mapped.advise(SIZE_MAX, 1, Access::normal);
  mapped.drop(0, SIZE_MAX);
  mapped.drop(4095, 2);
  mapped.drop(200'000, 1);
  EXPECT_TRUE(same());
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  write({});
  auto mapped = MappedFile::open(path_);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST_F(MappedFileTest, RefusesWhatIsNotARegularFile) {
  auto folder = MappedFile::open(testing::TempDir());
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("is a folder"), std::string::npos);
  auto missing = MappedFile::open(path_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_TRUE(missing.error().message.starts_with(path_));
}

TEST_F(MappedFileTest, AReplacedFileKeepsItsOldMapping) {
  write({std::byte{1}, std::byte{2}});
  auto mapped = MappedFile::open(path_);
  ASSERT_TRUE(mapped);
  write({std::byte{9}});
  ASSERT_EQ(mapped->bytes().size(), 2u);
  EXPECT_EQ(mapped->bytes()[1], std::byte{2});
}

TEST_F(MappedFileTest, AnAbandonedWriteLeavesTheOldFile) {
  write({std::byte{1}});
  {
    auto file = AtomicFile::create(path_);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write(std::vector<std::byte>(10)));
  }
  auto mapped = MappedFile::open(path_);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->bytes().size(), 1u);
  auto nowhere = AtomicFile::create("/nowhere/file");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, Code::io);
}

}  // namespace
}  // namespace chimere
