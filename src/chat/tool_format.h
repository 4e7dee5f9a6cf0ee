// tool_format.h  How a model writes its thoughts and its tool calls. Files do not say it; their templates show it.
#pragma once

#include <string_view>

namespace chimere::chat {

enum class ToolFormat {
  none,     // the template knows no form; <tool_call> is looked for all the same
  xml,      // <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
  hermes,   // <tool_call>\n{"name": NAME, "arguments": {...}}\n</tool_call>
  llama3,   // {"name": NAME, "parameters": {...}}, perhaps behind <|python_tag|>
  mistral,  // [TOOL_CALLS][{"name": NAME, "arguments": {...}}] or [TOOL_CALLS]NAME[ARGS]{...}
};

// The words around a thought.
struct ThoughtMarkers {
  std::string_view open = "<think>";
  std::string_view close = "</think>";
};

// From the text of a chat template.
ToolFormat detect_tool_format(std::string_view template_source);
ThoughtMarkers detect_thought_markers(std::string_view template_source);
// gpt-oss frames everything it writes as messages of channels: thoughts, text, and calls
// (<|channel|>commentary to=functions.NAME<|message|>{...}).
bool detect_harmony(std::string_view template_source);

// Text that the output parser needs to see even in vocabularies that make control tokens of it.
bool is_output_marker(std::string_view token_text, bool is_harmony);

}  // namespace chimere::chat
