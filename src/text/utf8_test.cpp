// utf8_test.cpp  The decoder against utf8proc's on every edge of the encoding, and the stream of bytes.
#include "text/utf8.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace chimere {
namespace {

// The code utf8proc finds at the start of a text, or kInvalidChar.
char32_t oracle(std::string_view text) {
  utf8proc_int32_t code = -1;
  const auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                  static_cast<utf8proc_ssize_t>(text.size()), &code);
  return n > 0 ? static_cast<char32_t>(code) : kInvalidChar;
}

TEST(Utf8, DecodesLikeTheLibraryAtEveryEdge) {
  std::vector<char> edges;
  for (const int byte : {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                         0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF}) {
    edges.push_back(static_cast<char>(byte));
  }
  for (const char a : edges) {
    for (const char b : edges) {
      for (const char c : edges) {
        for (const char d : edges) {
          const std::string all = {a, b, c, d};
          for (size_t size = 1; size <= 4; ++size) {
            const std::string_view text = std::string_view(all).substr(0, size);
            const CodePoint found = decode_at(text, 0);
            ASSERT_EQ(found.value, oracle(text));
            ASSERT_EQ(found.n_bytes, std::max<size_t>(1, utf8_length(text, 0)));
            ASSERT_EQ(utf8_length(text, 0) == 0, found.value == kInvalidChar);
          }
        }
      }
    }
  }
}

TEST(Utf8, WritesWhatItReads) {
  for (char32_t code = 0; code <= kLastCodePoint; ++code) {
    if (code == 0xD800) code = 0xE000;
    std::string text;
    append_utf8(code, text);
    size_t pos = 0;
    ASSERT_EQ(next_char(text, pos), code);
    ASSERT_EQ(pos, text.size());
    ASSERT_EQ(next_char(text, pos), kInvalidChar);
  }
}

TEST(Utf8, KnowsWhatIsUnfinished) {
  EXPECT_EQ(incomplete_utf8("a€"), 0u);
  EXPECT_EQ(incomplete_utf8("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_utf8("\xF0"), 1u);
  EXPECT_EQ(incomplete_utf8(""), 0u);
  EXPECT_TRUE(is_valid_utf8("ça €"));
  EXPECT_FALSE(is_valid_utf8("a\xE2\x82"));
}

TEST(Utf8Stream, ReplacesMaximalIllFormedPieces) {
  const auto filter = [](std::string_view bytes) {
    std::string whole, single;
    Utf8Stream a, b;
    a.push(bytes, whole);
    a.finish(whole);
    for (const char c : bytes) b.push({&c, 1}, single);
    b.finish(single);
    EXPECT_EQ(whole, single);
    return whole;
  };
  EXPECT_EQ(filter("ok é \U0001F600"), "ok é \U0001F600");
  EXPECT_EQ(filter("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(filter("\xE2\x82x"), "\uFFFDx");
  EXPECT_EQ(filter("\xF0\x9F\xE2\x82\xAC"), "\uFFFD€");
  EXPECT_EQ(filter("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(filter("\xC0\xAF"), "\uFFFD\uFFFD");
}

}  // namespace
}  // namespace chimere
