// tool_schema.h  What tool declarations say about arguments, and arguments as JSON.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"

namespace chimere::chat {

// JSON types that a declared parameter accepts; empty when nothing is known about it.
using JsonTypes = std::set<std::string>;
// Tool name -> parameter -> types.
using ToolParameters = std::map<std::string, std::map<std::string, JsonTypes>>;

// Declarations that cannot be read are left out.
ToolParameters declared_parameters(const std::vector<Tool>& tools);

std::string json_quoted(std::string_view text);

// A parameter that accepts only strings is taken verbatim; otherwise text that is JSON of an accepted type is that
// JSON, and anything else is a string.
std::string json_of_argument(std::string_view raw, const JsonTypes& types);

// Whether json_of_argument() makes a string of this text, whatever follows it.
bool is_surely_text(std::string_view begin, const JsonTypes& types);

// {"name": ..., "arguments": {...}} or an array of one such object; with a name, the arguments of that function alone.
// Nothing when the text is something else.
std::optional<ToolCall> parse_json_call(std::string_view text, const std::string& name);

}  // namespace chimere::chat
