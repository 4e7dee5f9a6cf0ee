#include "grammar/schema_overlap.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace chimere::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 8;

std::string type_of(const Json& value) {
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  return value.is_array() ? "array" : "object";
}

std::optional<Json> listed(const Json& schema) {
  if (schema.contains("const")) return Json::array({schema["const"]});
  if (schema.contains("enum") && schema["enum"].is_array()) return schema["enum"];
  return std::nullopt;
}

// Nothing: any. Integers are numbers.
std::optional<std::set<std::string>> types(const Json& schema) {
  std::set<std::string> names;
  if (const std::optional<Json> values = listed(schema)) {
    for (const Json& value : *values) names.insert(type_of(value));
    return names;
  }
  if (!schema.contains("type")) return std::nullopt;
  const Json list = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
  for (const Json& name : list) {
    if (!name.is_string()) return std::nullopt;
    names.insert(name == Json("integer") ? "number" : name.get<std::string>());
  }
  return names;
}

bool requires_property(const Json& schema, const std::string& name) {
  if (!schema.contains("required") || !schema["required"].is_array()) return false;
  return std::find(schema["required"].begin(), schema["required"].end(), Json(name)) != schema["required"].end();
}

bool are_objects_alone(const Json& schema) {
  const auto names = types(schema);
  return names && *names == std::set<std::string>{"object"};
}

}  // namespace

bool exclude_each_other(const Json& a, const Json& b, const ResolveRef& resolve, int depth) {
  if (depth > kMaxDepth || !a.is_object() || !b.is_object()) return false;
  if (a.contains("$ref") || b.contains("$ref")) {
    const Json* left = a.contains("$ref") ? resolve(a["$ref"]) : &a;
    const Json* right = b.contains("$ref") ? resolve(b["$ref"]) : &b;
    return left && right && exclude_each_other(*left, *right, resolve, depth + 1);
  }
  const auto left_types = types(a), right_types = types(b);
  if (left_types && right_types) {
    const bool share = std::any_of(left_types->begin(), left_types->end(),
                                   [&](const std::string& name) { return right_types->contains(name); });
    if (!share) return true;
  }
  const std::optional<Json> left = listed(a), right = listed(b);
  if (left && right) {
    return std::none_of(left->begin(), left->end(), [&](const Json& value) {
      return std::find(right->begin(), right->end(), value) != right->end();
    });
  }
  if (!are_objects_alone(a) || !are_objects_alone(b)) return false;
  if (!a.contains("properties") || !b.contains("properties")) return false;
  for (const auto& [name, property] : a["properties"].items()) {
    if (!requires_property(a, name) || !requires_property(b, name) || !b["properties"].contains(name)) continue;
    if (exclude_each_other(property, b["properties"][name], resolve, depth + 1)) return true;
  }
  return false;
}

}  // namespace chimere::grammar
