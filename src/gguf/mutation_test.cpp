// Tens of thousands of damaged files: none may crash, read out of bounds or ask for memory out of proportion, and
// whatever is still accepted must keep every promise of the header gguf.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "gguf/counted_memory_for_test.h"
#include "gguf/raw_file_for_test.h"
#include "gguf/summary.h"

namespace chimere::gguf {
namespace {

using Bytes = std::vector<std::byte>;

// Metadata of every kind, tensors of plain and block types.
RawFile rich_file() {
  RawFile raw(4, 10);
  raw.key("general.architecture", ValueType::string).text("qwen35moe");
  raw.u32("general.alignment", 32);
  raw.key("a.eps", ValueType::f32).put(1e-6f);
  raw.key("a.flag", ValueType::boolean).put<uint8_t>(1);
  raw.key("a.small", ValueType::u8).put<uint8_t>(3);
  raw.key("a.big", ValueType::i64).put<int64_t>(-1);
  raw.array("a.sections", ValueType::i32, 4).put<int32_t>(11).put<int32_t>(11).put<int32_t>(10).put<int32_t>(0);
  raw.array("tokens", ValueType::string, 4).text("<s>").text("").text("hello").text("\xff");
  raw.array("flags", ValueType::boolean, 3).put<uint8_t>(0).put<uint8_t>(1).put<uint8_t>(1);
  raw.array("scores", ValueType::f64, 2).put(0.5).put(-1.0);
  raw.tensor("token_embd.weight", {32, 4}, 8, 0);
  raw.tensor("blk.0.attn_q.weight", {256}, 12, 160);
  raw.tensor("blk.0.ffn_exps.weight", {4, 2, 2, 1}, 0, 320);
  raw.tensor("output_norm.weight", {8}, 0, 384);
  return raw.data(416);
}

RawFile vocabulary_file() {
  RawFile raw(0, 3, 2);
  raw.key("tokenizer.ggml.model", ValueType::string).text("gpt2");
  raw.array("tokenizer.ggml.tokens", ValueType::string, 12);
  for (int i = 0; i < 12; ++i) raw.text(std::string(i, 'x'));
  raw.array("tokenizer.ggml.token_type", ValueType::i32, 12);
  for (int i = 0; i < 12; ++i) raw.put<int32_t>(1);
  return raw;
}

RawFile tensors_file() {
  RawFile raw(9, 0);
  for (uint64_t i = 0; i < 9; ++i) raw.tensor(std::string(1, static_cast<char>('a' + i)), {4, 1 + i % 2}, 1, 32 * i);
  return raw.data(32 * 9);
}

class Mutations : public testing::Test {
 protected:
  // The heap block has exactly the size of the variant, so that a sanitizer sees the first byte beyond it.
  void try_variant(const Bytes& variant, const std::string& what) {
    ++n_variants_;
    const size_t before = allocated_bytes();
    auto file = File::parse(variant);
    const size_t allocated = allocated_bytes() - before;
    ASSERT_LE(allocated, 64 * variant.size() + 16384) << what;
    if (!file) {
      ASSERT_GT(file.error().message.size(), 8u) << what;
      return;
    }
    ++n_accepted_;
    std::vector<std::pair<const std::byte*, const std::byte*>> ranges;
    for (const TensorView& tensor : file->tensors()) {
      const std::byte* begin = variant.data();
      ASSERT_FALSE(tensor.name.empty()) << what;
      ASSERT_EQ(file->find(tensor.name), &tensor) << what;
      ASSERT_GE(tensor.data, begin) << what;
      const auto offset = static_cast<size_t>(tensor.data - begin);
      ASSERT_EQ(offset % 8, 0u) << what;
      ASSERT_LE(offset, variant.size()) << what;
      ASSERT_LE(tensor.size_bytes(), variant.size() - offset) << what;
      ASSERT_GT(tensor.elems(), 0u) << what;
      ranges.emplace_back(tensor.data, tensor.data + tensor.size_bytes());
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) ASSERT_LE(ranges[i - 1].second, ranges[i].first) << what;
    ASSERT_EQ(summarize(*file).metadata.size(), file->metadata().entries().size()) << what;
  }

  size_t n_variants_ = 0;
  size_t n_accepted_ = 0;
};

Bytes copy(const RawFile& raw) { return Bytes(raw.bytes().begin(), raw.bytes().end()); }

void overwrite(Bytes& bytes, const RawFile::Field& field, uint64_t value) {
  std::memcpy(bytes.data() + field.position, &value, field.bytes);
}

TEST_F(Mutations, NeverCrashAndNeverBreakAPromise) {
  std::mt19937_64 random(20240607);
  for (const RawFile& raw : {rich_file(), vocabulary_file(), tensors_file()}) {
    ASSERT_EQ(raw.refusal(), "");
    const Bytes good = copy(raw);
    const size_t header = raw.header_bytes();

    for (size_t n = 0; n < good.size(); ++n) {
      try_variant(Bytes(good.begin(), good.begin() + n), "cut to " + std::to_string(n));
    }
    for (size_t bit = 0; bit < header * 8; ++bit) {
      Bytes variant = good;
      variant[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      try_variant(variant, "bit " + std::to_string(bit));
    }
    std::vector<uint64_t> extremes = {
        0,  1,  2,  3,   4,   5,   7,     8,     9,     12,         13,         31,         32,         33,        36,
        43, 63, 64, 137, 255, 256, 65535, 65536, 65537, 0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, 1ull << 40};
    for (const uint64_t more :
         {good.size() - 1, good.size(), good.size() + 1, good.size() / 8, good.size() / 13, good.size() / 24,
          uint64_t{1} << 30, (uint64_t{1} << 30) + 1, (uint64_t{1} << 40) - 1, uint64_t{1} << 61,
          (uint64_t{1} << 63) - 1, uint64_t{1} << 63, ~uint64_t{0} - 31, ~uint64_t{0} - 7, ~uint64_t{0}}) {
      extremes.push_back(more);
    }
    for (const RawFile::Field& field : raw.fields()) {
      if (field.position >= header) continue;
      for (const uint64_t value : extremes) {
        Bytes variant = good;
        overwrite(variant, field, value);
        try_variant(variant, "field at " + std::to_string(field.position) + " = " + std::to_string(value));
      }
    }
    // Two fields at once reach states that one alone is stopped before.
    for (int round = 0; round < 3000; ++round) {
      Bytes variant = good;
      for (int i = 0; i < 2; ++i) {
        overwrite(variant, raw.fields()[random() % raw.fields().size()], extremes[random() % extremes.size()]);
      }
      try_variant(variant, "pair " + std::to_string(round));
    }
    for (int round = 0; round < 2000; ++round) {
      Bytes variant = good;
      for (uint64_t i = 0, n = 1 + random() % 8; i < n; ++i) {
        variant[random() % header] = static_cast<std::byte>(random());
      }
      if (random() % 4 == 0) variant.resize(random() % (good.size() + 64));
      try_variant(variant, "random " + std::to_string(round));
    }
  }
  EXPECT_GE(n_variants_, 20000u);
  // Damage in names and values goes unnoticed by design; a test in which nothing passes would prove little.
  EXPECT_GE(n_accepted_, 1000u);
  RecordProperty("variants", static_cast<int>(n_variants_));
  RecordProperty("accepted", static_cast<int>(n_accepted_));
}

}  // namespace
}  // namespace chimere::gguf
