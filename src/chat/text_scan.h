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

}  // namespace chimere::chat
