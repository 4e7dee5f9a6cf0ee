// body_field.h  One field of a request's body, without reading all of it: which model a request is for has to be known
// before anything else is.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace chimere::server {

// The text that a JSON object has for `key`; nullopt when it has none, or something else. A body that is no JSON may give
// anything: whoever reads it whole will say so.
std::optional<std::string> top_level_text(std::string_view body, std::string_view key);

// The value itself, as it is written: a number, or a text in its quotes; empty when there is none, or a longer one.
std::string_view top_level_value(std::string_view body, std::string_view key);

// Ollama's `keep_alive`: seconds, or "5m"; below 0 it is for ever. Nullopt when it is neither.
std::optional<std::chrono::seconds> keep_alive_of(std::string_view value);

}  // namespace chimere::server
