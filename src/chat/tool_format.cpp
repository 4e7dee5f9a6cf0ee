// tool_format.cpp  Words of templates that give a format away.
#include "chat/tool_format.h"

#include <algorithm>
#include <array>

namespace chimere::chat {

ToolFormat detect_tool_format(std::string_view source) {
  const auto mentions = [&](std::string_view what) { return source.find(what) != std::string_view::npos; };
  if (mentions("<function=") && mentions("<parameter=")) return ToolFormat::xml;
  if (mentions("[TOOL_CALLS]")) return ToolFormat::mistral;
  if (mentions("<tool_call>")) return ToolFormat::hermes;
  // Llama 3.1 to 3.3 show the form in words; the role of results is in all of them.
  if (mentions("<|python_tag|>") || mentions("ipython")) return ToolFormat::llama3;
  return ToolFormat::none;
}

ThoughtMarkers detect_thought_markers(std::string_view source) {
  const auto mentions = [&](std::string_view what) { return source.find(what) != std::string_view::npos; };
  if (mentions("[/THINK]") && !mentions("</think>")) return {"[THINK]", "[/THINK]"};
  return {};
}

bool detect_harmony(std::string_view source) {
  return source.find("<|channel|>") != std::string_view::npos && source.find("<|message|>") != std::string_view::npos;
}

bool is_output_marker(std::string_view text, bool is_harmony) {
  constexpr std::array<std::string_view, 10> kMarkers = {"<think>",   "</think>", "<tool_call>",    "</tool_call>",
                                                         "[THINK]",   "[/THINK]", "<|python_tag|>", "[TOOL_CALLS]",
                                                         "[CALL_ID]", "[ARGS]"};
  constexpr std::array<std::string_view, 5> kHarmony = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                                                        "<|end|>"};
  if (is_harmony && std::find(kHarmony.begin(), kHarmony.end(), text) != kHarmony.end()) return true;
  return std::find(kMarkers.begin(), kMarkers.end(), text) != kMarkers.end();
}

}  // namespace chimere::chat
