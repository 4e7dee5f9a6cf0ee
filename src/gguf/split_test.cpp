// Split sets: shards that open as one file, and every way they can disagree.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "gguf/gguf.h"
#include "gguf/raw_file_for_test.h"

namespace chimere::gguf {
namespace {

class SplitFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("gguf_split_" + std::to_string(std::random_device{}()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static RawFile split_shard(uint16_t number, uint16_t count, int32_t total, const std::vector<const char*>& tensors) {
    RawFile raw(tensors.size(), number == 0 ? 4 : 3);
    if (number == 0) raw.key("general.architecture", ValueType::string).text("llama");
    raw.key("split.no", ValueType::u16).put(number).key("split.count", ValueType::u16).put(count);
    raw.key("split.tensors.count", ValueType::i32).put(total);
    uint64_t offset = 0;
    for (const char* name : tensors) raw.tensor(name, {8}, 0, 32 * offset++);
    if (!tensors.empty()) raw.data(32 * tensors.size());
    return raw;
  }

  void save(const std::string& name, const RawFile& raw) const {
    std::FILE* file = std::fopen(path(name).c_str(), "wb");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(raw.bytes().data(), 1, raw.bytes().size(), file), raw.bytes().size());
    ASSERT_EQ(std::fclose(file), 0);
  }

  // The message of a failed open, "" when it succeeds.
  std::string refusal(const std::string& name) const {
    auto file = File::open(path(name));
    return file ? std::string() : file.error().message;
  }

  static constexpr const char* kFirst = "m-00001-of-00003.gguf";
  static constexpr const char* kSecond = "m-00002-of-00003.gguf";
  static constexpr const char* kThird = "m-00003-of-00003.gguf";

 private:
  std::filesystem::path folder_;
};

#define EXPECT_SAYS(message, fragment) EXPECT_NE((message).find(fragment), std::string::npos) << (message)

TEST_F(SplitFiles, OpenAsOne) {
  save(kFirst, split_shard(0, 3, 3, {}));
  save(kSecond, split_shard(1, 3, 3, {"a", "b"}));
  save(kThird, split_shard(2, 3, 3, {"c"}));
  auto opened = File::open(path(kFirst));
  ASSERT_TRUE(opened) << opened.error().message;
  File file = std::move(*opened);
  EXPECT_EQ(file.n_shards(), 3u);
  EXPECT_EQ(file.path(), path(kFirst));
  EXPECT_EQ(*file.metadata().get_string("general.architecture"), "llama");
  ASSERT_EQ(file.tensors().size(), 3u);
  const TensorView* c = file.find("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->name, "c");
  for (const TensorView& tensor : file.tensors()) {
    const std::byte before = tensor.data[1];
    file.drop_pages(tensor);
    EXPECT_EQ(tensor.data[1], before);
  }
  EXPECT_EQ(c->data[1], std::byte{7});
}

TEST_F(SplitFiles, ASetOfOneNeedsNoName) {
  save("alone.gguf", split_shard(0, 1, 1, {"a"}));
  EXPECT_EQ(refusal("alone.gguf"), "");
}

TEST_F(SplitFiles, MustBeOpenedByTheFirst) {
  save(kSecond, split_shard(1, 3, 3, {"a"}));
  EXPECT_SAYS(refusal(kSecond), "is shard 2 of 3");
  EXPECT_SAYS(refusal(kSecond), kFirst);
  save("renamed.gguf", split_shard(1, 3, 3, {"a"}));
  EXPECT_SAYS(refusal("renamed.gguf"), "-00001-of-00003.gguf");
}

TEST_F(SplitFiles, TheFirstMustHaveItsName) {
  for (const char* name : {"renamed.gguf", "m-00001-of-00004.gguf", "m-00001-of-00003.bin", "m-1-of-3.gguf"}) {
    save(name, split_shard(0, 3, 3, {"a"}));
    EXPECT_SAYS(refusal(name), "-00001-of-00003.gguf");
    EXPECT_SAYS(refusal(name), "first of 3 shards");
  }
}

TEST_F(SplitFiles, AMissingShardIsNamed) {
  save(kFirst, split_shard(0, 3, 2, {"a"}));
  save(kSecond, split_shard(1, 3, 2, {"b"}));
  EXPECT_SAYS(refusal(kFirst), kThird);
  EXPECT_SAYS(refusal(kFirst), "shard 3 of 3");
}

TEST_F(SplitFiles, ShardsMustAgree) {
  save(kFirst, split_shard(0, 3, 3, {"a"}));
  save(kSecond, split_shard(1, 3, 3, {"b"}));
  save(kThird, split_shard(1, 3, 3, {"c"}));
  EXPECT_SAYS(refusal(kFirst), kThird);
  EXPECT_SAYS(refusal(kFirst), "expected split.no 2 of split.count 3, found 1 of 3");
  save(kThird, split_shard(2, 4, 3, {"c"}));
  EXPECT_SAYS(refusal(kFirst), "found 2 of 4");
  save(kThird, RawFile(0, 0));
  EXPECT_SAYS(refusal(kFirst), "'split.no' is missing");
  save(kThird, split_shard(2, 3, 3, {"b"}));
  EXPECT_SAYS(refusal(kFirst), "tensor 'b' appears more than once");
  save(kThird, split_shard(2, 3, 3, {"c", "d"}));
  EXPECT_SAYS(refusal(kFirst), "split.tensors.count is 3, but the 3 shards hold 4");
  save(kThird, RawFile(0, 9));
  EXPECT_SAYS(refusal(kFirst), std::string(kThird) + ": header: 9 keys");
  save(kThird, split_shard(2, 3, 3, {"c"}));
  EXPECT_EQ(refusal(kFirst), "");
}

TEST_F(SplitFiles, KeysOfTheFirstAreChecked) {
  save(kFirst, RawFile(0, 1).key("split.count", ValueType::u16).put<uint16_t>(3));
  EXPECT_SAYS(refusal(kFirst), "'split.no' is missing");
  RawFile raw(0, 2);
  raw.key("split.count", ValueType::u16).put<uint16_t>(3).key("split.no", ValueType::u16).put<uint16_t>(0);
  save(kFirst, raw);
  EXPECT_SAYS(refusal(kFirst), "'split.tensors.count' is missing");
  save(kFirst, RawFile(0, 1).key("split.count", ValueType::string).text("3"));
  EXPECT_SAYS(refusal(kFirst), "'split.count': expected an integer");
}

TEST_F(SplitFiles, AShardInMemoryIsRefused) { EXPECT_SAYS(split_shard(0, 3, 1, {"a"}).refusal(), "one of 3 shards"); }

}  // namespace
}  // namespace chimere::gguf
