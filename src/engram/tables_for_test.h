// tables_for_test.h  Small tables in a folder that goes away with the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engram/edit.h"
#include "engram/table.h"

namespace chimere::engram {

using Ids = std::vector<int32_t>;

inline constexpr Vocabulary kTestVocabulary{0x1234, 1000};
inline constexpr TableShape kTestShape{kTestVocabulary, 2, 8};

class TablesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::random_device random;
    folder_ = std::filesystem::temp_directory_path() / ("engram_test_" + std::to_string(random()));
    std::filesystem::create_directories(folder_ / "users");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static Lesson lesson(const std::string& id, std::vector<Ids> texts, uint32_t day = kNeverAges, float score = 5) {
    return {{id, day, score, 0}, std::move(texts)};
  }
  static std::shared_ptr<const Table> open(const std::string& path, uint32_t today = 0) {
    auto table = Table::open(path, kTestVocabulary, today);
    EXPECT_TRUE(table) << table.error().message;
    return table ? *table : nullptr;
  }
  // Of the longest key alone: how often `next` followed; 0 when the key is unknown.
  static float count(const Table& table, const Ids& key, int32_t next) {
    Hit hit;
    if (!table.find(Table::context_of(key), static_cast<int>(key.size()), hit)) return 0;
    for (const Hit::Next& n : hit.next) {
      if (n.token == next) return n.count;
    }
    return 0;
  }
  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  std::filesystem::path folder_;
};

}  // namespace chimere::engram
