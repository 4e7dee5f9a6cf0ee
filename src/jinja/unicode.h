// unicode.h  Code points and the character properties that Python's str methods use (Unicode 14).
//
// Bytes that are not valid UTF-8 count as one character each and have no properties, so no function here can run off
// the end of a string or split it differently from another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::jinja {

struct CodePoint {
  int32_t value;  // -1 for a byte outside any valid sequence
  size_t n_bytes;
};

// REQUIRES: pos < s.size()
CodePoint decode_at(std::string_view s, size_t pos);
void append_utf8(std::string& out, int32_t code_point);
bool is_valid_utf8(std::string_view s);
size_t count_code_points(std::string_view s);
// Byte offsets of every character, plus the size of the string at the end.
std::vector<size_t> code_point_offsets(std::string_view s);

bool is_space(int32_t c);
bool is_alpha(int32_t c);
bool is_decimal(int32_t c);
bool is_digit(int32_t c);
bool is_numeric(int32_t c);
bool is_upper(int32_t c);
bool is_lower(int32_t c);
bool is_title(int32_t c);
bool is_printable(int32_t c);
bool is_identifier_start(int32_t c);
bool is_identifier_part(int32_t c);
bool is_line_break(int32_t c);  // str.splitlines

void append_upper(std::string& out, int32_t c);
void append_title(std::string& out, int32_t c);
// `s` and `pos` (of c) are needed for the final sigma rule.
void append_lower(std::string& out, int32_t c, std::string_view s, size_t pos);

// Position of `needle` at or after `from`, or npos. Linear in the size of `s` for any needle.
size_t find_bytes(std::string_view s, std::string_view needle, size_t from);
size_t rfind_bytes(std::string_view s, std::string_view needle);

}  // namespace chimere::jinja
