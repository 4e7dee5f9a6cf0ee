// body_field.cpp  Strings and brackets are passed over; nothing is built.
#include "server/shelf/body_field.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>

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

std::string_view top_level_value(std::string_view body, std::string_view key) {
  int depth = 0;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '{' || body[i] == '[') ++depth;
    if (body[i] == '}' || body[i] == ']') --depth;
    if (body[i] != '"') continue;
    const size_t end = string_end(body, i);
    if (end == std::string_view::npos) return {};
    const bool is_key = depth == 1 && body.substr(i + 1, end - i - 1) == key;
    i = end;
    const size_t colon = past_blanks(body, end + 1);
    if (!is_key || colon >= body.size() || body[colon] != ':') continue;
    const size_t value = past_blanks(body, colon + 1);
    if (value >= body.size()) return {};
    if (body[value] != '"') {
      const size_t number_end = body.find_first_of(",} \t\r\n", value);
      return number_end == std::string_view::npos ? std::string_view() : body.substr(value, number_end - value);
    }
    const size_t value_end = string_end(body, value);
    return value_end == std::string_view::npos ? std::string_view() : body.substr(value, value_end - value + 1);
  }
  return {};
}

std::optional<std::string> top_level_text(std::string_view body, std::string_view key) {
  const std::string_view value = top_level_value(body, key);
  if (!value.starts_with('"')) return std::nullopt;
  const auto json = parse_json(std::string(value));
  return json && json->is_string() ? std::optional(json->get<std::string>()) : std::nullopt;
}

std::optional<std::chrono::seconds> keep_alive_of(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || std::abs(number) > INT32_MAX) return std::nullopt;
  if (number < 0) return std::chrono::seconds::max();
  const std::string_view unit(end, static_cast<size_t>(value.data() + value.size() - end));
  if (unit.empty() || unit == "s") return std::chrono::seconds(number);
  if (unit == "m") return std::chrono::seconds(number * 60);
  if (unit == "h") return std::chrono::seconds(number * 3600);
  return std::nullopt;
}

}  // namespace chimere::server
