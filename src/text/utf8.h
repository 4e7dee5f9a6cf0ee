// utf8.h  UTF-8 that may be invalid: the one decoder and the one encoder of the program.
//
// A byte that starts no valid character (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF) is a
// character of its own, one byte long, with the code kInvalidChar. So nothing here runs off the end of a text, and all
// readers split a text in the same way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace chimere {

inline constexpr char32_t kInvalidChar = 0xFFFFFFFF;
inline constexpr char32_t kLastCodePoint = 0x10FFFF;
inline constexpr std::string_view kReplacementChar = "\xEF\xBF\xBD";  // U+FFFD

// What may follow a lead byte: the number of continuation bytes and the range of the first of them. n_more is 0 for
// ASCII and for bytes that lead nothing.
struct Utf8Lead {
  uint8_t n_more, low, high;
};
inline Utf8Lead utf8_lead(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};  // no surrogates
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};  // nothing above U+10FFFF
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  return {0, 0, 0};
}

inline bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// The last place up to `at` that is inside no character, so that a text may end there.
inline size_t utf8_floor(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && is_continuation(text[at])) --at;
  return at;
}

// Length in bytes of the valid character at `pos`, 0 when there is none. REQUIRES: pos < text.size()
inline size_t utf8_length(std::string_view text, size_t pos) {
  const auto first = static_cast<uint8_t>(text[pos]);
  if (first < 0x80) return 1;
  const Utf8Lead lead = utf8_lead(first);
  if (lead.n_more == 0 || text.size() - pos <= lead.n_more) return 0;
  const auto second = static_cast<uint8_t>(text[pos + 1]);
  if (second < lead.low || second > lead.high) return 0;
  for (size_t i = 2; i <= lead.n_more; ++i) {
    if (!is_continuation(text[pos + i])) return 0;
  }
  return lead.n_more + size_t{1};
}

struct CodePoint {
  char32_t value;  // kInvalidChar for a byte outside of any valid character
  size_t n_bytes;  // at least 1
};
// REQUIRES: pos < text.size()
inline CodePoint decode_at(std::string_view text, size_t pos) {
  const auto first = static_cast<uint8_t>(text[pos]);
  if (first < 0x80) return {first, 1};
  const size_t n = utf8_length(text, pos);
  if (n == 0) return {kInvalidChar, 1};
  char32_t value = first & (0x7Fu >> n);
  for (size_t i = 1; i < n; ++i) value = value << 6 | (static_cast<uint8_t>(text[pos + i]) & 0x3Fu);
  return {value, n};
}

// The character at `pos`, which moves behind it; kInvalidChar at the end.
inline char32_t next_char(std::string_view text, size_t& pos) {
  if (pos >= text.size()) return kInvalidChar;
  const CodePoint c = decode_at(text, pos);
  pos += c.n_bytes;
  return c.value;
}

// REQUIRES: code <= kLastCodePoint
void append_utf8(char32_t code, std::string& out);

bool is_valid_utf8(std::string_view text);

// Bytes at the end that start a character without finishing it.
size_t incomplete_utf8(std::string_view text);

// Turns a stream of bytes into valid UTF-8: holds an unfinished character back until it is complete, and replaces
// every maximal ill-formed piece by U+FFFD as soon as it is certain to be one.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string& out);
  void finish(std::string& out);

 private:
  std::array<char, 4> held_{};
  uint8_t n_held_ = 0;
  uint8_t missing_ = 0;  // continuation bytes still expected
  uint8_t low_ = 0x80;   // range of the next continuation byte
  uint8_t high_ = 0xBF;
};

}  // namespace chimere
