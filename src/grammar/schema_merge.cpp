#include "grammar/schema_merge.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace chimere::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxCombinations = 64;

Error conflict(const std::string& where, const std::string& keyword) {
  return {Code::invalid_argument, "schema at " + where + ": two different `" + keyword +
                                      "` must hold at once, and there is no way to combine them"};
}

Json as_list(const Json& value) { return value.is_array() ? value : Json::array({value}); }

bool holds(const Json& list, const Json& value) { return std::find(list.begin(), list.end(), value) != list.end(); }

Json common_types(const Json& a, const Json& b) {
  Json types = Json::array();
  for (const Json& type : as_list(a)) {
    if (holds(as_list(b), type)) types.push_back(type);
  }
  for (const auto& [wide, narrow] : {std::pair(a, b), std::pair(b, a)}) {
    const bool narrows = holds(as_list(wide), "number") && holds(as_list(narrow), "integer");
    if (narrows && !holds(types, "integer") && !holds(types, "number")) types.push_back("integer");
  }
  return types;
}

Json both(const Json& a, const Json& b) { return a == b ? a : Json{{"allOf", Json::array({a, b})}}; }

// Properties that the other schema forbids can not be there; when they must, nothing fits.
Status drop_forbidden(const Json& closed, const Json& other, Json& merged, const std::string& where) {
  if (!closed.contains("additionalProperties") || closed["additionalProperties"] != Json(false)) return Ok{};
  if (!other.contains("properties") || !other["properties"].is_object()) return Ok{};
  for (const auto& [name, schema] : other["properties"].items()) {
    if (closed.contains("properties") && closed["properties"].contains(name)) continue;
    if (merged.contains("required") && holds(merged["required"], name)) return conflict(where, "required");
    merged["properties"].erase(name);
  }
  return Ok{};
}

Status combine(Json& into, const std::string& keyword, const Json& value, const std::string& where) {
  Json& own = into[keyword];
  if (own == value || is_annotation(keyword)) return Ok{};
  if (keyword == "type") {
    own = common_types(own, value);
    return own.empty() ? Status(conflict(where, keyword)) : Status(Ok{});
  }
  if (keyword == "required" || keyword == "enum") {
    if (!own.is_array() || !value.is_array()) return conflict(where, keyword);
    Json list = Json::array();
    for (const Json& entry : own) {
      if (keyword == "required" || holds(value, entry)) list.push_back(entry);
    }
    for (const Json& entry : value) {
      if (keyword == "required" && !holds(list, entry)) list.push_back(entry);
    }
    own = std::move(list);
    return own.empty() ? Status(conflict(where, keyword)) : Status(Ok{});
  }
  const bool is_lower = keyword == "minimum" || keyword == "exclusiveMinimum" || keyword == "minLength" ||
                        keyword == "minItems" || keyword == "minProperties";
  const bool is_upper = keyword == "maximum" || keyword == "exclusiveMaximum" || keyword == "maxLength" ||
                        keyword == "maxItems" || keyword == "maxProperties";
  if (is_lower || is_upper) {
    if (!own.is_number() || !value.is_number()) return conflict(where, keyword);
    if ((value > own) == is_lower) own = value;
    return Ok{};
  }
  if (keyword == "properties" || keyword == "$defs" || keyword == "definitions") {
    if (!own.is_object() || !value.is_object()) return conflict(where, keyword);
    for (const auto& [name, schema] : value.items()) own[name] = own.contains(name) ? both(own[name], schema) : schema;
    return Ok{};
  }
  if (keyword == "items" || keyword == "additionalProperties" || keyword == "propertyNames") {
    if (own == Json(false) || value == Json(false)) {
      own = false;
    } else {
      own = both(own, value);
    }
    return Ok{};
  }
  if (keyword == "allOf" && own.is_array() && value.is_array()) {
    for (const Json& branch : value) own.push_back(branch);
    return Ok{};
  }
  if ((keyword == "anyOf" || keyword == "oneOf") && own.is_array() && value.is_array()) {
    if (own.size() * value.size() > kMaxCombinations) return conflict(where, keyword);
    Json combined = Json::array();
    for (const Json& x : own) {
      for (const Json& y : value) combined.push_back(both(x, y));
    }
    own = std::move(combined);
    return Ok{};
  }
  return conflict(where, keyword);
}

}  // namespace

bool is_annotation(std::string_view keyword) {
  static constexpr std::string_view kNames[] = {
      "title", "description", "default",  "examples",  "example",         "$comment",        "$schema",
      "$id",   "deprecated",  "readOnly", "writeOnly", "contentEncoding", "contentMediaType"};
  return keyword.starts_with("x-") || std::find(std::begin(kNames), std::end(kNames), keyword) != std::end(kNames);
}

bool has_meaning(const Json& schema) {
  for (const auto& [keyword, value] : schema.items()) {
    if (!is_annotation(keyword) && keyword != "$defs" && keyword != "definitions") return true;
  }
  return false;
}

Result<Json> merge_schemas(const Json& a, const Json& b, const std::string& where) {
  if (a == Json(true)) return b;
  if (b == Json(true)) return a;
  if (!a.is_object() || !b.is_object()) return conflict(where, "allOf");
  Json merged = a;
  for (const auto& [keyword, value] : b.items()) {
    if (!merged.contains(keyword)) {
      merged[keyword] = value;
    } else {
      TRY(combine(merged, keyword, value, where));
    }
  }
  TRY(drop_forbidden(a, b, merged, where));
  TRY(drop_forbidden(b, a, merged, where));
  return Result<Json>{std::move(merged)};
}

}  // namespace chimere::grammar
