// strings.h  Python's string operations on marked text. Positions are bytes; counts are characters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/text.h"
#include "jinja/unicode.h"

namespace chimere::jinja {

enum class Side { both, left, right };

// Without `chars`, strips whitespace.
Text strip(const Text& text, const std::string* chars, Side side);
Text upper(const Text& text);
Text lower(const Text& text);
Text capitalize(const Text& text);
Text title(const Text& text);         // str.title
Text filter_title(const Text& text);  // |title: words start after blanks, brackets, '-' and '<' only
Text escape_html(const Text& text);

// At most `max` splits; max < 0: no limit.
std::vector<Text> split(const Text& text, const std::string& separator, int64_t max);
std::vector<Text> rsplit(const Text& text, const std::string& separator, int64_t max);
std::vector<Text> split_whitespace(const Text& text, int64_t max);
std::vector<Text> rsplit_whitespace(const Text& text, int64_t max);
std::vector<Text> split_lines(const Text& text, bool keep_ends);
// How many parts the two functions above would give, to ask for the memory first.
size_t count_words(std::string_view text);
size_t count_lines(std::string_view text);

// Number of occurrences that do not overlap; an empty needle matches between all characters.
size_t count_occurrences(std::string_view text, std::string_view needle);
// At most `max` replacements; max < 0: all. REQUIRES: the caller has checked the size of the result.
Text replace(const Text& text, const std::string& from, const Text& to, int64_t max);

// Byte position of a character index; the size of the text when it is past the end.
size_t byte_offset(std::string_view text, size_t index);

}  // namespace chimere::jinja
