#include "terminal/input_history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace chimere::apps {
namespace {

namespace fs = std::filesystem;

class InputHistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "chimere-history-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(InputHistoryTest, IsKeptForTheUserAlone) {
  const std::string path = (folder_ / "new" / "history").string();
  {
    InputHistory history(path);
    EXPECT_TRUE(history.add("first"));
    EXPECT_TRUE(history.add("two\nlines \"quoted\" \\ é"));
    EXPECT_TRUE(history.add("two\nlines \"quoted\" \\ é"));  // once
    EXPECT_TRUE(history.add(""));
  }
  InputHistory other(path);
  EXPECT_EQ(other.entries(), (std::vector<std::string>{"first", "two\nlines \"quoted\" \\ é"}));
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(InputHistoryTest, TwoProgramsAddToOneFile) {
  const std::string path = (folder_ / "history").string();
  InputHistory a(path), b(path);
  EXPECT_TRUE(a.add("of a"));
  EXPECT_TRUE(b.add("of b"));
  EXPECT_EQ(InputHistory(path).entries(), (std::vector<std::string>{"of a", "of b"}));
}

TEST_F(InputHistoryTest, DamageIsPassedOverAndTheFileStaysSmall) {
  const std::string path = (folder_ / "history").string();
  {
    std::ofstream file(path);
    file << "no json\n\"good\"\n{\"a\":1}\n";
    for (size_t i = 0; i < 3 * InputHistory::kMaxEntries; ++i) file << "\"entry " << i << "\"\n";
  }
  InputHistory history(path);
  EXPECT_EQ(history.entries().size(), InputHistory::kMaxEntries);
  EXPECT_EQ(history.entries().back(), "entry 2999");
  std::ifstream file(path);
  size_t n_lines = 0;
  for (std::string line; std::getline(file, line);) ++n_lines;
  EXPECT_EQ(n_lines, InputHistory::kMaxEntries);
}

TEST_F(InputHistoryTest, WhatCannotBeKeptIsSaidAndStaysInMemory) {
  std::ofstream(folder_ / "file") << "x";
  InputHistory history((folder_ / "file" / "history").string());
  EXPECT_FALSE(history.add("text"));
  EXPECT_EQ(history.entries().back(), "text");
}

}  // namespace
}  // namespace chimere::apps
