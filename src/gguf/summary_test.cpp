#include "gguf/summary.h"

#include <gtest/gtest.h>

#include "gguf/writer.h"

namespace chimere::gguf {
namespace {

TEST(GgufSummary, CountsByTypeAndShortensValues) {
  Writer writer;
  Metadata& m = writer.metadata();
  m.set_string("general.architecture", "qwen35moe");
  m.set_string("general.name", "Tiny\x1b[31m");
  m.set("tokenizer.ggml.tokens", {ValueType::string, true, std::vector<std::string>(300, "x")});
  m.set("sections", {ValueType::i32, true, std::vector<int64_t>{11, 11, 10, 0}});
  m.set("many", {ValueType::f32, true, std::vector<double>(9, 0.5)});
  m.set_float("eps", 1e-6);
  const std::vector<std::byte> data(4096);
  ASSERT_TRUE(writer.add_tensor("a", DType::Q4_K, {512, 2, 1, 1}, std::span(data).first(4 * 144)));
  ASSERT_TRUE(writer.add_tensor("b", DType::F32, {512, 1, 1, 1}, std::span(data).first(2048)));
  ASSERT_TRUE(writer.add_tensor("c", DType::F32, {3, 1, 1, 1}, std::span(data).first(12)));
  auto bytes = writer.write_memory();
  ASSERT_TRUE(bytes);
  auto file = File::parse(*bytes);
  ASSERT_TRUE(file);

  const Summary s = summarize(*file);
  EXPECT_EQ(s.architecture, "qwen35moe");
  EXPECT_EQ(s.model_name, "Tiny\\x1b[31m");
  EXPECT_EQ(s.version, 3u);
  EXPECT_EQ(s.n_shards, 1u);
  EXPECT_EQ(s.file_bytes, bytes->size());
  EXPECT_EQ(s.n_tensors, 3u);
  EXPECT_EQ(s.n_parameters, 1024u + 512u + 3u);
  EXPECT_EQ(s.tensor_bytes, 576u + 2048u + 12u);
  EXPECT_DOUBLE_EQ(s.bits_per_weight(), 8.0 * 2636 / 1539);
  ASSERT_EQ(s.types.size(), 2u);
  EXPECT_EQ(s.types[0].type, DType::F32);
  EXPECT_EQ(s.types[0].n_tensors, 2u);
  EXPECT_EQ(s.types[0].n_parameters, 515u);
  EXPECT_EQ(s.types[0].n_bytes, 2060u);
  EXPECT_EQ(s.types[1].type, DType::Q4_K);
  ASSERT_EQ(s.metadata.size(), 6u);
  EXPECT_EQ(s.metadata[2].key, "tokenizer.ggml.tokens");
  EXPECT_EQ(s.metadata[2].type, "string[300]");
  EXPECT_EQ(s.metadata[2].text, "[300 strings]");
  EXPECT_EQ(s.metadata[3].text, "[11, 11, 10, 0]");
  EXPECT_EQ(s.metadata[4].text, "[9 f32s]");
  EXPECT_EQ(s.metadata[5].text, "1e-06");
}

TEST(GgufSummary, TextIsSafeToPrint) {
  EXPECT_EQ(printable("Chimère ✓ 🙂", 80), "Chimère ✓ 🙂");
  EXPECT_EQ(printable("a\n\tb\x7f", 80), "a\\n\\tb\\x7f");
  EXPECT_EQ(printable("\xff\xc3", 80), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m",
                      80),
            "\\xc2\\x9b31m");                                            // a control character of Latin-1
  EXPECT_EQ(printable("\xe0\x80\xaf", 80), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80", 80), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80", 80), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("ab✓", 4), "ab...");
}

}  // namespace
}  // namespace chimere::gguf
