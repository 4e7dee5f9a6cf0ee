// schema_validator_for_test.h  Whether a document fits a JSON schema, straight from the words of the specification.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace chimere::grammar {

class SchemaValidator {
 public:
  using Json = nlohmann::json;
  explicit SchemaValidator(Json root) : root_(std::move(root)) {}

  bool fits(const Json& value) const { return fits(value, root_); }

 private:
  static bool is_type(const Json& v, const std::string& type) {
    if (type == "integer") {
      return v.is_number_integer() || (v.is_number_float() && v.get<double>() == std::floor(v.get<double>()));
    }
    if (type == "number") return v.is_number();
    if (type == "string") return v.is_string();
    if (type == "boolean") return v.is_boolean();
    if (type == "null") return v.is_null();
    return type == "array" ? v.is_array() : v.is_object();
  }
  static size_t n_chars(const std::string& text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }

  bool fits(const Json& v, const Json& s) const {
    if (s.is_boolean()) return s.get<bool>();
    if (s.contains("$ref")) {
      const std::string pointer = s["$ref"].get<std::string>().substr(1);
      if (!fits(v, pointer.empty() ? root_ : root_.at(Json::json_pointer(pointer)))) return false;
    }
    if (s.contains("type")) {
      const Json types = s["type"].is_array() ? s["type"] : Json::array({s["type"]});
      if (std::none_of(types.begin(), types.end(), [&](const Json& t) { return is_type(v, t); })) return false;
    }
    if (s.contains("const") && v != s["const"]) return false;
    if (s.contains("enum") && std::find(s["enum"].begin(), s["enum"].end(), v) == s["enum"].end()) return false;
    const auto matches = [&](const Json& branch) { return fits(v, branch); };
    if (s.contains("allOf") && !std::all_of(s["allOf"].begin(), s["allOf"].end(), matches)) return false;
    if (s.contains("anyOf") && std::none_of(s["anyOf"].begin(), s["anyOf"].end(), matches)) return false;
    if (s.contains("oneOf") && std::count_if(s["oneOf"].begin(), s["oneOf"].end(), matches) != 1) return false;
    return fits_number(v, s) && fits_string(v, s) && fits_array(v, s) && fits_object(v, s);
  }
  bool fits_number(const Json& v, const Json& s) const {
    if (!v.is_number()) return true;
    const double x = v.get<double>();
    if (s.contains("minimum") && x < s["minimum"].get<double>()) return false;
    if (s.contains("maximum") && x > s["maximum"].get<double>()) return false;
    if (s.contains("exclusiveMinimum") && x <= s["exclusiveMinimum"].get<double>()) return false;
    return !(s.contains("exclusiveMaximum") && x >= s["exclusiveMaximum"].get<double>());
  }
  bool fits_string(const Json& v, const Json& s) const {
    if (!v.is_string()) return true;
    const auto text = v.get<std::string>();
    if (s.contains("minLength") && n_chars(text) < s["minLength"].get<size_t>()) return false;
    if (s.contains("maxLength") && n_chars(text) > s["maxLength"].get<size_t>()) return false;
    return !s.contains("pattern") || std::regex_search(text, std::regex(s["pattern"].get<std::string>()));
  }
  bool fits_array(const Json& v, const Json& s) const {
    if (!v.is_array()) return true;
    if (s.contains("minItems") && v.size() < s["minItems"].get<size_t>()) return false;
    if (s.contains("maxItems") && v.size() > s["maxItems"].get<size_t>()) return false;
    const bool is_old = s.contains("items") && s["items"].is_array();
    const char* const first = is_old ? "items" : "prefixItems";
    const char* const rest = is_old ? "additionalItems" : "items";
    const size_t n_first = s.contains(first) ? s[first].size() : 0;
    for (size_t i = 0; i < v.size(); ++i) {
      if (i < n_first && !fits(v[i], s[first][i])) return false;
      if (i >= n_first && s.contains(rest) && !fits(v[i], s[rest])) return false;
    }
    return true;
  }
  bool fits_object(const Json& v, const Json& s) const {
    if (!v.is_object()) return true;
    if (s.contains("required")) {
      for (const Json& name : s["required"]) {
        if (!v.contains(name.get<std::string>())) return false;
      }
    }
    for (const auto& [name, member] : v.items()) {
      const bool is_declared = s.contains("properties") && s["properties"].contains(name);
      if (is_declared && !fits(member, s["properties"][name])) return false;
      if (!is_declared && s.contains("additionalProperties") && !fits(member, s["additionalProperties"])) return false;
      if (s.contains("propertyNames") && !fits(name, s["propertyNames"])) return false;
    }
    return true;
  }

  Json root_;
};

}  // namespace chimere::grammar
