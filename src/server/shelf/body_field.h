// body_field.h  One field of a request's body, without reading all of it: which model a request is for has to be known
// before anything else is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chimere::server {

// The text that a JSON object has for `key`; nullopt when it has none, or something else. A body that is no JSON may give
// anything: whoever reads it whole will say so.
std::optional<std::string> top_level_text(std::string_view body, std::string_view key);

}  // namespace chimere::server
