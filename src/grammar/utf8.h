// utf8.h  Characters out of a text that people wrote.
#pragma once

#include <string_view>

namespace chimere::grammar {

inline constexpr char32_t kNoChar = 0xFFFFFFFF;

// The character at `pos`, which moves behind it; kNoChar for bytes that are no UTF-8 (pos moves by one) and at the end.
inline char32_t next_char(std::string_view text, size_t& pos) {
  if (pos >= text.size()) return kNoChar;
  const auto lead = static_cast<unsigned char>(text[pos++]);
  if (lead < 0x80) return lead;
  const int n = lead >= 0xF0 && lead < 0xF5 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC2 ? 1 : 0;
  if (n == 0 || lead >= 0xF5 || pos + static_cast<size_t>(n) > text.size()) return kNoChar;
  char32_t c = lead & (0x3F >> n);
  for (int i = 0; i < n; ++i) {
    const auto byte = static_cast<unsigned char>(text[pos + static_cast<size_t>(i)]);
    if ((byte & 0xC0) != 0x80) return kNoChar;
    c = c << 6 | (byte & 0x3F);
  }
  const bool is_long_enough = n == 1 || (n == 2 && c >= 0x800) || (n == 3 && c >= 0x10000);
  if (!is_long_enough || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return kNoChar;
  pos += static_cast<size_t>(n);
  return c;
}

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Exactly n hexadecimal digits at `pos`, which moves behind them; kNoChar when they are not there.
inline char32_t hex_number(std::string_view text, size_t& pos, size_t n) {
  if (pos + n > text.size()) return kNoChar;
  char32_t value = 0;
  for (size_t i = 0; i < n; ++i) {
    const int digit = hex_digit(text[pos + i]);
    if (digit < 0) return kNoChar;
    value = value << 4 | static_cast<char32_t>(digit);
  }
  pos += n;
  return value;
}

}  // namespace chimere::grammar
