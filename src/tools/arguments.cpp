#include "tools/arguments.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "text/nearest_word.h"

namespace chimere::tools {
namespace {

constexpr JsonLimits kArgumentLimits = {kMaxJsonDepth, 100'000, 5'000'000};

std::string article_of(const std::string& type) {
  if (type == "null") return "null";
  return (type == "array" || type == "object" || type == "integer" ? "an " : "a ") + type;
}

std::string type_of(const Json& value) {
  if (value.is_number_integer()) return "integer";
  return value.type_name();  // object, array, string, boolean, number, null
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "integer" && value.is_number_float()) {
    const double number = value.get<double>();
    return std::isfinite(number) && number == std::floor(number);
  }
  const std::string found = type_of(value);
  return type == found || (type == "number" && found == "integer");
}

Status check_type(const Json& value, const Json& types, const std::string& place) {
  std::string expected;
  for (const Json& type : types.is_array() ? types : Json::array({types})) {
    if (!type.is_string() || is_of_type(value, type.get<std::string>())) return Ok{};
    expected += (expected.empty() ? "" : " or ") + article_of(type.get<std::string>());
  }
  return Error{Code::invalid_argument, place + ": expected " + expected + ", found " + article_of(type_of(value))};
}

Status check_enum(const Json& value, const Json& allowed, const std::string& place) {
  if (!allowed.is_array() || std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return Ok{};
  constexpr size_t kMaxShown = 200;
  return Error{Code::invalid_argument, place + ": expected one of " + to_text(allowed).substr(0, kMaxShown) +
                                           ", found " + to_text(value).substr(0, kMaxShown)};
}

Status check_members(const Json& object, const Json& schema, const std::string& place) {
  const auto required = schema.find("required");
  if (required != schema.end() && required->is_array()) {
    for (const Json& name : *required) {
      if (!name.is_string() || object.contains(name.get<std::string>())) continue;
      return Error{Code::invalid_argument, place + ": '" + name.get<std::string>() + "' is missing"};
    }
  }
  const auto properties = schema.find("properties");
  const bool has_properties = properties != schema.end() && properties->is_object();
  const auto others = schema.find("additionalProperties");
  for (const auto& [name, member] : object.items()) {
    if (has_properties && properties->contains(name)) {
      TRY(check_arguments(member, (*properties)[name], place + "." + name));
    } else if (others != schema.end() && others->is_boolean() && !others->get<bool>()) {
      std::vector<std::string> known;
      if (has_properties) {
        for (const auto& [other, ignored] : properties->items()) known.push_back(other);
      }
      const std::string nearest = nearest_word(name, known);
      return Error{Code::invalid_argument, place + ": unknown name '" + name.substr(0, 64) + "'" +
                                               (nearest.empty() ? "" : "; did you mean '" + nearest + "'?")};
    }
  }
  return Ok{};
}

}  // namespace

Result<Json> read_arguments(const std::string& arguments) {
  if (arguments.size() > kMaxArgumentBytes) {
    return Error{Code::invalid_argument, "arguments: expected at most " + std::to_string(kMaxArgumentBytes) + " bytes"};
  }
  if (arguments.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
  auto json = parse_json(arguments, kArgumentLimits);
  if (!json) return Error{Code::invalid_argument, "arguments: " + json.error().message};
  if (json->is_null()) return Json::object();
  if (!json->is_object()) {
    return Error{Code::invalid_argument, "arguments: expected an object, found " + article_of(type_of(*json))};
  }
  return json;
}

Status check_arguments(const Json& value, const Json& schema, const std::string& place) {
  if (!schema.is_object()) return Ok{};
  if (const auto types = schema.find("type"); types != schema.end()) TRY(check_type(value, *types, place));
  if (const auto allowed = schema.find("enum"); allowed != schema.end()) TRY(check_enum(value, *allowed, place));
  if (value.is_object()) TRY(check_members(value, schema, place));
  if (const auto items = schema.find("items"); value.is_array() && items != schema.end()) {
    for (size_t i = 0; i < value.size(); ++i) {
      TRY(check_arguments(value[i], *items, place + "[" + std::to_string(i) + "]"));
    }
  }
  return Ok{};
}

std::string text_argument(const Json& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found != arguments.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace chimere::tools
