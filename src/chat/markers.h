// markers.h  The words around a thought and before a tool call, in the formats we parse.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace chimere::chat {

inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kToolCallOpen = "<tool_call>";

// Length of the longest suffix of `text` that a marker could continue.
inline size_t held_suffix(std::string_view text, std::string_view marker) {
  for (size_t n = std::min(text.size(), marker.size() - 1); n > 0; --n) {
    if (marker.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

}  // namespace chimere::chat
