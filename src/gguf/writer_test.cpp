#include "gguf/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "base/platform/mapped_file.h"

namespace chimere::gguf {
namespace {

std::vector<std::byte> pattern(size_t bytes, int seed) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 31 + seed);
  return out;
}

void expect_same(const Metadata& a, const Metadata& b) {
  ASSERT_EQ(a.entries().size(), b.entries().size());
  for (size_t i = 0; i < a.entries().size(); ++i) {
    EXPECT_EQ(a.entries()[i].first, b.entries()[i].first);
    EXPECT_TRUE(a.entries()[i].second == b.entries()[i].second) << a.entries()[i].first;
  }
}

void fill_all_types(Metadata& m) {
  using V = ValueType;
  for (const auto& [type, low, high] : {std::tuple<V, int64_t, int64_t>{V::u8, 0, 255},
                                        {V::i8, -128, 127},
                                        {V::u16, 0, 65535},
                                        {V::i16, -32768, 32767},
                                        {V::u32, 0, 4294967295},
                                        {V::i32, std::numeric_limits<int32_t>::min(), 2147483647},
                                        {V::u64, 0, std::numeric_limits<int64_t>::max()},
                                        {V::i64, std::numeric_limits<int64_t>::min(), 9223372036854775807}}) {
    const std::string id = std::to_string(static_cast<int>(type));
    m.set_int("low." + id, type, low);
    m.set_int("high." + id, type, high);
    if (low == 0) {
      m.set("array." + id, {type, true, std::vector<uint64_t>{0, static_cast<uint64_t>(high), 3}});
    } else {
      m.set("array." + id, {type, true, std::vector<int64_t>{low, high, -3}});
    }
  }
  m.set("u64", {V::u64, false, ~uint64_t{0}});
  m.set_float("f32", 0.1);
  m.set("f64", {V::f64, false, 0.1});
  m.set_bool("yes", true);
  m.set_bool("no", false);
  m.set_string("text", std::string("a\0\xff", 3));
  m.set_string("empty", "");
  m.set("f32s", {V::f32, true, std::vector<double>{0.5, -0.25, 1e30f}});
  m.set("f64s", {V::f64, true, std::vector<double>{0.1}});
  m.set("bools", {V::boolean, true, std::vector<bool>{true, false, true}});
  m.set("strings", {V::string, true, std::vector<std::string>{"", "b", std::string(1000, 'c')}});
  m.set("none", {V::string, true, std::vector<std::string>{}});
}

TEST(GgufWriter, RoundTripsEveryValueType) {
  Writer writer;
  fill_all_types(writer.metadata());
  auto bytes = writer.write_memory();
  ASSERT_TRUE(bytes) << bytes.error().message;
  auto file = File::parse(*bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  expect_same(file->metadata(), writer.metadata());
}

TEST(GgufWriter, RoundTripsEveryTensorTypeAtEveryAlignment) {
  for (const int alignment : {0, 8, 32, 64, 4096}) {
    Writer writer;
    if (alignment) writer.metadata().set_int("general.alignment", ValueType::u32, alignment);
    std::vector<std::vector<std::byte>> data;
    for (const DTypeInfo& type : all_dtypes()) {
      data.push_back(pattern(3 * 2 * row_bytes(type.type, type.block_elems), data.size()));
    }
    size_t i = 0;
    for (const DTypeInfo& type : all_dtypes()) {
      const Shape ne = {static_cast<uint64_t>(type.block_elems), 3, 2, 1};
      auto status = writer.add_tensor("t." + std::string(type.name), type.type, ne, data[i++]);
      ASSERT_TRUE(status) << status.error().message;
    }
    auto bytes = writer.write_memory();
    ASSERT_TRUE(bytes) << bytes.error().message;
    auto file = File::parse(*bytes);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(file->tensors().size(), data.size());
    for (i = 0; i < data.size(); ++i) {
      const TensorView& tensor = file->tensors()[i];
      EXPECT_EQ(tensor.name, "t." + std::string(all_dtypes()[i].name));
      EXPECT_EQ(tensor.type, all_dtypes()[i].type);
      EXPECT_EQ(tensor.ne, (Shape{static_cast<uint64_t>(all_dtypes()[i].block_elems), 3, 2, 1}));
      ASSERT_EQ(tensor.size_bytes(), data[i].size());
      EXPECT_EQ(std::memcmp(tensor.data, data[i].data(), data[i].size()), 0);
      EXPECT_EQ((tensor.data - bytes->data()) % (alignment ? alignment : 32), 0);
    }
  }
}

TEST(GgufWriter, ADiskWithoutRoomIsNoticedBeforeTheFirstTensor) {
  const std::string path = testing::TempDir() + "gguf_no_room_" + std::to_string(std::random_device{}()) + ".gguf";
  Writer writer;
  bool asked = false;
  ASSERT_TRUE(writer.add_tensor("a", DType::I8, {uint64_t{1} << 39, uint64_t{1} << 16, 1, 1},
                                [&](const Writer::Sink&) -> Status {
                                  asked = true;
                                  return Error{Code::io, "the source was asked"};
                                }));
  const Status status = writer.write_file_in_runs(path, 1, [](uint64_t, uint64_t) { return true; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::exhausted) << status.error().message;
  EXPECT_NE(status.error().message.find("the disk has"), std::string::npos) << status.error().message;
  EXPECT_FALSE(asked);
  std::filesystem::remove(path + ".part");
}

TEST(GgufWriter, WritesFilesInChunksAndAtomically) {
  const std::string name = "gguf_writer_" + std::to_string(std::random_device{}()) + ".gguf";
  const std::string path = testing::TempDir() + name;
  const auto data = pattern(4000, 1);
  Writer writer;
  fill_all_types(writer.metadata());
  ASSERT_TRUE(writer.add_tensor("a", DType::F32, {1000, 1, 1, 1}, [&](const Writer::Sink& sink) -> Status {
    for (size_t at = 0; at < data.size(); at += 1000) TRY(sink(std::span(data).subspan(at, 1000)));
    return Ok{};
  }));
  ASSERT_TRUE(writer.add_tensor("b", DType::I8, {7, 1, 1, 1}, std::span(data).first(7)));
  auto status = writer.write_file(path);
  ASSERT_TRUE(status) << status.error().message;
  {
    auto file = File::open(path);
    ASSERT_TRUE(file) << file.error().message;
    expect_same(file->metadata(), writer.metadata());
    EXPECT_EQ(std::memcmp(file->find("a")->data, data.data(), data.size()), 0);
    EXPECT_EQ(std::memcmp(file->find("b")->data, data.data(), 7), 0);
  }
  // A write that fails half way leaves the old file and nothing beside it.
  Writer failing;
  ASSERT_TRUE(failing.add_tensor("a", DType::I8, {8, 1, 1, 1}, [](const Writer::Sink&) -> Status {
    return Error{Code::io, "the source broke"};
  }));
  EXPECT_FALSE(failing.write_file(path));
  auto file = File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 2u);
  for (const auto& entry : std::filesystem::directory_iterator(testing::TempDir())) {
    EXPECT_EQ(entry.path().filename().string().find(name + ".tmp"), std::string::npos);
  }
  std::filesystem::remove(path);
}

TEST(GgufWriter, RewritesSharedFixturesUnchanged) {
  const char* shared = std::getenv("CHIMERE_SHARED");
  if (!shared) GTEST_SKIP() << "CHIMERE_SHARED is not set";
  size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(shared) / "fixtures")) {
    const std::string path = (entry.path() / "model.gguf").string();
    if (!std::filesystem::exists(path)) continue;
    ++n_files;
    auto file = File::open(path);
    ASSERT_TRUE(file) << file.error().message;
    Writer writer;
    writer.metadata() = file->metadata();
    for (const TensorView& t : file->tensors()) {
      ASSERT_TRUE(writer.add_tensor(std::string(t.name), t.type, t.ne, std::span(t.data, t.size_bytes())));
    }
    auto bytes = writer.write_memory();
    ASSERT_TRUE(bytes) << bytes.error().message;
    auto again = File::parse(*bytes);
    ASSERT_TRUE(again) << again.error().message;
    expect_same(again->metadata(), file->metadata());
    ASSERT_EQ(again->tensors().size(), file->tensors().size());
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      const TensorView& a = file->tensors()[i];
      const TensorView& b = again->tensors()[i];
      EXPECT_EQ(a.name, b.name);
      EXPECT_EQ(a.type, b.type);
      EXPECT_EQ(a.ne, b.ne);
      ASSERT_EQ(a.size_bytes(), b.size_bytes());
      EXPECT_EQ(std::memcmp(a.data, b.data, a.size_bytes()), 0) << a.name;
    }
    // Another writer's file, byte for byte, save for the dimensions of 1 that some writers keep at the end.
    if (entry.path().filename() == "qwen3-A") {
      auto original = MappedFile::open(path);
      ASSERT_TRUE(original);
      EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), original->bytes().begin(), original->bytes().end()));
    }
  }
  EXPECT_GT(n_files, 10u);
}

TEST(GgufWriter, RefusesBadTensors) {
  const auto message = [](Status status) { return status ? std::string() : status.error().message; };
  const auto data = pattern(1024, 0);
  Writer writer;
  EXPECT_EQ(message(writer.add_tensor("t", DType::F32, {4, 1, 1, 1}, std::span(data).first(12))),
            "tensor 't': F32 {4} takes 16 bytes, found 12");
  EXPECT_EQ(message(writer.add_tensor("", DType::F32, {4, 1, 1, 1}, std::span(data).first(16))),
            "tensor without a name");
  EXPECT_EQ(message(writer.add_tensor("t", DType::Q4_K, {32, 1, 1, 1}, data)),
            "tensor 't': row length 32 is not a multiple of the Q4_K block of 256");
  EXPECT_EQ(message(writer.add_tensor("t", DType::F32, {4, 0, 1, 1}, data)),
            "tensor 't': dimension 1 is 0, expected 1..1099511627775");
  EXPECT_EQ(message(writer.add_tensor("t", DType::F32, {4, 1, 1, 1}, std::span(data).first(16))), "");
  EXPECT_EQ(message(writer.add_tensor("t", DType::F32, {4, 1, 1, 1}, std::span(data).first(16))),
            "tensor 't' was added before");
  for (const size_t given : {size_t{8}, size_t{17}}) {
    Writer wrong;
    ASSERT_TRUE(wrong.add_tensor("t", DType::I8, {16, 1, 1, 1},
                                 [&](const Writer::Sink& sink) { return sink(std::span(data).first(given)); }));
    auto bytes = wrong.write_memory();
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().message, "tensor 't': its source gave " + std::to_string(given) + " bytes, expected 16");
  }
}

TEST(GgufWriter, RefusesValuesThatDoNotMatchTheirType) {
  const auto refusal = [](Value value) {
    Writer writer;
    writer.metadata().set("k", std::move(value));
    auto bytes = writer.write_memory();
    return bytes ? std::string() : bytes.error().message;
  };
  EXPECT_NE(refusal({ValueType::u8, false, uint64_t{256}}).find("key 'k' (u8 256)"), std::string::npos);
  EXPECT_NE(refusal({ValueType::i8, true, std::vector<int64_t>{-129}}), "");
  EXPECT_NE(refusal({ValueType::i8, false, uint64_t{1}}), "");
  EXPECT_NE(refusal({ValueType::string, false, 1.0}), "");
  EXPECT_NE(refusal({ValueType::f32, true, 1.0}), "");
  EXPECT_NE(refusal({ValueType::f32, false, std::vector<double>{1}}), "");
  EXPECT_NE(refusal({ValueType::array, true, std::vector<double>{1}}), "");
  EXPECT_EQ(refusal({ValueType::f32, true, std::vector<double>{1}}), "");

  Writer writer;
  writer.metadata().set_int("general.alignment", ValueType::u32, 24);
  auto bytes = writer.write_memory();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().message, "key 'general.alignment': expected a power of two, found 24");
}

}  // namespace
}  // namespace chimere::gguf
