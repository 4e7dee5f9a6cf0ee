// cache_folder_test.cpp  The prefix cache's place on the disk: what is not ours stays as it is.
#include "cache/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cache/disk_store.h"

namespace chimere {
namespace {

namespace fs = std::filesystem;

constexpr fs::perms kShared = fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec;

class CacheFolder : public testing::Test {
 protected:
  void SetUp() override {
    top_ = fs::path(testing::TempDir()) / ("chimere-cache-folder-" + std::to_string(::getpid()));
    fs::remove_all(top_);
    fs::create_directories(top_);
    folder_ = top_ / "cache";
  }
  void TearDown() override { fs::remove_all(top_); }

  // Writes one position with a store of its own and gives what it told.
  std::vector<std::string> keep(uint64_t key, uint64_t owner = 0, uint64_t quota = 1 << 20) {
    auto store = open(key, quota);
    write(*store, owner);
    store.reset();
    return lines_;
  }
  std::unique_ptr<DiskStore> open(uint64_t key, uint64_t quota = 1 << 20, uint64_t model_quota = UINT64_MAX) {
    lines_.clear();
    DiskConfig config;
    config.folder = folder_.string();
    config.quota_bytes = quota;
    config.model_quota_bytes = model_quota;
    config.log = [this](const std::string& line) { lines_.push_back(line); };
    return std::make_unique<DiskStore>(
        config, PointFormat{key, 256, 100}, [] {}, [this](const PointRecord&) { ++n_found_; });
  }
  void write(DiskStore& store, uint64_t owner = 0) {
    DiskStore::Write job;
    for (int i = 0; i < 70; ++i) job.record.tokens.push_back(next_ * 100 + i);
    ++next_;
    job.record.scope = job.record.owner = owner;
    job.record.pages.resize(1);
    job.new_pages.push_back({0, std::vector<std::byte>(256, static_cast<std::byte>(next_))});
    job.state.tail.resize(256);
    job.state.recurrent.resize(100);
    store.write(std::move(job));
  }
  // What is on the disk once all that was asked for is done.
  static CacheUse clear(DiskStore& store, std::optional<uint64_t> owner) {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<CacheUse> cleared;
    store.clear(owner, [&](const CacheUse& use) {
      std::lock_guard lock(mutex);
      cleared = use;
      changed.notify_one();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return cleared.has_value(); });
    return *cleared;
  }
  static size_t n_points(const fs::path& folder) {
    size_t n = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) n += entry.path().extension() == ".point";
    return n;
  }
  static void put(const fs::path& file) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "somebody's own";
  }

  fs::path top_, folder_;
  std::vector<std::string> lines_;
  int next_ = 0, n_found_ = 0;
};

TEST_F(CacheFolder, WhatLooksLikeAModelsFolderAndIsNotOursStays) {
  const fs::path own = folder_ / "0123456789abcdef" / "thesis.txt";
  const fs::path point = folder_ / "0123456789abcdef" / "00000000000000aa.point";
  put(own);
  put(point);
  fs::permissions(folder_, kShared);
  // The quota is so small that every other model's folder has to go.
  const auto lines = keep(42, 0, 1500);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("holds other things"), std::string::npos) << lines[0];
  EXPECT_TRUE(fs::exists(own));
  EXPECT_TRUE(fs::exists(point));
  EXPECT_EQ(fs::status(folder_).permissions(), kShared) << "its mode is its owner's";
  EXPECT_EQ(n_points(folder_ / "chimere-prefix-cache"), 1u);
  EXPECT_EQ(fs::status(folder_ / "chimere-prefix-cache").permissions(), fs::perms::owner_all);
  // Also inside a folder of ours, and beside our own files.
  put(folder_ / "chimere-prefix-cache" / "fedcba9876543210" / "00000000000000bb.point");
  keep(43, 0, 1500);
  EXPECT_TRUE(fs::exists(folder_ / "chimere-prefix-cache" / "fedcba9876543210" / "00000000000000bb.point"));
  EXPECT_EQ(n_points(folder_ / "chimere-prefix-cache"), 2u) << "model 42 made room";
}

TEST_F(CacheFolder, AnEmptyFolderIsUsedWithTheModeItHas) {
  fs::create_directory(folder_);
  fs::permissions(folder_, kShared);
  EXPECT_TRUE(keep(42).empty());
  EXPECT_EQ(fs::status(folder_).permissions(), kShared);
  ASSERT_EQ(model_folders(folder_.string()).size(), 1u);
  EXPECT_EQ(fs::status(model_folders(folder_.string())[0]).permissions(), fs::perms::owner_all);
  EXPECT_TRUE(keep(42).empty());
  EXPECT_EQ(n_found_, 1) << "the marker is known again";
}

TEST_F(CacheFolder, LinksAreNotFollowedInside) {
  // The folder itself may be a link: its user says so. Nothing is done to what it leads to but using it.
  fs::create_directory(top_ / "large-disk");
  fs::permissions(top_ / "large-disk", kShared);
  fs::create_directory_symlink(top_ / "large-disk", folder_);
  EXPECT_TRUE(keep(42).empty());
  EXPECT_EQ(fs::status(top_ / "large-disk").permissions(), kShared);
  EXPECT_EQ(n_points(top_ / "large-disk"), 1u);

  // A model's folder may not.
  const fs::path elsewhere = top_ / "elsewhere";
  put(elsewhere / "00000000000000cc.point");
  fs::permissions(elsewhere, kShared);
  fs::create_directory_symlink(elsewhere, folder_ / "000000000000002b");
  const auto lines = keep(43, 0, 1500);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("left alone"), std::string::npos) << lines[0];
  EXPECT_EQ(fs::status(elsewhere).permissions(), kShared);
  EXPECT_TRUE(fs::exists(elsewhere / "00000000000000cc.point"));
  for (const std::string& model : model_folders(folder_.string())) clear_folder(model);
  EXPECT_TRUE(fs::exists(elsewhere / "00000000000000cc.point"));
  EXPECT_EQ(n_points(top_ / "large-disk"), 0u);
}

TEST_F(CacheFolder, ClearingTakesTheOwnersPartOrEverything) {
  keep(41);
  auto store = open(42);
  write(*store, 7);
  write(*store, 7);
  write(*store, 8);
  const CacheUse one = clear(*store, 7);
  EXPECT_GT(one.bytes, 2 * 256u);
  EXPECT_EQ(store->disk_bytes() * 2, one.bytes);
  EXPECT_EQ(n_points(folder_), 2u);
  EXPECT_EQ(clear(*store, 7).bytes, 0u);
  put(folder_ / "notes.txt");
  put(fs::path(model_folders(folder_.string())[0]) / "notes.txt");
  const CacheUse all = clear(*store, std::nullopt);
  EXPECT_GT(all.bytes, one.bytes / 2);
  EXPECT_EQ(all.entries, 1u) << "the other model's";
  EXPECT_EQ(n_points(folder_), 0u);
  EXPECT_EQ(store->disk_bytes(), 0u);
  EXPECT_EQ(store->others_bytes(), 0u);
  EXPECT_TRUE(fs::exists(folder_ / "notes.txt"));
  EXPECT_TRUE(fs::exists(fs::path(model_folders(folder_.string())[0]) / "notes.txt"));
  write(*store);
  clear(*store, 99);  // behind the write
  EXPECT_EQ(n_points(folder_), 1u) << "and it goes on";
}

TEST_F(CacheFolder, AStoreNoticesThatAnotherProcessCleared) {
  auto store = open(42);
  write(*store);
  write(*store);
  clear(*store, 99);
  store->take_results();
  EXPECT_GT(clear_folder(model_folders(folder_.string()).at(0)).bytes, 0u);
  write(*store);
  clear(*store, 99);
  const auto results = store->take_results();
  EXPECT_EQ(results.lost.size(), 2u);
  EXPECT_EQ(results.written.size(), 1u);
  EXPECT_EQ(store->disk_bytes(), use_of_folder(model_folders(folder_.string()).at(0)).bytes);
  // Even when all of it is gone.
  fs::remove_all(folder_);
  write(*store);
  clear(*store, 99);
  EXPECT_EQ(n_points(folder_), 1u);
  EXPECT_EQ(store->disk_bytes(), use_of_folder(model_folders(folder_.string()).at(0)).bytes);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(CacheFolder, OneModelKeepsWithinItsOwnQuota) {
  keep(41);
  auto store = open(42, 1 << 20, 2000);
  EXPECT_GT(store->others_bytes(), 0u);
  EXPECT_EQ(store->limit_bytes(), store->others_bytes() + 2000);
  for (int i = 0; i < 20; ++i) write(*store);
  clear(*store, 99);
  EXPECT_LE(store->disk_bytes(), 2000u);
  EXPECT_GT(store->disk_bytes(), 0u);
  EXPECT_GT(use_of_folder(model_folders(folder_.string()).at(0)).bytes, 0u);
  EXPECT_EQ(model_folders(folder_.string()).size(), 2u);
}

TEST(CacheQuota, IsTheLeastOfThree) {
  EXPECT_EQ(default_quota(16'000'000, uint64_t{1} << 40).one_model, 64'000'000u) << "four times the model";
  EXPECT_EQ(default_quota(16'000'000, uint64_t{1} << 40).all_models, 8'000'000'000u);
  EXPECT_EQ(default_quota(20'000'000'000, uint64_t{1} << 40).one_model, 8'000'000'000u);
  EXPECT_EQ(default_quota(20'000'000'000, 10'000'000'000).one_model, 500'000'000u) << "5 % of what is free";
  EXPECT_EQ(default_quota(16'000'000, 0).one_model, 0u);
  EXPECT_EQ(default_quota(UINT64_MAX, UINT64_MAX).one_model, 8'000'000'000u);
  EXPECT_GT(free_bytes_for(testing::TempDir() + "/not/there/yet"), 0u);
}

}  // namespace
}  // namespace chimere
