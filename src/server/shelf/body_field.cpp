// body_field.cpp  Strings and brackets are passed over; nothing is built.
#include "server/shelf/body_field.h"

#include "server/http/json.h"

namespace chimere::server {
namespace {

// The quote that ends the string that begins at `at`.
size_t string_end(std::string_view body, size_t at) {
  for (size_t i = at + 1; i < body.size(); ++i) {
    if (body[i] == '\\') {
      ++i;
    } else if (body[i] == '"') {
      return i;
    }
  }
  return std::string_view::npos;
}

size_t past_blanks(std::string_view body, size_t at) {
  const size_t found = body.find_first_not_of(" \t\r\n", at);
  return found == std::string_view::npos ? body.size() : found;
}

}  // namespace

std::optional<std::string> top_level_text(std::string_view body, std::string_view key) {
  int depth = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '{' || body[i] == '[') ++depth;
    if (body[i] == '}' || body[i] == ']') --depth;
    if (body[i] != '"') continue;
    const size_t end = string_end(body, i);
    if (end == std::string_view::npos) return std::nullopt;
    const bool is_key = depth == 1 && body.substr(i + 1, end - i - 1) == key;
    i = end;
    const size_t colon = past_blanks(body, end + 1);
    if (!is_key || colon >= body.size() || body[colon] != ':') continue;
    const size_t value = past_blanks(body, colon + 1);
    if (value >= body.size() || body[value] != '"') return std::nullopt;
    const size_t value_end = string_end(body, value);
    if (value_end == std::string_view::npos) return std::nullopt;
    const auto json = parse_json(std::string(body.substr(value, value_end - value + 1)));
    return json && json->is_string() ? std::optional(json->get<std::string>()) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace chimere::server
