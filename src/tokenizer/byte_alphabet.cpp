// byte_alphabet.cpp  The inverse table of the byte alphabet.
#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "tokenizer/unicode.h"

namespace chimere::tokenizer {
namespace {

constexpr char32_t kEnd = 0x100 + 68;

// Code point -> byte, -1 for those that stand for none.
constexpr std::array<int16_t, kEnd> kByteOf = [] {
  std::array<int16_t, kEnd> table{};
  for (auto& entry : table) entry = -1;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[itself ? static_cast<char32_t>(byte) : next++] = static_cast<int16_t>(byte);
  }
  return table;
}();

}  // namespace

std::optional<std::string> bytes_of_alphabet(std::string_view written) {
  std::string bytes;
  bytes.reserve(written.size());
  for (size_t pos = 0; pos < written.size();) {
    const Char c = char_at(written, pos);
    if (c.code >= kEnd || kByteOf[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOf[c.code]);
    pos += c.len;
  }
  return bytes;
}

}  // namespace chimere::tokenizer
