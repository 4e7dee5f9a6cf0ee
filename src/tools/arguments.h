// arguments.h  A call's arguments: read, and held against the tool's schema. For .cpp files: JSON is heavy.
#pragma once

#include <string>

#include "text/json.h"

namespace chimere::tools {

inline constexpr size_t kMaxArgumentBytes = size_t{1} << 20;

// An object; nothing at all is an empty one, as some models write it.
Result<Json> read_arguments(const std::string& arguments);

// What a schema says by type, enum, required, properties, additionalProperties and items, and no more: the rest is the
// tool's own to check. Errors name the place: "arguments.path: expected a string, found a number".
Status check_arguments(const Json& value, const Json& schema, const std::string& place = "arguments");

// The text at `name`; empty where there is none.
std::string text_argument(const Json& arguments, const char* name);

}  // namespace chimere::tools
