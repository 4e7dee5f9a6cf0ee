// What is kept comes back; whatever else lies in its place counts as nothing.
#include "backend/cuda/expert_uses.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/scratch_for_test.h"

namespace chimere::cuda {
namespace {

namespace fs = std::filesystem;

TEST(ExpertUses, AreKept) {
  const fs::path folder = fixture::scratch_folder() / "not" / "there";
  const std::string path = uses_path(folder.string(), 0xABCDu);
  EXPECT_EQ(fs::path(path).filename(), "000000000000abcd.experts-used");
  EXPECT_TRUE(read_uses(path, 3).empty());
  const std::vector<float> uses = {0, 12.5f, 3};
  ASSERT_TRUE(write_uses(path, uses));
  EXPECT_EQ(read_uses(path, 3), uses);
  EXPECT_TRUE(read_uses(path, 4).empty()) << "of another model";
}

TEST(ExpertUses, ThatAreDamagedAreNone) {
  const std::string path = uses_path(fixture::scratch_folder().string(), 1);
  const std::vector<float> uses = {1, 2};
  ASSERT_TRUE(write_uses(path, uses));
  for (const int at : {0, 7, 8, 12}) {  // of the header
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file.put('\x7f');
    file.close();
    EXPECT_TRUE(read_uses(path, 2).empty()) << at;
    ASSERT_TRUE(write_uses(path, uses));
  }
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_TRUE(read_uses(path, 2).empty());
  ASSERT_TRUE(write_uses(path, {1, -1}));
  EXPECT_TRUE(read_uses(path, 2).empty());
  ASSERT_TRUE(write_uses(path, {1, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_TRUE(read_uses(path, 2).empty());
  EXPECT_FALSE(write_uses("/proc/nowhere/x", uses));
}

}  // namespace
}  // namespace chimere::cuda
