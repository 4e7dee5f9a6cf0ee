// qr_code_test.cpp  A code that another reader knows, and what every reader looks for.
#include "terminal/qr_code.h"

#include <gtest/gtest.h>

#include <string>

namespace chimere::apps {
namespace {

// A reader for the version 4 codes of level L that our addresses become, written from ISO 18004: the mask is undone,
// modules are read in pairs of columns from the right, and of one block of 100 codewords the first 80 are data.
std::string read_version_4(const QrCode& code) {
  const int n = code.size;
  EXPECT_EQ(n, 33);
  int format = 0;  // beside the upper left square, the highest bit first
  for (int column : {0, 1, 2, 3, 4, 5, 7, 8}) format = format << 1 | code.at(8, column);
  for (int row : {7, 5, 4, 3, 2, 1, 0}) format = format << 1 | code.at(row, 8);
  format ^= 0x5412;
  EXPECT_EQ(format >> 13, 1) << "level L";
  const int mask = format >> 10 & 7;
  const auto is_flipped = [mask](int i, int j) {
    switch (mask) {
      case 0: return (i + j) % 2 == 0;
      case 1: return i % 2 == 0;
      case 2: return j % 3 == 0;
      case 3: return (i + j) % 3 == 0;
      case 4: return (i / 2 + j / 3) % 2 == 0;
      case 5: return i * j % 2 + i * j % 3 == 0;
      case 6: return (i * j % 2 + i * j % 3) % 2 == 0;
      default: return ((i + j) % 2 + i * j % 3) % 2 == 0;
    }
  };
  const auto is_pattern = [n](int i, int j) {
    const bool in_corner = (i < 9 && j < 9) || (i < 9 && j >= n - 8) || (i >= n - 8 && j < 9);
    const bool is_timing = i == 6 || j == 6;
    const bool is_alignment = i >= 24 && i <= 28 && j >= 24 && j <= 28;
    return in_corner || is_timing || is_alignment;
  };
  std::vector<bool> bits;
  bool goes_up = true;
  for (int right = n - 1; right > 0; right -= 2, goes_up = !goes_up) {
    if (right == 6) --right;
    for (int k = 0; k < n; ++k) {
      const int i = goes_up ? n - 1 - k : k;
      for (int j : {right, right - 1}) {
        if (!is_pattern(i, j)) bits.push_back(code.at(i, j) != is_flipped(i, j));
      }
    }
  }
  size_t at = 0;
  const auto take = [&](int n_bits) {
    int value = 0;
    for (int i = 0; i < n_bits; ++i) value = value << 1 | (bits[at++] ? 1 : 0);
    return value;
  };
  EXPECT_EQ(take(4), 4) << "bytes";
  std::string text(static_cast<size_t>(take(8)), '\0');
  EXPECT_LE(text.size(), 78u);
  for (char& c : text) c = static_cast<char>(take(8));
  return text;
}

TEST(QrCode, IsReadAsWhatWasWritten) {
  for (const char* host : {"192.168.1.20:8081", "10.0.0.7:8081", "172.16.254.254:65535"}) {
    const std::string address = std::string("http://") + host + "/#pair=0123456789abcdef0123456789abcdef";
    const auto code = qr_code(address);
    ASSERT_TRUE(code) << code.error().message;
    EXPECT_EQ(read_version_4(*code), address);
  }
}

TEST(QrCode, HasItsThreeSquares) {
  const auto code = qr_code("x");
  ASSERT_TRUE(code);
  ASSERT_EQ(code->size, 21);
  for (const auto& [row, column] : {std::pair(0, 0), std::pair(0, 14), std::pair(14, 0)}) {
    for (int i = 0; i < 7; ++i) {
      for (int j = 0; j < 7; ++j) {
        const bool is_ring = i == 0 || i == 6 || j == 0 || j == 6;
        const bool is_middle = i >= 2 && i <= 4 && j >= 2 && j <= 4;
        EXPECT_EQ(code->at(row + i, column + j), is_ring || is_middle) << row + i << " " << column + j;
      }
    }
  }
}

TEST(QrCode, RefusesWhatATerminalCanNotShow) {
  EXPECT_TRUE(qr_code(std::string(271, 'x')));
  EXPECT_FALSE(qr_code(std::string(272, 'x')));
  EXPECT_FALSE(qr_code(""));
  EXPECT_FALSE(qr_code(std::string_view("a\0b", 3)));
}

TEST(QrCode, IsDrawnWithItsBorder) {
  QrCode code;
  code.size = 2;
  code.dark = {true, false, true, true};
  const std::string text = drawn(code, false);
  std::string line;
  for (int i = 0; i < 4; ++i) line += "\u2588";
  const std::string blank = line + line + "\u2588\u2588\n";
  EXPECT_EQ(text, blank + blank + line + " \u2580" + line + "\n" + blank + blank);
  EXPECT_NE(drawn(code, true).find("\033[97;40m"), std::string::npos);
}

}  // namespace
}  // namespace chimere::apps
