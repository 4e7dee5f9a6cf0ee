// formats.h  The values of `format` in a JSON schema that are enforced, each as a regular expression.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chimere::grammar {

// Empty text: the format says nothing about the string. Nothing: not known.
std::optional<std::string_view> format_pattern(std::string_view format);
// For messages.
std::string known_formats();

}  // namespace chimere::grammar
