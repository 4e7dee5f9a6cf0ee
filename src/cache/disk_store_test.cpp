// disk_store_test.cpp  Files of kept positions: round trips, quota, restarts, damage.
#include "cache/disk_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

namespace chimere {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> pattern(int seed, size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i * 7);
  return bytes;
}

class DiskStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("chimere-disk-store-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<DiskStore> open(uint64_t quota = 1 << 20, PointFormat format = {42, 256, 100}) {
    DiskConfig config;
    config.folder = folder_.string();
    config.quota_bytes = quota;
    config.log = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    auto wake = [this] {
      std::lock_guard lock(mutex_);
      ++wakes_;
      woken_.notify_one();
    };
    found_.clear();
    wakes_ = 0;
    return std::make_unique<DiskStore>(config, format, wake, [this](const PointRecord& r) { found_.push_back(r); });
  }
  // Until as many jobs are done.
  void wait_for(int n) {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [&] { return wakes_ >= n; });
  }

  // A position of `pages` whole pages and a rest; texts with the same seed share pages.
  static DiskStore::Write point(int seed, int pages, int rest) {
    DiskStore::Write job;
    for (int i = 0; i < pages * kPageTokens + rest; ++i) job.record.tokens.push_back(seed * 1000 + i);
    job.record.prefilled = static_cast<int32_t>(job.record.tokens.size());
    job.record.pages.resize(static_cast<size_t>(pages));
    for (int i = 0; i < pages; ++i) job.new_pages.push_back({i, pattern(seed * 100 + i, 256)});
    if (rest > 0) job.state.tail = pattern(rest, 256);
    job.state.recurrent = pattern(seed + rest, 100);
    return job;
  }
  size_t n_files(const char* extension) const {
    size_t n = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) n += entry.path().extension() == extension;
    return n;
  }

  fs::path folder_;
  std::mutex mutex_;
  std::condition_variable woken_;
  int wakes_ = 0;
  std::vector<std::string> lines_;
  std::vector<PointRecord> found_;
};

TEST_F(DiskStoreTest, GivesBackWhatItGotAlsoAfterARestart) {
  {
    auto store = open();
    store->write(point(1, 2, 10));
    store->write(point(1, 2, 0));
    store->write(point(2, 0, 5));
    wait_for(3);
    const auto results = store->take_results();
    EXPECT_EQ(results.written.size(), 3u);
    EXPECT_TRUE(results.lost.empty());
  }
  EXPECT_EQ(n_files(".point"), 3u);
  EXPECT_EQ(n_files(".page"), 2u) << "two positions of one text share their pages";
  EXPECT_EQ(fs::status(folder_).permissions(), fs::perms::owner_all);
  auto store = open();
  ASSERT_EQ(found_.size(), 3u);
  EXPECT_GT(store->disk_bytes(), 0u);
  const DiskStore::Write expected = point(1, 2, 10);
  DiskStore::Read job{expected.record.name(42), {page_name(expected.new_pages[1].second)}};
  store->read(job);
  wait_for(1);
  const auto results = store->take_results();
  ASSERT_EQ(results.loaded.size(), 1u);
  const auto& loaded = results.loaded[0];
  ASSERT_TRUE(loaded.ok);
  EXPECT_EQ(loaded.record.tokens, expected.record.tokens);
  EXPECT_EQ(loaded.state.tail, expected.state.tail);
  EXPECT_EQ(loaded.state.recurrent, expected.state.recurrent);
  ASSERT_EQ(loaded.pages.size(), 1u) << "the other one is in memory";
  EXPECT_EQ(loaded.pages.begin()->second, expected.new_pages[0].second);
  EXPECT_TRUE(lines_.empty());
}

TEST_F(DiskStoreTest, KeepsWithinItsQuota) {
  auto store = open(6000);
  for (int i = 0; i < 20; ++i) store->write(point(i, 1, 3));
  wait_for(20);
  EXPECT_LE(store->disk_bytes(), 6000u);
  const auto results = store->take_results();
  EXPECT_EQ(results.written.size(), 20u);
  EXPECT_EQ(results.written.size() - results.lost.size(), n_files(".point"));
  EXPECT_EQ(n_files(".page"), n_files(".point"));
  store->write(point(50, 40, 0));
  wait_for(21);
  EXPECT_EQ(store->take_results().lost.back(), point(50, 40, 0).record.name(42)) << "larger than all of it";
  // What is left is the latest.
  store.reset();
  open(6000);
  EXPECT_EQ(found_.size(), n_files(".point"));
  const auto latest = point(19, 1, 3).record.tokens;
  EXPECT_TRUE(std::any_of(found_.begin(), found_.end(), [&](const PointRecord& r) { return r.tokens == latest; }));
}

TEST_F(DiskStoreTest, AnotherModelFindsNothingAndTakesItsShare) {
  {
    auto store = open();
    store->write(point(1, 2, 10));
    wait_for(1);
  }
  open(1 << 20, {43, 256, 100});
  EXPECT_TRUE(found_.empty());
  EXPECT_TRUE(lines_.empty());
  open(1 << 20, {42, 256, 100});
  EXPECT_EQ(found_.size(), 1u);
  open(100, {43, 256, 100});
  EXPECT_EQ(lines_.size(), 1u) << "the quota is for all models";
  open(1 << 20, {42, 256, 100});
  EXPECT_TRUE(found_.empty());
}

TEST_F(DiskStoreTest, ADamagedPageCostsEveryPositionThatHoldsIt) {
  {
    auto store = open();
    store->write(point(1, 2, 10));
    store->write(point(1, 1, 0));
    wait_for(2);
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() != ".page") continue;
    std::fstream(entry.path(), std::ios::in | std::ios::out | std::ios::binary).put('\x7f');
  }
  auto store = open();
  EXPECT_EQ(found_.size(), 2u);
  store->read({point(1, 2, 10).record.name(42), {}});
  wait_for(1);
  const auto results = store->take_results();
  ASSERT_EQ(results.loaded.size(), 1u);
  EXPECT_FALSE(results.loaded[0].ok);
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(n_files(".point"), 0u);
  EXPECT_EQ(n_files(".page"), 0u);
}

TEST_F(DiskStoreTest, LeftoversOfAKilledProcessAreRemoved) {
  { open()->write(point(1, 1, 1)); }
  const fs::path folder = model_folders(folder_.string()).at(0);
  // No system gives a process so high a number.
  std::ofstream(folder / (page_file_name({1, 2}) + ".tmp-999999999-1")) << "half";
  std::ofstream(folder / (point_file_name(5) + ".tmp-999999999-2")) << "half";
  std::ofstream(folder / page_file_name({3, 4})) << "a page that nobody holds";
  std::ofstream(folder / "notes.txt") << "somebody's own file";
  open();
  EXPECT_EQ(found_.size(), 1u);
  EXPECT_EQ(n_files(".page"), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 4) << "marker, point, page, and what is not ours";
}

TEST_F(DiskStoreTest, WhatALiveProcessIsWritingStays) {
  { open()->write(point(1, 1, 1)); }
  const fs::path folder = model_folders(folder_.string()).at(0);
  const std::string ours = ".tmp-" + std::to_string(::getpid()) + "-";
  const fs::path written = folder / (page_file_name({1, 2}) + ours + "77");
  const fs::path of_root = folder / (point_file_name(5) + ".tmp-1-78");  // alive, and perhaps not ours to signal
  const fs::path old = folder / (page_file_name({1, 2}) + ours + "79");
  for (const fs::path& path : {written, of_root, old}) std::ofstream(path) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  open();
  EXPECT_TRUE(fs::exists(written));
  EXPECT_TRUE(fs::exists(of_root));
  EXPECT_FALSE(fs::exists(old)) << "its process number was given to another";
}

TEST(PointFile, RefusesEveryChangedByte) {
  const PointFormat format{7, 64, 40};
  PointRecord record;
  record.scope = 3;
  record.owner = 4;
  for (int i = 0; i < 70; ++i) record.tokens.push_back(i * i);
  record.prefilled = 50;
  record.pages = {{5, 6}};
  PointBytes state{pattern(1, 64), pattern(2, 40)};
  const std::vector<std::byte> bytes = encode_point(format, record, state);
  PointBytes out;
  auto parsed = parse_point(format, bytes, out);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->tokens, record.tokens);
  EXPECT_EQ(parsed->prefilled, 50);
  EXPECT_EQ(parsed->owner, 4u);
  EXPECT_EQ(out.tail, state.tail);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> bad = bytes;
    bad[i] ^= std::byte{1};
    EXPECT_FALSE(parse_point(format, bad, out)) << "byte " << i;
    EXPECT_FALSE(parse_point(format, std::span(bytes).first(i), out)) << "cut at " << i;
  }
  EXPECT_FALSE(parse_point({8, 64, 40}, bytes, out));
  EXPECT_FALSE(parse_point({7, 128, 40}, bytes, out));
  uint64_t name = 0;
  PageName page;
  EXPECT_TRUE(parse_point_file_name(point_file_name(0xfedcba9876543210), name));
  EXPECT_EQ(name, 0xfedcba9876543210u);
  EXPECT_TRUE(parse_page_file_name(page_file_name({1, UINT64_MAX}), page));
  EXPECT_EQ(page, (PageName{1, UINT64_MAX}));
  EXPECT_FALSE(parse_point_file_name("fedcba987654321G.point", name));
  EXPECT_FALSE(parse_point_file_name("../../etc/passwd.point", name));
}

}  // namespace
}  // namespace chimere
