// escapes.h  Characters written as hexadecimal numbers.
#pragma once

#include <string_view>

#include "text/utf8.h"

namespace chimere::grammar {

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Exactly n hexadecimal digits at `pos`, which moves behind them; kInvalidChar when they are not there.
inline char32_t hex_number(std::string_view text, size_t& pos, size_t n) {
  if (pos + n > text.size()) return kInvalidChar;
  char32_t value = 0;
  for (size_t i = 0; i < n; ++i) {
    const int digit = hex_digit(text[pos + i]);
    if (digit < 0) return kInvalidChar;
    value = value << 4 | static_cast<char32_t>(digit);
  }
  pos += n;
  return value;
}

}  // namespace chimere::grammar
