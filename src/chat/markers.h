// markers.h  The words around a thought and before a tool call, in the formats we parse.
#pragma once

#include <string_view>

namespace chimere::chat {

inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";
inline constexpr std::string_view kToolCallOpen = "<tool_call>";

}  // namespace chimere::chat
