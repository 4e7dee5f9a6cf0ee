// tool_schema.h  What tool declarations say about arguments, and arguments as JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"
#include "chat/output_parser.h"

namespace chimere::chat {

// Tool name -> parameter -> accepted JSON types. Declarations that cannot be read are left out.
std::map<std::string, std::map<std::string, JsonTypes>> declared_parameters(const std::vector<Tool>& tools);

std::string json_quoted(std::string_view text);

// A parameter that accepts only strings is taken verbatim; otherwise text that is JSON of an accepted type is that
// JSON, and anything else is a string.
std::string json_of_argument(std::string_view raw, const JsonTypes& types);

// Whether json_of_argument() makes a string of this text, whatever follows it.
bool is_surely_text(std::string_view begin, const JsonTypes& types);

struct JsonCall {
  std::string name;
  std::string arguments_json;
};
// {"name": ..., "arguments": {...}}; false when the text is something else.
bool parse_json_call(std::string_view text, JsonCall& call);
// One such object or an array of them; with a name, the arguments of that function alone.
bool parse_json_calls(std::string_view text, const std::string& name, std::vector<JsonCall>& calls);

}  // namespace chimere::chat
