// What holds of files on every system: names in any script, sizes beyond 32 bits, one writer, nothing half.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "base/platform/aligned_memory.h"
#include "base/platform/atomic_file.h"
#include "base/platform/direct_file.h"
#include "base/platform/file_lock.h"
#include "base/platform/mapped_file.h"
#include "base/platform/private_file.h"
#include "base/platform/record_file.h"
#include "base/platform/resumable_file.h"
#include "base/platform/scratch_file.h"
#include "base/scratch_for_test.h"

namespace chimere {
namespace {

namespace fs = std::filesystem;

// Of every length that UTF-8 has, with a space; the last one takes two units in UTF-16.
constexpr char kName[] = "a b \xC3\xA9 \xE2\x82\xAC \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\xA6\x81";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void write(const std::string& path, std::string_view text) {
  auto file = AtomicFile::create(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->write(bytes_of(text)));
  const auto done = file->commit();
  ASSERT_TRUE(done) << done.error().message;
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The same name reaches the same file by our own calls, by streams and by std::filesystem.
TEST(Files, NamesInAnyScriptAreOneFileByEveryWay) {
  const fs::path folder = fixture::scratch_folder() / kName;
  EXPECT_EQ(folder.filename().string(), kName);
  const auto made = make_private_folder(folder.string());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(*made);
  EXPECT_TRUE(fs::is_directory(folder));
  const std::string path = folder.string() + "/" + kName;
  write(path, "one\r\ntwo\n\x1A three");
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(fs::file_size(folder / kName), 16u);
  EXPECT_EQ(read(path), "one\r\ntwo\n\x1A three") << "bytes are what they are";
  EXPECT_TRUE(std::ifstream(folder / kName).good());
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(mapped->bytes().size(), 16u);
  std::ofstream(path + ".stream") << "by a stream\n";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{kName, std::string(kName) + ".stream"}));
  EXPECT_EQ(fs::file_size(path + ".stream"), 12u) << "a line ends in one byte";
}

TEST(Files, AFileThatIsOpenAndMappedIsReplaced) {
  const std::string path = (fixture::scratch_folder() / "file").string();
  write(path, "old");
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped);
  // A stream keeps others from renaming it on some systems, but not for long.
  auto reader = std::make_unique<std::ifstream>(path);
  std::jthread closing([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    reader.reset();
  });
  for (int i = 0; i < 3; ++i) write(path, "new");
  EXPECT_EQ(read(path), "new");
  EXPECT_EQ(std::to_integer<char>(mapped->bytes()[0]), 'o') << "who has the old one keeps it";
}

TEST(Files, OffsetsBeyond32BitsAreRead) {
  const std::string path = (fixture::scratch_folder() / "large").string();
  constexpr uint64_t kAt = (uint64_t{1} << 32) + DirectFile::kPage;
  {
    std::ofstream file(path, std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kAt)).put('x');
  }
  std::error_code error;
  fs::resize_file(path, kAt + DirectFile::kPage, error);
  ASSERT_FALSE(error) << error.message();
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  ASSERT_EQ(mapped->bytes().size(), kAt + DirectFile::kPage);
  EXPECT_EQ(mapped->bytes()[kAt], std::byte{'x'});
  auto direct = DirectFile::open(path);
  ASSERT_TRUE(direct) << direct.error().message;
  EXPECT_EQ(direct->size_bytes(), kAt + DirectFile::kPage);
  auto* page = static_cast<std::byte*>(allocate_aligned(DirectFile::kPage, DirectFile::kPage));
  ASSERT_NE(page, nullptr);
  const auto done = direct->read(kAt, {page, DirectFile::kPage});
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(page[0], std::byte{'x'});
  EXPECT_FALSE(direct->read(kAt + DirectFile::kPage, {page, DirectFile::kPage})) << "nothing is behind its end";
  free_aligned(page);
  std::ifstream stream(path, std::ios::binary);
  EXPECT_EQ(stream.seekg(static_cast<std::streamoff>(kAt)).get(), 'x');
}

TEST(Files, ALockIsOneHoldersUntilItEnds) {
  const std::string path = (fixture::scratch_folder() / "lock").string();
  {
    auto held = FileLock::try_acquire(path);
    ASSERT_TRUE(held) << held.error().message;
    ASSERT_TRUE(held->has_value());
    auto second = FileLock::try_acquire(path);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_FALSE(second->has_value());
    std::jthread waiting([&] { EXPECT_TRUE(FileLock::acquire(path)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held->reset();
  }
  auto again = FileLock::try_acquire(path);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->has_value());
}

TEST(Files, APartThatIsWrittenHasOneWriterAndIsContinued) {
  const std::string path = (fixture::scratch_folder() / kName).string();
  {
    auto part = ResumableFile::open(path, 7);
    ASSERT_TRUE(part) << part.error().message;
    ASSERT_TRUE(part->check_room(1000));
    EXPECT_FALSE(part->check_room(uint64_t{1} << 60)) << "no disk has room for that";
    ASSERT_TRUE(part->write(bytes_of("safe")));
    const auto noted = part->checkpoint();
    ASSERT_TRUE(noted) << noted.error().message;
    ASSERT_TRUE(part->write(bytes_of("lost")));
    const auto second = ResumableFile::open(path, 7);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another program is writing it"), std::string::npos);
  }
  auto part = ResumableFile::open(path, 7);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->size(), 4u);
  ASSERT_TRUE(part->write(bytes_of(" and whole")));
  EXPECT_FALSE(fs::exists(path));
  const auto done = part->commit();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(read(path), "safe and whole");
  EXPECT_FALSE(fs::exists(path + ".part"));
  EXPECT_FALSE(fs::exists(path + ".part.state"));
}

TEST(Files, ALineIsAppendedWholeAndACutOneIsEnded) {
  const std::string path = (fixture::scratch_folder() / "lines").string();
  ASSERT_TRUE(append_private_line(path, "one"));
  { std::ofstream(path, std::ios::app | std::ios::binary) << "half"; }
  const auto appended = append_private_line(path, "two");
  ASSERT_TRUE(appended) << appended.error().message;
  EXPECT_EQ(read(path), "one\nhalf\ntwo\n");
}

TEST(Files, RecordsFollowWhereAFileWasCut) {
  const std::string path = (fixture::scratch_folder() / "records").string();
  {
    auto file = RecordFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->write(bytes_of("12345678half")));
    ASSERT_TRUE(file->flush());
  }
  auto file = RecordFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  std::array<std::byte, 8> record{};
  auto n = file->read(record);
  ASSERT_TRUE(n) << n.error().message;
  EXPECT_EQ(*n, 8u);
  n = file->read(record);
  ASSERT_TRUE(n);
  EXPECT_EQ(*n, 4u);
  ASSERT_TRUE(file->cut(8));
  ASSERT_TRUE(file->write(bytes_of("abcdefgh")));
  EXPECT_EQ(read(path), "12345678abcdefgh");
}

TEST(Files, AScratchFileIsReadAndLeavesNothing) {
  const fs::path folder = fixture::scratch_folder() / kName;
  fs::create_directory(folder);
  {
    auto file = ScratchFile::create(folder.string());
    ASSERT_TRUE(file) << file.error().message;
    auto* page = static_cast<std::byte*>(allocate_aligned(ScratchFile::kPage, ScratchFile::kPage));
    std::fill_n(page, ScratchFile::kPage, std::byte{7});
    ASSERT_TRUE(file->write({page, ScratchFile::kPage}, 0));
    ASSERT_TRUE(file->flush());
    std::fill_n(page, ScratchFile::kPage, std::byte{0});
    const auto done = file->read({page, ScratchFile::kPage}, 0);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_EQ(page[ScratchFile::kPage - 1], std::byte{7});
    EXPECT_FALSE(file->read({page, ScratchFile::kPage}, ScratchFile::kPage));
    free_aligned(page);
  }
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_FALSE(ScratchFile::create((folder / "none").string()));
}

TEST(Files, WhatADeadProcessLeftIsAbandoned) {
  const fs::path folder = fixture::scratch_folder();
  const std::string dead = (folder / "x.tmp-999999999-1").string(), other = (folder / "x.tmp").string();
  std::ofstream(dead) << "half";
  std::ofstream(other) << "whole";
  EXPECT_TRUE(is_abandoned(dead));
  EXPECT_FALSE(is_abandoned(other));
  auto ours = AtomicFile::create((folder / "y").string());
  ASSERT_TRUE(ours);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with("y.tmp-") && is_abandoned(entry.path().string())) << "who writes it runs";
  }
}

}  // namespace
}  // namespace chimere
