// The checks of docs/gguf.md, one crafted file each, by the facts their message must name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "gguf/gguf.h"
#include "gguf/raw_file_for_test.h"
#include "gguf/shard.h"

namespace chimere::gguf {
namespace {

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_K = 12;

// Every fragment must be in the message, so that it says what, where, expected and found.
testing::AssertionResult refused(const RawFile& file, std::initializer_list<const char*> fragments) {
  const std::string message = file.refusal();
  if (message.empty()) return testing::AssertionFailure() << "accepted";
  if (!message.starts_with("f.gguf: ")) return testing::AssertionFailure() << "no path in: " << message;
  for (const char* fragment : fragments) {
    if (message.find(fragment) == std::string::npos) {
      return testing::AssertionFailure() << "no '" << fragment << "' in: " << message;
    }
  }
  return testing::AssertionSuccess();
}

TEST(GgufFile, ReadsAMinimalFile) {
  RawFile raw(2, 2);
  raw.key("general.architecture", ValueType::string).text("qwen3").u32("x", 7);
  raw.tensor("a", {8, 2}, kF32, 0).tensor("b", {256}, kQ4_K, 64).data(64 + 144);
  auto file = File::parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(file->n_shards(), 1u);
  EXPECT_EQ(file->size_bytes(), raw.bytes().size());
  EXPECT_EQ(*file->metadata().get_string("general.architecture"), "qwen3");
  ASSERT_EQ(file->tensors().size(), 2u);
  const TensorView* b = file->find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, DType::Q4_K);
  EXPECT_EQ(b->size_bytes(), 144u);
  EXPECT_EQ(b->data + b->size_bytes(), raw.bytes().data() + raw.bytes().size());
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[0].ne, (Shape{8, 2, 1, 1}));
  EXPECT_EQ(file->find("c"), nullptr);
  file->drop_pages(*b);  // memory of the caller: nothing to do, nothing to break
}

TEST(GgufFile, AcceptsVersion2AndNoTensors) {
  EXPECT_EQ(RawFile(0, 1, 2).u32("k", 1).refusal(), "");
  EXPECT_EQ(RawFile(0, 0).refusal(), "");
}

TEST(GgufFile, ReadsEveryValueType) {
  RawFile raw(0, 24);
  raw.key("u8", ValueType::u8).put<uint8_t>(255);
  raw.key("i8", ValueType::i8).put<int8_t>(-128);
  raw.key("u16", ValueType::u16).put<uint16_t>(65535);
  raw.key("i16", ValueType::i16).put<int16_t>(-32768);
  raw.key("u32", ValueType::u32).put<uint32_t>(4294967295u);
  raw.key("i32", ValueType::i32).put<int32_t>(-2147483647);
  raw.key("u64", ValueType::u64).put<uint64_t>(~uint64_t{0});
  raw.key("i64", ValueType::i64).put<int64_t>(-5);
  raw.key("f32", ValueType::f32).put<float>(1.5f);
  raw.key("f64", ValueType::f64).put<double>(0.1);
  raw.key("bool", ValueType::boolean).put<uint8_t>(2);
  raw.key("string", ValueType::string).text(std::string_view("a\0b\xff", 4));
  raw.array("u8s", ValueType::u8, 2).put<uint8_t>(1).put<uint8_t>(255);
  raw.array("i8s", ValueType::i8, 2).put<int8_t>(1).put<int8_t>(-1);
  raw.array("u16s", ValueType::u16, 1).put<uint16_t>(9);
  raw.array("i16s", ValueType::i16, 1).put<int16_t>(-9);
  raw.array("u32s", ValueType::u32, 1).put<uint32_t>(9);
  raw.array("i32s", ValueType::i32, 1).put<int32_t>(-9);
  raw.array("u64s", ValueType::u64, 1).put<uint64_t>(9);
  raw.array("i64s", ValueType::i64, 1).put<int64_t>(-9);
  raw.array("f32s", ValueType::f32, 2).put(0.5f).put(-2.f);
  raw.array("f64s", ValueType::f64, 1).put(0.1);
  raw.array("bools", ValueType::boolean, 3).put<uint8_t>(0).put<uint8_t>(1).put<uint8_t>(7);
  raw.array("strings", ValueType::string, 2).text("").text("xyz");
  auto file = File::parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message;
  const Metadata& m = file->metadata();
  const auto same = [&](const char* key, const Value& expected) {
    const Value* found = m.find(key);
    ASSERT_NE(found, nullptr) << key;
    EXPECT_TRUE(*found == expected) << key;
  };
  same("u8", {ValueType::u8, false, uint64_t{255}});
  same("i8", {ValueType::i8, false, int64_t{-128}});
  same("u16", {ValueType::u16, false, uint64_t{65535}});
  same("i16", {ValueType::i16, false, int64_t{-32768}});
  same("u32", {ValueType::u32, false, uint64_t{4294967295}});
  same("i32", {ValueType::i32, false, int64_t{-2147483647}});
  same("u64", {ValueType::u64, false, ~uint64_t{0}});
  same("i64", {ValueType::i64, false, int64_t{-5}});
  same("f32", {ValueType::f32, false, 1.5});
  same("f64", {ValueType::f64, false, 0.1});
  same("bool", {ValueType::boolean, false, true});
  same("string", {ValueType::string, false, std::string("a\0b\xff", 4)});
  same("u8s", {ValueType::u8, true, std::vector<uint64_t>{1, 255}});
  same("i8s", {ValueType::i8, true, std::vector<int64_t>{1, -1}});
  same("u16s", {ValueType::u16, true, std::vector<uint64_t>{9}});
  same("i16s", {ValueType::i16, true, std::vector<int64_t>{-9}});
  same("u32s", {ValueType::u32, true, std::vector<uint64_t>{9}});
  same("i32s", {ValueType::i32, true, std::vector<int64_t>{-9}});
  same("u64s", {ValueType::u64, true, std::vector<uint64_t>{9}});
  same("i64s", {ValueType::i64, true, std::vector<int64_t>{-9}});
  same("f32s", {ValueType::f32, true, std::vector<double>{0.5, -2}});
  same("f64s", {ValueType::f64, true, std::vector<double>{0.1}});
  same("bools", {ValueType::boolean, true, std::vector<bool>{false, true, true}});
  same("strings", {ValueType::string, true, std::vector<std::string>{"", "xyz"}});
  EXPECT_EQ(m.entries().size(), 24u);
  EXPECT_EQ(m.entries().front().first, "u8");
}

TEST(GgufFile, RefusesWhatIsNotGguf) {
  const auto refusal = [](std::string_view text) {
    auto file = File::parse(std::as_bytes(std::span(text)), "f.gguf");
    return file ? std::string() : file.error().message;
  };
  EXPECT_EQ(refusal(""), "f.gguf: not a GGUF file: 0 bytes long, a header has 24");
  EXPECT_NE(refusal("PK\x03\x04 this is some other kind of file").find("found 'PK\\x03\\x04'"), std::string::npos);
  EXPECT_NE(refusal("version https://git-lfs.example/spec/v1").find("Git LFS"), std::string::npos);
}

TEST(GgufFile, RefusesOtherVersions) {
  EXPECT_TRUE(refused(RawFile(0, 0, 1), {"version 1", "expected 2 or 3"}));
  EXPECT_TRUE(refused(RawFile(0, 0, 4), {"version 4", "expected 2 or 3"}));
  EXPECT_TRUE(refused(RawFile(0, 0, 0), {"version 0"}));
  EXPECT_TRUE(refused(RawFile(0, 0, 0x03000000), {"byte-swapped", "0x03000000"}));
}

TEST(GgufFile, RefusesCountsThatCannotFit) {
  EXPECT_TRUE(refused(RawFile(0, ~uint64_t{0}), {"18446744073709551615 keys", "0 bytes"}));
  EXPECT_TRUE(refused(RawFile(~uint64_t{0}, 0), {"18446744073709551615 tensors"}));
  EXPECT_TRUE(refused(RawFile(0, 2).put<uint64_t>(0).put<uint64_t>(0), {"2 keys", "16 bytes"}));
  EXPECT_TRUE(refused(RawFile(2, 0).put<uint64_t>(0).put<uint64_t>(0).put<uint64_t>(0), {"2 tensors", "24 bytes"}));
}

TEST(GgufFile, RefusesTruncatedRecords) {
  EXPECT_TRUE(refused(RawFile(0, 1).put<uint64_t>(100).data(32), {"key 1 of 1", "100 bytes at byte 32", "remain"}));
  EXPECT_TRUE(refused(RawFile(0, 1).key("some.key", ValueType::u64).put<uint32_t>(1),
                      {"'some.key'", "8 bytes at byte 44", "only 4 remain"}));
  EXPECT_TRUE(refused(RawFile(1, 0).text("a").put<uint32_t>(1).put<uint64_t>(1).put<uint32_t>(0),
                      {"tensor 'a'", "8 bytes", "only 0 remain"}));
}

TEST(GgufFile, RefusesBadStrings) {
  EXPECT_TRUE(refused(RawFile(0, 1).u32("", 1).put<uint64_t>(0), {"key 1 of 1", "empty name", "byte 24"}));
  EXPECT_TRUE(refused(RawFile(0, 1).u32(std::string_view("a\0b", 3), 1), {"NUL", "'a\\x00b'"}));
  EXPECT_TRUE(refused(RawFile(0, 1).u32(std::string(65537, 'k'), 1), {"65537", "limit of 65536"}));
  EXPECT_EQ(RawFile(0, 1).u32(std::string(65536, 'k'), 1).refusal(), "");
  EXPECT_TRUE(refused(RawFile(0, 1).key("s", ValueType::string).text(std::string((16 << 20) + 1, 'v')),
                      {"'s'", "16777217", "limit of 16777216"}));
  EXPECT_TRUE(refused(RawFile(0, 1).key("s", ValueType::string).put(~uint64_t{0}), {"'s'", "18446744073709551615"}));
  EXPECT_TRUE(refused(RawFile(0, 1).array("s", ValueType::string, 2).text("ok").put<uint64_t>(9),
                      {"'s'", "9 bytes", "element 1 of 2"}));
  EXPECT_TRUE(refused(RawFile(1, 0).tensor("", {1}, kF32, 0).data(4), {"tensor 1 of 1", "empty name"}));
  EXPECT_TRUE(refused(RawFile(1, 0).tensor(std::string_view("\0", 1), {1}, kF32, 0).data(4), {"NUL"}));
}

TEST(GgufFile, NamesInMessagesCannotDriveATerminal) {
  const std::string message = RawFile(0, 1).key("\x1b[2J\n", 99).put<uint32_t>(0).refusal();
  EXPECT_NE(message.find("'\\x1b[2J\\x0a'"), std::string::npos) << message;
}

TEST(GgufFile, RefusesBadArrays) {
  EXPECT_TRUE(
      refused(RawFile(0, 1).array("a", ValueType::u8, (uint64_t{1} << 30) + 1), {"'a'", "1073741825", "limit"}));
  EXPECT_TRUE(refused(RawFile(0, 1).array("a", ValueType::u64, uint64_t{1} << 61), {"'a'", "limit"}));
  EXPECT_TRUE(refused(RawFile(0, 1).array("a", ValueType::u64, 3).put<uint64_t>(0), {"'a'", "3 u64", "24 bytes"}));
  EXPECT_TRUE(refused(RawFile(0, 1).array("a", ValueType::string, 1000).put<uint64_t>(0), {"'a'", "8000 bytes"}));
  EXPECT_TRUE(refused(RawFile(0, 1).array("a", ValueType::array, 0), {"'a'", "arrays of arrays"}));
  EXPECT_EQ(RawFile(0, 1).array("a", ValueType::string, 0).refusal(), "");
}

TEST(GgufFile, RefusesUnknownValueTypes) {
  EXPECT_TRUE(refused(RawFile(0, 1).key("a", 13).put<uint64_t>(0), {"'a'", "value type 13", "byte 33"}));
  EXPECT_TRUE(refused(RawFile(0, 1).array("a", static_cast<ValueType>(77), 0), {"'a'", "element type 77"}));
}

TEST(GgufFile, RefusesDuplicates) {
  EXPECT_TRUE(refused(RawFile(0, 2).u32("twice", 1).u32("twice", 2), {"'twice'", "again at byte 45"}));
  RawFile raw(2, 0);
  raw.tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).data(64);
  EXPECT_TRUE(refused(raw, {"tensor 't'", "more than once"}));
}

TEST(GgufFile, ChecksTheAlignment) {
  const char* key = "general.alignment";
  for (const uint32_t bad : {0u, 4u, 131072u, 0xffffffffu}) {
    EXPECT_TRUE(refused(RawFile(0, 1).u32(key, bad), {key, "8..65536", std::to_string(bad).c_str()}));
  }
  EXPECT_TRUE(refused(RawFile(0, 1).u32(key, 48), {key, "power of two", "48"}));
  EXPECT_TRUE(refused(RawFile(0, 1).key(key, ValueType::string).text("32"), {key, "string"}));
  EXPECT_TRUE(refused(RawFile(0, 1).key(key, ValueType::f32).put(32.f), {key, "f32 32"}));
  for (const uint32_t good : {8u, 64u, 4096u}) {
    RawFile raw(1, 1);
    raw.u32(key, good).tensor("t", {3}, kF32, good).data(good + 12, good);
    auto file = File::parse(raw.bytes());
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ((file->tensors()[0].data - raw.bytes().data()) % good, 0);
    EXPECT_EQ(file->tensors()[0].data + 12, raw.bytes().data() + raw.bytes().size());
  }
}

TEST(GgufFile, ChecksDimensions) {
  const auto one = [](const std::vector<uint64_t>& ne, uint32_t type = kF32) {
    return RawFile(1, 0).tensor("t", ne, type, 0).data(64);
  };
  EXPECT_TRUE(refused(one({}), {"tensor 't'", "0 dimensions", "1..4"}));
  EXPECT_TRUE(refused(one({1, 1, 1, 1, 1}), {"tensor 't'", "5 dimensions", "1..4"}));
  EXPECT_TRUE(refused(one({4, 0}), {"tensor 't'", "dimension 1 is 0"}));
  EXPECT_TRUE(refused(one({uint64_t{1} << 40}), {"tensor 't'", "dimension 0 is 1099511627776"}));
  const uint64_t big = (uint64_t{1} << 40) - 256;
  EXPECT_TRUE(refused(one({big, big}), {"tensor 't'", "overflows", "{1099511627520, 1099511627520}"}));
  EXPECT_TRUE(refused(one({big, 1 << 25, 1, 1}, 19), {"tensor 't'", "overflows"}));
  EXPECT_TRUE(refused(one({128}, kQ4_K), {"tensor 't'", "128", "Q4_K", "256"}));
}

TEST(GgufFile, NamesTheTypesItRefuses) {
  const auto one = [](uint32_t type) { return RawFile(1, 0).tensor("w", {256}, type, 0).data(4096); };
  EXPECT_TRUE(refused(one(145), {"tensor 'w'", "145", "IQ2_KS", "ik_llama.cpp"}));
  EXPECT_TRUE(refused(one(337), {"337", "IQ2_K_R4", "ik_llama.cpp"}));
  EXPECT_TRUE(refused(one(150), {"150", "Q8_K128", "ik_llama.cpp"}));
  EXPECT_TRUE(refused(one(300), {"300", "ik_llama.cpp"}));
  EXPECT_TRUE(refused(one(36), {"36", "I2_S", "ik_llama.cpp"}));
  EXPECT_TRUE(refused(one(4), {"4", "Q4_2", "removed"}));
  EXPECT_TRUE(refused(one(31), {"31", "Q4_0_4_4", "removed"}));
  EXPECT_TRUE(refused(one(9), {"9", "Q8_1", "activations"}));
  EXPECT_TRUE(refused(one(15), {"15", "Q8_K", "activations"}));
  EXPECT_TRUE(refused(one(43), {"43", "unknown"}));
  EXPECT_TRUE(refused(one(0xffffffff), {"4294967295", "unknown"}));
}

TEST(GgufFile, ChecksOffsets) {
  const auto one = [](uint64_t offset, size_t data) {
    return RawFile(1, 0).tensor("blk.0.attn_q.weight", {16}, kF32, offset).data(data);
  };
  EXPECT_TRUE(refused(one(4100, 8192), {"f.gguf: tensor 'blk.0.attn_q.weight': offset 4100 is not a multiple of the "
                                        "alignment 32"}));
  EXPECT_EQ(one(64, 128).refusal(), "");
  EXPECT_TRUE(refused(one(64, 127), {"'blk.0.attn_q.weight'", "64 bytes", "offset 64", "127 bytes"}));
  EXPECT_TRUE(refused(one(~uint64_t{31}, 128), {"offset 18446744073709551584"}));
  EXPECT_TRUE(refused(RawFile(1, 0).tensor("t", {16}, kF32, 0), {"data section starts at byte 64", "at 57"}));
}

TEST(GgufFile, RefusesOverlaps) {
  RawFile raw(3, 0);
  raw.tensor("c", {1}, kF32, 128).tensor("b", {1}, kF32, 32).tensor("a", {9}, kF32, 0).data(256);
  EXPECT_TRUE(refused(raw, {"tensor 'b'", "offset 32", "tensor 'a'", "0 to 36"}));
}

TEST(GgufFile, LimitsTheMemoryOfTables) {
  const auto refusal = [](const RawFile& raw, uint64_t limit) {
    MemoryBudget budget{limit};
    auto shard = parse_shard(raw.bytes(), "f.gguf", budget);
    if (shard) return std::string();
    EXPECT_EQ(shard.error().code, Code::exhausted);
    return shard.error().message;
  };
  // 1000 bytes in the file are held as 8000, with one entry besides.
  RawFile numbers(0, 1);
  numbers.array("a", ValueType::u8, 1000).data(1000, 1);
  EXPECT_NE(refusal(numbers, 8000).find("key 'a': the tables of the file need more"), std::string::npos);
  EXPECT_EQ(refusal(numbers, 8500), "");
  RawFile strings(0, 1);
  strings.array("s", ValueType::string, 100);
  for (int i = 0; i < 100; ++i) strings.text("0123456789");
  EXPECT_NE(refusal(strings, 4000), "");
  EXPECT_EQ(refusal(strings, 5000), "");
  RawFile tensors(2, 0);
  tensors.tensor("a", {1}, kF32, 0).tensor("b", {1}, kF32, 32).data(64);
  EXPECT_NE(refusal(tensors, 500), "");
  EXPECT_EQ(refusal(tensors, 600), "");
}

TEST(GgufFile, OpenSaysWhichPathIsMissing) {
  auto file = File::open("/nowhere/model.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::not_found);
  EXPECT_TRUE(file.error().message.starts_with("/nowhere/model.gguf: cannot open"));
}

TEST(GgufFile, OpensEverySharedFixture) {
  const char* shared = std::getenv("CHIMERE_SHARED");
  if (!shared) GTEST_SKIP() << "CHIMERE_SHARED is not set";
  size_t n_files = 0;
  for (const char* folder : {"fixtures", "tokenizers"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(shared) / folder)) {
      if (entry.path().extension() != ".gguf") continue;
      auto file = File::open(entry.path().string());
      ASSERT_TRUE(file) << file.error().message;
      ++n_files;
      EXPECT_TRUE(file->metadata().get_string("general.architecture")) << entry.path();
      if (file->metadata().contains("tokenizer.ggml.tokens")) {
        auto tokens = file->metadata().get_strings("tokenizer.ggml.tokens");
        ASSERT_TRUE(tokens) << tokens.error().message;
        EXPECT_GT(tokens->size(), 0u);
      }
      if (file->metadata().contains("tokenizer.ggml.scores")) {
        auto scores = file->metadata().get_floats("tokenizer.ggml.scores");
        EXPECT_TRUE(scores) << scores.error().message;
      }
      if (entry.path().filename() == "model.gguf") {
        EXPECT_GT(file->tensors().size(), 0u) << entry.path();
      }
    }
  }
  EXPECT_GT(n_files, 20u);
}

}  // namespace
}  // namespace chimere::gguf
