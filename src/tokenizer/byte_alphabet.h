// byte_alphabet.h  The printable stand-ins for bytes in which byte-level BPE vocabularies are written.
//
// Bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for the code point of the same value; the other 68, in increasing
// order, for U+0100 onwards (so a space is U+0120).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chimere::tokenizer {

// The bytes that `written` stands for; nothing when it holds a character that is no stand-in.
std::optional<std::string> bytes_of_alphabet(std::string_view written);

}  // namespace chimere::tokenizer
