// markers.h  The words around a thought and before a tool call.
#pragma once

#include <string_view>

namespace chimere::chat {

inline constexpr std::string_view kToolCallOpen = "<tool_call>";
inline constexpr std::string_view kToolCallClose = "</tool_call>";
inline constexpr std::string_view kToolCalls = "[TOOL_CALLS]";

struct ThoughtMarkers {
  std::string_view open = "<think>";
  std::string_view close = "</think>";
};

// From the text of a chat template.
inline ThoughtMarkers detect_thought_markers(std::string_view template_source) {
  const auto mentions = [&](std::string_view what) { return template_source.find(what) != std::string_view::npos; };
  if (mentions("[/THINK]") && !mentions("</think>")) return {"[THINK]", "[/THINK]"};
  return {};
}

}  // namespace chimere::chat
