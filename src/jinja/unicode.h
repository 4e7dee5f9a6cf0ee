// unicode.h  Code points and the character properties that Python's str methods use (Unicode 14).
//
// Bytes that are not valid UTF-8 count as one character each (text/utf8.h) and have no properties.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8.h"

namespace chimere::jinja {

size_t count_code_points(std::string_view s);
// Byte offsets of every character, plus the size of the string at the end.
std::vector<size_t> code_point_offsets(std::string_view s);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);
bool is_line_break(char32_t c);  // str.splitlines

void append_upper(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
// `s` and `pos` (of c) are needed for the final sigma rule.
void append_lower(std::string& out, char32_t c, std::string_view s, size_t pos);

// Position of `needle` at or after `from`, or npos. Linear in the size of `s` for any needle.
size_t find_bytes(std::string_view s, std::string_view needle, size_t from);
size_t rfind_bytes(std::string_view s, std::string_view needle);

}  // namespace chimere::jinja
