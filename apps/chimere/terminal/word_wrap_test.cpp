// What a person sees: the output is drawn on a screen of cells.
#include "terminal/word_wrap.h"

#include <gtest/gtest.h>

#include <vector>

#include "tokenizer/unicode.h"

namespace chimere::apps {
namespace {

// A terminal that knows what WordWrap writes: characters of one or two cells, \n, CSI n D, CSI K; it goes on in the
// next line at its edge. A cell behind a wide character is empty.
class CellScreen {
 public:
  explicit CellScreen(size_t columns) : columns_(columns) {}

  void write(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '\033') {
        at = command(text, at + 2);
        continue;
      }
      const tokenizer::Char c = tokenizer::char_at(text, at);
      const std::string character(text.substr(at, c.len));
      at += c.len;
      if (c.code == '\n') {
        lines_.emplace_back();
        soft_.push_back(false);
        x_ = 0;
        continue;
      }
      if (c.code == 0x301) {  // stands over the character before
        lines_.back()[x_ - 1] += character;
        continue;
      }
      const bool is_wide = c.code >= 0x1100;
      if (x_ + (is_wide ? 2 : 1) > columns_) {
        lines_.emplace_back();
        soft_.push_back(true);
        x_ = 0;
      }
      lines_.back().resize(std::max(lines_.back().size(), x_ + (is_wide ? 2 : 1)), " ");
      lines_.back()[x_++] = character;
      if (is_wide) lines_.back()[x_++] = "";
    }
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& line : lines_) {
      std::string text;
      for (const std::string& cell : line) text += cell;
      while (!text.empty() && text.back() == ' ') text.pop_back();
      out.push_back(text);
    }
    return out;
  }
  // The line goes on from the one before by itself, so that copying joins them.
  bool is_soft(size_t line) const { return soft_[line]; }

 private:
  size_t command(std::string_view text, size_t at) {
    size_t n = 0;
    while (text[at] >= '0' && text[at] <= '9') n = n * 10 + static_cast<size_t>(text[at++] - '0');
    if (text[at] == 'D') x_ -= std::min(x_, n);
    if (text[at] == 'K') lines_.back().resize(std::min(lines_.back().size(), x_));
    return at + 1;
  }

  size_t columns_;
  size_t x_ = 0;
  std::vector<std::vector<std::string>> lines_{1};
  std::vector<bool> soft_{false};
};

CellScreen drawn(std::string_view text, int columns, size_t piece) {
  WordWrap wrap(columns);
  CellScreen screen(static_cast<size_t>(columns));
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.size(), at + piece);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    screen.write(wrap.push(text.substr(at, end - at)));
    at = end;
  }
  return screen;
}

using Lines = std::vector<std::string>;

TEST(WordWrap, WordsAreNotCut) {
  const std::string text = "The quick brown fox jumps over the lazy dog, and then it sleeps.\n- a point\n";
  for (const size_t piece : {1, 3, 7, 100}) {
    EXPECT_EQ(drawn(text, 16, piece).lines(),
              (Lines{"The quick brown", "fox jumps over", "the lazy dog,", "and then it", "sleeps.", "- a point", ""}))
        << piece;
  }
  EXPECT_EQ(drawn("a  b\n    indented text here\n", 16, 1).lines(), (Lines{"a  b", "    indented", "text here", ""}));
}

TEST(WordWrap, WideAndCombiningCharacters) {
  EXPECT_EQ(drawn("日本語の文章です", 9, 3).lines(), (Lines{"日本語の", "文章です"}));
  EXPECT_EQ(drawn("abcd 日本", 8, 3).lines(), (Lines{"abcd 日", "本"}));
  EXPECT_EQ(drawn("cafe\u0301 cafe\u0301 cafe\u0301 x", 16, 1).lines(),
            (Lines{"cafe\u0301 cafe\u0301 cafe\u0301", "x"}));
}

TEST(WordWrap, CodeAndLongWordsStayWhole) {
  const std::string code = "for (int i = 0; i < 10; ++i) print(i);";
  const CellScreen screen = drawn("Look:\n```cpp\n" + code + "\n```\nwords that are wrapped", 16, 4);
  EXPECT_EQ(screen.lines(), (Lines{"Look:", "```cpp", "for (int i = 0;", "i < 10; ++i) pri", "nt(i);", "```",
                                   "words that are", "wrapped"}));
  EXPECT_TRUE(screen.is_soft(3) && screen.is_soft(4)) << "a copy of the code would have new line ends";
  EXPECT_FALSE(screen.is_soft(7));

  const std::string address = "https://example.org/a/long/path/that/does/not/fit";
  const CellScreen long_word = drawn("see " + address + " there", 16, 1);
  std::string joined;
  for (size_t i = 1; i < 5; ++i) joined += long_word.lines()[i];
  EXPECT_EQ(long_word.lines()[0], "see");
  EXPECT_EQ(joined.substr(0, address.size()), address);
  EXPECT_TRUE(long_word.is_soft(2));
}

TEST(WordWrap, TicksInsideALineAreNoFence) {
  EXPECT_EQ(drawn("```x``` is code\none two three four", 12, 2).lines().back(), "three four");
}

TEST(WordWrap, WithoutAScreenTextPasses) {
  const std::string text = "a very long line without any end in sight";
  EXPECT_EQ(WordWrap().push(text), text);
}

TEST(Harmless, ControlCharactersBecomeSigns) {
  EXPECT_EQ(harmless("a\033]0;title\007b"), "a\u241B]0;title\u2407b");
  EXPECT_EQ(harmless("line\r\nnext\ttab\b\x7f"), "line\nnext\ttab\u2408\u2421");
  EXPECT_EQ(harmless("\xC2\x9B"
                     "31m \xFF é 日"),
            "\uFFFD"
            "31m \uFFFD é 日")
      << "CSI in one character, a stray byte";
}

}  // namespace
}  // namespace chimere::apps
