// text_scan.h  Small questions about text that is still being written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace chimere::chat {

inline constexpr auto npos = std::string_view::npos;

inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

// Spaces at the start.
inline size_t count_space(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_space) - text.begin());
}

// Whether the text may become the marker.
inline bool is_prefix_of(std::string_view text, std::string_view marker) {
  return text.size() < marker.size() && marker.starts_with(text);
}

// Length of the longest suffix of `text` that a marker could continue.
inline size_t held_suffix(std::string_view text, std::string_view marker) {
  for (size_t n = std::min(text.size(), marker.size() - 1); n > 0; --n) {
    if (marker.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

// Bytes at the end that start a UTF-8 character without finishing it.
inline size_t incomplete_utf8(std::string_view text) {
  for (size_t n = 1; n <= std::min<size_t>(3, text.size()); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if ((c & 0xC0) == 0x80) continue;
    const size_t wanted = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    return wanted > n ? n : 0;
  }
  return 0;
}

}  // namespace chimere::chat
