// bare_calls.h  Tool calls whose JSON no closing tag follows: its brackets alone say where it ends.
//
//   Llama 3   {"name": NAME, "parameters": {...}}        perhaps behind <|python_tag|>
//   Mistral   [TOOL_CALLS][{"name": NAME, "arguments": {...}}]
//             [TOOL_CALLS]NAME[ARGS]{...}                [CALL_ID]ID may stand before [ARGS]
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/tool_format.h"

namespace chimere::chat {

inline constexpr std::string_view kPythonTag = "<|python_tag|>";
inline constexpr std::string_view kToolCalls = "[TOOL_CALLS]";

// The extent of one JSON object or array in a text that grows; each byte is looked at once.
class JsonExtent {
 public:
  // `text` begins with the same bytes as in the last call. Its size once the value is complete.
  std::optional<size_t> end(std::string_view text);

 private:
  size_t seen_ = 0;
  int depth_ = 0;
  bool in_string_ = false, after_backslash_ = false;
};

// What stands before the JSON of bare calls.
struct BareHead {
  enum class Kind { incomplete, none, found };
  Kind kind = Kind::none;
  std::string name;       // of a call whose JSON is its arguments alone
  size_t json_begin = 0;  // the first bracket
};
BareHead read_bare_head(std::string_view text, ToolFormat format);

}  // namespace chimere::chat
