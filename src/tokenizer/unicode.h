// unicode.h  UTF-8 characters with the classes that pre-tokenizers ask for, and the normal forms.
//
// A byte that starts no valid character (text/utf8.h) is of no class, so that every scanner passes over it and
// byte-level tokenizers keep it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace chimere::tokenizer {

// General categories as bits; kSpace is the White_Space property and kNewline means \r or \n (which are kSpace too).
enum CharClass : uint16_t {
  kUpper = 1,         // Lu, Lt
  kLower = 2,         // Ll
  kOtherLetter = 4,   // Lm, Lo
  kNumber = 8,        // N*
  kMark = 16,         // M*
  kPunctuation = 32,  // P*
  kSymbol = 64,       // S*
  kSpace = 128,
  kNewline = 256,
  kLetter = kUpper | kLower | kOtherLetter,
};

struct Char {
  char32_t code;     // kInvalidChar when the byte starts no valid character
  uint16_t classes;  // CharClass bits
  uint8_t len;       // bytes, at least 1
};

inline constexpr std::array<uint16_t, 128> kAsciiClasses = [] {
  std::array<uint16_t, 128> table{};
  for (char c = '!'; c < 0x7F; ++c) table[c] = kPunctuation;
  for (const char c : {'$', '+', '<', '=', '>', '^', '`', '|', '~'}) table[c] = kSymbol;
  for (char c = '0'; c <= '9'; ++c) table[c] = kNumber;
  for (char c = 'A'; c <= 'Z'; ++c) table[c] = kUpper;
  for (char c = 'a'; c <= 'z'; ++c) table[c] = kLower;
  for (const char c : {' ', '\t', '\v', '\f'}) table[c] = kSpace;
  for (const char c : {'\r', '\n'}) table[c] = kSpace | kNewline;
  return table;
}();

// REQUIRES: a byte beyond ASCII at `pos`.
Char decode_wide_char(std::string_view text, size_t pos);
// REQUIRES: pos < text.size().
inline Char char_at(std::string_view text, size_t pos) {
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 0x80) return {byte, kAsciiClasses[byte], 1};
  return decode_wide_char(text, pos);
}

// A quick look that may say yes for text that is already in NFC.
bool may_change_under_nfc(std::string_view text);
// Both keep invalid bytes where they are. Linear, also on long runs of combining marks.
std::string to_nfc(std::string_view text);
std::string to_nfd(std::string_view text);

}  // namespace chimere::tokenizer
