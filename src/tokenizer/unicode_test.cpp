// unicode_test.cpp  Characters and normal forms.
#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace chimere::tokenizer {
namespace {

TEST(Unicode, DecodesStrictly) {
  EXPECT_EQ(char_at("\u00E9", 0).code, 0xE9u);
  EXPECT_EQ(char_at("\U0001F600", 0).code, 0x1F600u);
  for (const char* bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\x80", "\xE2\x82"}) {
    EXPECT_EQ(char_at(bad, 0).code, kInvalidChar);
    EXPECT_EQ(char_at(bad, 0).len, 1);
  }
}

TEST(Unicode, Classes) {
  const auto classes = [](std::string_view text) { return char_at(text, 0).classes; };
  EXPECT_EQ(classes("A"), kUpper);
  EXPECT_EQ(classes("ǅ"), kUpper);
  EXPECT_EQ(classes("é"), kLower);
  EXPECT_EQ(classes("中"), kOtherLetter);
  EXPECT_EQ(classes("½"), kNumber);
  EXPECT_EQ(classes("\u0301"), kMark);
  EXPECT_EQ(classes("_"), kPunctuation);
  EXPECT_EQ(classes("`"), kSymbol);
  EXPECT_EQ(classes("\n"), kSpace | kNewline);
  EXPECT_EQ(classes("\u0085"), kSpace);
  EXPECT_EQ(classes("\u3000"), kSpace);
  EXPECT_EQ(classes("\u200B"), 0);
}

TEST(Unicode, NormalForms) {
  EXPECT_EQ(to_nfc("e\u0301"), "é");
  EXPECT_EQ(to_nfc("a\u0301\u0323"), "\u1EA1\u0301");
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(to_nfc("\xFF"
                   "e\u0301\xC3"),
            "\xFFé\xC3")
      << "invalid bytes stay";
  EXPECT_EQ(to_nfd("é"), "e\u0301");
  EXPECT_FALSE(may_change_under_nfc("déjà vu"));
  EXPECT_TRUE(may_change_under_nfc("e\u0301"));
}

TEST(Unicode, LongRunsOfMarksAreSortedFast) {
  std::string marks = "a";
  for (int i = 0; i < 200000; ++i) marks += "\u0301";
  for (int i = 0; i < 200000; ++i) marks += "\u0327";  // belongs in front of all those above
  const std::string composed = to_nfc(marks);
  EXPECT_EQ(composed.substr(0, 6), "\u00E1\u0327\u0327");
}

}  // namespace
}  // namespace chimere::tokenizer
