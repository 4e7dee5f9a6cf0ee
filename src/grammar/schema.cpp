#include "grammar/schema.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/formats.h"
#include "grammar/json_text.h"
#include "grammar/number_range.h"
#include "grammar/regex.h"
#include "grammar/schema_merge.h"
#include "grammar/schema_overlap.h"
#include "text/json.h"

namespace chimere::grammar {
namespace {

constexpr size_t kMaxSchemas = 20'000;  // schemas looked at, after everything was merged and resolved

constexpr std::string_view kObjectWords[] = {"properties",    "required",      "additionalProperties", "propertyNames",
                                             "minProperties", "maxProperties", "unevaluatedProperties"};
constexpr std::string_view kArrayWords[] = {"items",    "prefixItems", "additionalItems", "minItems",
                                            "maxItems", "uniqueItems", "unevaluatedItems"};
constexpr std::string_view kStringWords[] = {"pattern", "format", "minLength", "maxLength"};
constexpr std::string_view kNumberWords[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                             "multipleOf"};
constexpr std::string_view kOtherWords[] = {"type",  "enum", "const", "anyOf",       "oneOf",
                                            "allOf", "$ref", "$defs", "definitions", "nullable"};

template <size_t N>
bool is_in(const std::string_view (&words)[N], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

template <size_t N>
bool has_any(const Json& schema, const std::string_view (&words)[N]) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return schema.contains(std::string(word)); });
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

class SchemaReader {
 public:
  SchemaReader(Grammar& grammar, const Json& root) : g_(grammar), json_(grammar), root_(root) {}

  Result<ExprId> value(const Json& schema, const std::string& where, int depth);
  Result<ExprId> place(const std::string& pointer) {
    TRY_ASSIGN(const Json* at, target(pointer, pointer));
    return value(*at, pointer, 0);
  }

 private:
  static Error error(const std::string& where, const std::string& problem) {
    return {Code::invalid_argument, "schema at " + where + ": " + problem};
  }
  static Error unsupported(const std::string& where, const std::string& keyword, const std::string& why = "") {
    return {Code::unsupported,
            "schema at " + where + ": `" + keyword + "` is not supported" + (why.empty() ? "" : " " + why)};
  }

  Status check_keywords(const Json& schema, const std::string& where) const;
  Result<const Json*> target(const Json& ref, const std::string& where) const;
  Result<ExprId> reference(const Json& schema, const std::string& where, int depth);
  Result<ExprId> alternatives(const Json& schema, const std::string& keyword, const std::string& where, int depth);
  Result<ExprId> listed(const Json& schema, const std::string& where);
  Result<ExprId> typed(const Json& schema, const std::string& type, const std::string& where, int depth);
  Result<ExprId> object(const Json& schema, const std::string& where, int depth);
  Result<std::optional<ExprId>> other_members(const Json& schema, const std::vector<std::string>& names,
                                              const std::string& where, int depth);
  Result<ExprId> array(const Json& schema, const std::string& where, int depth);
  Result<ExprId> string(const Json& schema, const std::string& where);
  Result<ExprId> number(const Json& schema, bool is_integer, const std::string& where);
  Result<std::optional<Bound>> bound(const Json& schema, const char* including, const char* excluding, bool is_low,
                                     const std::string& where) const;
  Result<int> count(const Json& schema, const char* keyword, int fallback, const std::string& where) const;
  ExprId in_rule(ExprId expr, const std::string& where);

  Grammar& g_;
  JsonText json_;
  const Json& root_;
  std::map<std::string, RuleId> references_;
  size_t n_schemas_ = 0;
};

Status SchemaReader::check_keywords(const Json& schema, const std::string& where) const {
  for (const auto& [keyword, unused] : schema.items()) {
    if (is_annotation(keyword) || is_in(kOtherWords, keyword) || is_in(kObjectWords, keyword) ||
        is_in(kArrayWords, keyword) || is_in(kStringWords, keyword) || is_in(kNumberWords, keyword)) {
      continue;
    }
    return unsupported(where, keyword);
  }
  return Ok{};
}

Result<const Json*> SchemaReader::target(const Json& ref, const std::string& where) const {
  if (!ref.is_string()) return error(where, "$ref: expected a string");
  const std::string text = ref.get<std::string>();
  if (!text.starts_with('#') || (text.size() > 1 && text[1] != '/')) {
    return unsupported(where, "$ref", "to " + text + ": expected a place in this schema, as #/$defs/name");
  }
  const Json* at = &root_;
  for (size_t pos = 1; pos < text.size();) {
    const size_t end = std::min(text.find('/', pos + 1), text.size());
    std::string key = text.substr(pos + 1, end - pos - 1);
    for (const auto& [coded, plain] : {std::pair("~1", "/"), std::pair("~0", "~"), std::pair("%24", "$")}) {
      for (size_t p = key.find(coded); p != std::string::npos; p = key.find(coded, p + 1)) {
        key.replace(p, std::string_view(coded).size(), plain);
      }
    }
    const bool is_index =
        at->is_array() && !key.empty() && key.size() < 6 && key.find_first_not_of("0123456789") == std::string::npos;
    if (is_index && std::stoul(key) < at->size()) {
      at = &(*at)[std::stoul(key)];
    } else if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else {
      return error(where, "$ref: there is no " + text);
    }
    pos = end;
  }
  return at;
}

Result<ExprId> SchemaReader::reference(const Json& schema, const std::string& where, int depth) {
  TRY_ASSIGN(const Json* at, target(schema["$ref"], where));
  Json beside = schema;
  beside.erase("$ref");
  if (has_meaning(beside)) {
    TRY_ASSIGN(const Json merged, merge_schemas(*at, beside, where));
    return value(merged, where, depth + 1);
  }
  const std::string name = schema["$ref"].get<std::string>();
  const auto [known, is_new] = references_.try_emplace(name, 0);
  if (is_new) {
    const RuleId rule = g_.add_rule(name);
    known->second = rule;
    TRY_ASSIGN(const ExprId expr, value(*at, name, depth + 1));
    g_.define(rule, expr);
    return g_.call(rule);
  }
  return g_.call(known->second);
}

ExprId SchemaReader::in_rule(ExprId expr, const std::string& where) {
  const RuleId rule = g_.add_rule(where);
  g_.define(rule, expr);
  return g_.call(rule);
}

Result<ExprId> SchemaReader::value(const Json& schema, const std::string& where, int depth) {
  if (depth > kMaxNesting) return error(where, "nested deeper than " + std::to_string(kMaxNesting));
  if (++n_schemas_ > kMaxSchemas) return error(where, "too large: more than " + std::to_string(kMaxSchemas) + " parts");
  TRY(g_.check_size());
  if (schema.is_boolean()) return schema.get<bool>() ? json_.value() : g_.chars(CharSet());
  if (!schema.is_object()) return error(where, "expected an object or a boolean");
  TRY(check_keywords(schema, where));
  if (schema.contains("$ref")) return reference(schema, where, depth);
  if (schema.contains("allOf")) {
    if (!schema["allOf"].is_array()) return error(where, "allOf: expected an array");
    Json merged = schema;
    merged.erase("allOf");
    for (const Json& branch : schema["allOf"]) {
      Json resolved = branch;
      for (int hops = 0; resolved.is_object() && resolved.contains("$ref"); ++hops) {
        if (hops > kMaxNesting) return error(where, "allOf: a $ref that leads back to itself");
        TRY_ASSIGN(const Json* at, target(resolved["$ref"], where));
        resolved.erase("$ref");
        TRY_ASSIGN(resolved, merge_schemas(Json(*at), resolved, where));
      }
      TRY_ASSIGN(merged, merge_schemas(merged, resolved, where));
    }
    return value(merged, where, depth + 1);
  }
  if (schema.contains("nullable")) {
    Json plain = schema;
    plain.erase("nullable");
    TRY_ASSIGN(const ExprId inner, value(plain, where, depth + 1));
    return schema["nullable"] == Json(true) ? g_.choice({inner, json_.null()}) : inner;
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return alternatives(schema, keyword, where, depth);
  }
  if (schema.contains("const") || schema.contains("enum")) return listed(schema, where);

  std::vector<std::string> types;
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    for (const Json& name : type.is_array() ? type : Json::array({type})) {
      if (!name.is_string()) return error(where, "type: expected a name or a list of names");
      types.push_back(name.get<std::string>());
    }
  } else {
    if (has_any(schema, kObjectWords)) types.push_back("object");
    if (has_any(schema, kArrayWords)) types.push_back("array");
    if (has_any(schema, kStringWords)) types.push_back("string");
    if (has_any(schema, kNumberWords)) types.push_back("number");
    if (types.empty()) return json_.value();
  }
  if (types.empty()) return error(where, "type: expected at least one");
  std::vector<ExprId> ways;
  for (const std::string& type : types) {
    TRY_ASSIGN(const ExprId way, typed(schema, type, where, depth));
    ways.push_back(way);
  }
  return g_.choice(std::move(ways));
}

Result<ExprId> SchemaReader::alternatives(const Json& schema, const std::string& keyword, const std::string& where,
                                          int depth) {
  const Json& branches = schema[keyword];
  if (!branches.is_array() || branches.empty()) return error(where, keyword + ": expected an array of schemas");
  Json beside = schema;
  beside.erase(keyword);
  const bool has_more = has_meaning(beside);
  std::vector<ExprId> ways;
  for (size_t i = 0; i < branches.size(); ++i) {
    const std::string place = where + "/" + keyword + "/" + std::to_string(i);
    Json branch = branches[i];
    if (has_more) branch = Json{{"allOf", Json::array({beside, branch})}};
    TRY_ASSIGN(const ExprId way, value(branch, place, depth + 1));
    ways.push_back(way);
  }
  if (keyword == "oneOf") {
    const auto resolve = [&](const Json& ref) -> const Json* {
      auto at = target(ref, where);
      return at ? *at : nullptr;
    };
    for (size_t i = 0; i < branches.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (exclude_each_other(branches[k], branches[i], resolve)) continue;
        return unsupported(where, "oneOf",
                           "here: a value could fit both alternative " + std::to_string(k) + " and " +
                               std::to_string(i) + "; anyOf accepts that");
      }
    }
  }
  return g_.choice(std::move(ways));
}

Result<ExprId> SchemaReader::listed(const Json& schema, const std::string& where) {
  for (const auto& [keyword, unused] : schema.items()) {
    if (is_annotation(keyword) || keyword == "enum" || keyword == "const" || keyword == "type") continue;
    if (keyword == "$defs" || keyword == "definitions") continue;
    return unsupported(where, keyword, "beside enum or const");
  }
  Json values = schema.contains("enum") ? schema["enum"] : Json::array({schema["const"]});
  if (!values.is_array()) return error(where, "enum: expected an array");
  std::vector<ExprId> ways;
  for (const Json& value : values) {
    if (schema.contains("const") && value != schema["const"]) continue;
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      const bool fits = std::any_of(types.begin(), types.end(), [&](const Json& type) {
        return type.is_string() && is_of_type(value, type.get<std::string>());
      });
      if (!fits) continue;
    }
    ways.push_back(g_.bytes(value.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  if (ways.empty()) return error(where, "enum: expected at least one value of the right type");
  return g_.choice(std::move(ways));
}

Result<ExprId> SchemaReader::typed(const Json& schema, const std::string& type, const std::string& where, int depth) {
  if (type == "object") return object(schema, where, depth);
  if (type == "array") return array(schema, where, depth);
  if (type == "string") return string(schema, where);
  if (type == "integer" || type == "number") return number(schema, type == "integer", where);
  if (type == "boolean") return json_.boolean();
  if (type == "null") return json_.null();
  return error(where, "type: expected one of object, array, string, integer, number, boolean, null, found " + type);
}

Result<int> SchemaReader::count(const Json& schema, const char* keyword, int fallback, const std::string& where) const {
  if (!schema.contains(keyword)) return fallback;
  const Json& n = schema[keyword];
  const bool is_whole = n.is_number_integer() || (n.is_number_float() && n.get<double>() < 1e9 &&
                                                  n.get<double>() == static_cast<int>(n.get<double>()));
  if (!is_whole || n.get<double>() < 0) return error(where, std::string(keyword) + ": expected a count");
  if (n.get<double>() > kMaxRepeat) {
    return error(where, std::string(keyword) + ": expected at most " + std::to_string(kMaxRepeat));
  }
  return static_cast<int>(n.get<double>());
}

Result<ExprId> SchemaReader::object(const Json& schema, const std::string& where, int depth) {
  static const Json kNone = Json::object();
  const Json& properties = schema.contains("properties") ? schema["properties"] : kNone;
  if (!properties.is_object()) return error(where, "properties: expected an object");
  std::vector<std::string> required;
  if (schema.contains("required")) {
    if (!schema["required"].is_array()) return error(where, "required: expected an array");
    for (const Json& name : schema["required"]) {
      if (!name.is_string()) return error(where, "required: expected names");
      required.push_back(name.get<std::string>());
    }
  }
  const bool is_free = !schema.contains("properties") && required.empty() && !has_any(schema, kObjectWords);
  if (is_free) return json_.object();

  std::vector<Field> fields;
  std::vector<std::string> names;
  const auto add_field = [&](const std::string& name, const Json& value_schema, bool is_required) -> Status {
    TRY_ASSIGN(const ExprId member, value(value_schema, where + "/properties/" + name, depth + 1));
    const std::string key = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
    fields.push_back({g_.sequence({g_.bytes(key), json_.colon(), member}), is_required});
    names.push_back(name);
    return Ok{};
  };
  const auto is_required = [&](const std::string& name) {
    return std::find(required.begin(), required.end(), name) != required.end();
  };
  for (const auto& [name, property] : properties.items()) TRY(add_field(name, property, is_required(name)));
  static const Json kAny = true;
  const Json& additional = schema.contains("additionalProperties") ? schema["additionalProperties"] : kAny;
  for (const std::string& name : required) {
    if (std::find(names.begin(), names.end(), name) == names.end()) TRY(add_field(name, additional, true));
  }
  TRY_ASSIGN(const std::optional<ExprId> rest, other_members(schema, names, where, depth));
  TRY_ASSIGN(const int min, count(schema, "minProperties", 0, where));
  TRY_ASSIGN(const int max, count(schema, "maxProperties", kMaxRepeat, where));
  if (min > static_cast<int>(required.size())) {
    return unsupported(where, "minProperties", "beyond the number of required properties");
  }
  if (max < static_cast<int>(names.size()) || (rest && max < kMaxRepeat)) return unsupported(where, "maxProperties");
  return in_rule(json_.braces(g_.fields(std::move(fields), json_.comma(), rest)), where);
}

// Members beside the declared ones. Where a schema says nothing about them but declares others, none are offered.
Result<std::optional<ExprId>> SchemaReader::other_members(const Json& schema, const std::vector<std::string>& names,
                                                          const std::string& where, int depth) {
  const bool says_nothing = !schema.contains("additionalProperties");
  if (schema.contains("unevaluatedProperties") && schema["unevaluatedProperties"] != Json(false)) {
    return unsupported(where, "unevaluatedProperties", "unless it is false");
  }
  const bool is_closed = schema.contains("unevaluatedProperties") && says_nothing;
  if (is_closed || (says_nothing && !names.empty()) ||
      (!says_nothing && schema["additionalProperties"] == Json(false))) {
    return std::optional<ExprId>();
  }
  const Json additional = says_nothing ? Json(true) : schema["additionalProperties"];
  TRY_ASSIGN(const ExprId member, value(additional, where + "/additionalProperties", depth + 1));
  ExprId key = names.empty() ? json_.string() : json_.other_key(names);
  if (schema.contains("propertyNames")) {
    Json key_schema = schema["propertyNames"];
    if (key_schema.is_object() && !key_schema.contains("$ref")) key_schema["type"] = "string";
    const bool is_any = key_schema == Json(true) || key_schema == Json{{"type", "string"}};
    if (!is_any && !names.empty()) return unsupported(where, "propertyNames", "beside properties");
    if (!is_any) {
      TRY_ASSIGN(key, value(key_schema, where + "/propertyNames", depth + 1));
    }
  }
  return std::optional<ExprId>(g_.sequence({key, json_.colon(), member}));
}

Result<ExprId> SchemaReader::array(const Json& schema, const std::string& where, int depth) {
  if (schema.contains("uniqueItems") && schema["uniqueItems"] != Json(false)) return unsupported(where, "uniqueItems");
  if (schema.contains("unevaluatedItems") && schema["unevaluatedItems"] != Json(false)) {
    return unsupported(where, "unevaluatedItems", "unless it is false");
  }
  TRY_ASSIGN(const int min, count(schema, "minItems", 0, where));
  TRY_ASSIGN(int max, count(schema, "maxItems", kUnbounded, where));
  std::vector<ExprId> first;
  // Drafts before 2020 write given items as a list of `items`, and `additionalItems` for those behind them.
  const bool is_old = schema.contains("items") && schema["items"].is_array();
  if (is_old && schema.contains("prefixItems")) return unsupported(where, "items", "as a list beside prefixItems");
  const char* const first_word = is_old ? "items" : "prefixItems";
  const char* const rest_word = is_old ? "additionalItems" : "items";
  if (schema.contains(first_word)) {
    if (!schema[first_word].is_array()) return error(where, "prefixItems: expected an array");
    for (const Json& item : schema[first_word]) {
      const std::string place = where + "/" + first_word + "/" + std::to_string(first.size());
      TRY_ASSIGN(const ExprId part, value(item, place, depth + 1));
      if (max == kUnbounded || static_cast<int>(first.size()) < max) first.push_back(part);
    }
  }
  const auto n_first = static_cast<int>(first.size());
  const bool has_rest = schema.contains(rest_word);
  const bool is_closed =
      (has_rest && schema[rest_word] == Json(false)) || (!has_rest && schema.contains("unevaluatedItems"));
  if (is_closed) max = n_first;
  if (max != kUnbounded && (min > max || n_first > max)) return error(where, "minItems: no length is left");
  static const Json kAny = true;
  const Json& items = has_rest && !is_closed ? schema[rest_word] : kAny;
  // A list of given items alone stays as it is: more of any kind would be allowed, and nobody means it.
  if (n_first > 0 && !has_rest && min <= n_first) max = n_first;
  if (max == 0) return json_.brackets(g_.nothing());
  TRY_ASSIGN(const ExprId item_value, value(items, where + "/" + rest_word, depth + 1));
  const ExprId item = in_rule(item_value, where + "/" + rest_word);
  const ExprId next = g_.sequence({json_.comma(), item});
  const auto more = [&](int n_there) {
    return g_.repeat(next, std::max(min - n_there, 0), max == kUnbounded ? kUnbounded : max - n_there);
  };
  if (n_first == 0) {
    const ExprId some = g_.sequence({item, more(1)});
    return in_rule(json_.brackets(min == 0 ? g_.optional(some) : some), where);
  }
  std::vector<ExprId> parts;
  for (const ExprId part : first) {
    if (!parts.empty()) parts.push_back(json_.comma());
    parts.push_back(part);
  }
  parts.push_back(more(n_first));
  return in_rule(json_.brackets(g_.sequence(std::move(parts))), where);
}

Result<ExprId> SchemaReader::string(const Json& schema, const std::string& where) {
  TRY_ASSIGN(const int min, count(schema, "minLength", 0, where));
  TRY_ASSIGN(const int max, count(schema, "maxLength", kUnbounded, where));
  const bool has_length = min > 0 || max != kUnbounded;
  if (max != kUnbounded && min > max) return error(where, "minLength: larger than maxLength");
  RegexOptions options;
  options.write = JsonText::string_char;
  std::string pattern;
  if (schema.contains("format")) {
    if (!schema["format"].is_string()) return error(where, "format: expected a string");
    const auto name = schema["format"].get<std::string>();
    const std::optional<std::string_view> known = format_pattern(name);
    if (!known) return unsupported(where, "format", name + "; known are " + known_formats());
    pattern = *known;
  }
  if (schema.contains("pattern")) {
    if (!schema["pattern"].is_string()) return error(where, "pattern: expected a string");
    if (!pattern.empty()) return unsupported(where, "pattern", "beside format");
    pattern = schema["pattern"].get<std::string>();
    options.is_search = true;
  }
  if (pattern.empty()) return json_.string(min, max);
  if (has_length) {
    return unsupported(where, min > 0 ? "minLength" : "maxLength",
                       "beside pattern or format: write the length into the pattern");
  }
  auto inner = parse_regex(pattern, g_, options);
  if (!inner) return error(where, "pattern: " + inner.error().message);
  return in_rule(json_.quoted(*inner), where);
}

Result<std::optional<Bound>> SchemaReader::bound(const Json& schema, const char* including, const char* excluding,
                                                 bool is_low, const std::string& where) const {
  std::optional<Bound> tightest;
  const Json* tightest_value = nullptr;
  for (const char* keyword : {including, excluding}) {
    if (!schema.contains(keyword)) continue;
    const Json& value = schema[keyword];
    if (!value.is_number()) return error(where, std::string(keyword) + ": expected a number");
    const std::string text = value.dump();
    if (text.find('e') != std::string::npos || text.size() > 30) {
      return unsupported(where, keyword, "of " + text + ": expected at most 15 digits");
    }
    const bool is_tighter = !tightest_value || (is_low ? value >= *tightest_value : value <= *tightest_value);
    if (!is_tighter) continue;
    tightest = Bound{text, keyword == excluding};
    tightest_value = &value;
  }
  return tightest;
}

Result<ExprId> SchemaReader::number(const Json& schema, bool is_integer, const std::string& where) {
  if (schema.contains("multipleOf")) {
    const bool is_one = is_integer && schema["multipleOf"] == Json(1);
    if (!is_one) return unsupported(where, "multipleOf");
  }
  TRY_ASSIGN(std::optional<Bound> low, bound(schema, "minimum", "exclusiveMinimum", true, where));
  TRY_ASSIGN(std::optional<Bound> high, bound(schema, "maximum", "exclusiveMaximum", false, where));
  // Some clients write the limits of 64-bit integers, which none of our numbers reaches.
  const auto is_far = [](const std::optional<Bound>& b) {
    return b && std::min(b->decimal.find('.'), b->decimal.size()) > 18;
  };
  if (is_integer && is_far(low) && low->decimal.starts_with('-')) low.reset();
  if (is_integer && is_far(high) && !high->decimal.starts_with('-')) high.reset();
  if (!low && !high) return is_integer ? json_.integer() : json_.number();
  return in_rule(is_integer ? integer_between(g_, low, high) : number_between(g_, low, high), where);
}

}  // namespace

Result<ExprId> parse_schema(std::string_view schema, Grammar& grammar) { return parse_schema_at(schema, "#", grammar); }

Result<ExprId> parse_schema_at(std::string_view schema, const std::string& place, Grammar& grammar) {
  if (schema.size() > kMaxTextBytes) {
    return Error{Code::invalid_argument, "schema: expected at most " + std::to_string(kMaxTextBytes) +
                                             " bytes, found " + std::to_string(schema.size())};
  }
  constexpr JsonLimits kLimits = {.depth = 2 * kMaxNesting};
  const auto root = parse_json(schema, kLimits);
  if (!root) {
    return Error{Code::invalid_argument, "schema: expected JSON that is not nested deeper than " +
                                             std::to_string(kLimits.depth) + ": " + root.error().message};
  }
  return SchemaReader(grammar, *root).place(place);
}

ExprId any_object(Grammar& grammar) { return JsonText(grammar).object(); }

}  // namespace chimere::grammar
