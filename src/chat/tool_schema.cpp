// tool_schema.cpp  Reading JSON schemas for parameter types.
#include "chat/tool_schema.h"

#include <algorithm>
#include <initializer_list>

#include "text/json.h"

namespace chimere::chat {
namespace {

constexpr int kMaxSchemaDepth = 16;

// Arguments may be nested deeper than a request; a value of the type `discarded` where the text is no JSON.
Json parse_lenient(std::string_view text) {
  auto json = parse_json(text, {.depth = 100});
  return json ? std::move(*json) : Json(Json::value_t::discarded);
}

std::string type_of(const Json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_array()) return "array";
  return "object";
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

// "#/$defs/name" within the parameters' schema.
const Json* resolve_reference(const Json& root, const std::string& reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const Json* node = &root;
  for (size_t begin = 2; begin <= reference.size();) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    node = member(*node, reference.substr(begin, end - begin).c_str());
    if (!node) return nullptr;
    begin = end + 1;
  }
  return node;
}

// False when the schema does not restrict the type.
bool collect_types(const Json& schema, const Json& root, int depth, JsonTypes& types) {
  if (depth > kMaxSchemaDepth) return false;
  if (const auto* reference = member(schema, "$ref"); reference && reference->is_string()) {
    const Json* target = resolve_reference(root, reference->get<std::string>());
    return target && collect_types(*target, root, depth + 1, types);
  }
  if (const auto* type = member(schema, "type")) {
    if (type->is_string()) {
      types.insert(type->get<std::string>());
      return true;
    }
    if (type->is_array()) {
      for (const auto& one : *type) {
        if (one.is_string()) types.insert(one.get<std::string>());
      }
      return !types.empty();
    }
  }
  if (const auto* values = member(schema, "enum"); values && values->is_array()) {
    for (const auto& value : *values) types.insert(type_of(value));
    return !types.empty();
  }
  if (const auto* value = member(schema, "const")) {
    types.insert(type_of(*value));
    return true;
  }
  for (const char* choice : {"anyOf", "oneOf", "allOf"}) {
    const auto* options = member(schema, choice);
    if (!options || !options->is_array()) continue;
    bool all_known = !options->empty();
    for (const auto& option : *options) all_known = collect_types(option, root, depth + 1, types) && all_known;
    return all_known;
  }
  return false;
}

bool accepts(const JsonTypes& types, const std::string& type) {
  return types.empty() || types.count(type) || (type == "integer" && types.count("number"));
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

ToolParameters declared_parameters(const std::vector<Tool>& tools) {
  ToolParameters result;
  for (const Tool& tool : tools) {
    const Json json = parse_lenient(tool.json);
    const Json* function = member(json, "function");
    if (!function) function = &json;
    const Json* name = member(*function, "name");
    if (!name || !name->is_string() || name->get<std::string>().empty()) continue;
    auto& parameters = result[name->get<std::string>()];
    const Json* schema = member(*function, "parameters");
    const Json* properties = schema ? member(*schema, "properties") : nullptr;
    if (!properties || !properties->is_object()) continue;
    for (const auto& [key, property] : properties->items()) {
      JsonTypes types;
      if (!collect_types(property, *schema, 0, types)) types.clear();
      parameters[key] = std::move(types);
    }
  }
  return result;
}

std::string json_quoted(std::string_view text) { return to_text(Json(std::string(text))); }

std::string json_of_argument(std::string_view raw, const JsonTypes& types) {
  const bool only_string = types.size() == 1 && types.count("string");
  if (only_string) return json_quoted(raw);
  const std::string_view text = trimmed(raw);
  // Templates show booleans in Python's spelling, and models repeat what they saw.
  if (types.count("boolean") && (text == "True" || text == "False")) return text == "True" ? "true" : "false";
  if (types.count("null") && text == "None") return "null";
  const Json json = parse_lenient(text);
  if (json.is_discarded()) return json_quoted(raw);
  const std::string type = type_of(json);
  // Among several types that include string, JSON of a type that was not declared is just text.
  if (types.count("string") && (type == "string" || !accepts(types, type))) return json_quoted(raw);
  return std::string(text);
}

bool is_surely_text(std::string_view begin, const JsonTypes& types) {
  constexpr size_t kEnough = 64;  // of a text that is none of JSON's literals
  const bool takes_text = types.count("string") > 0;
  if (takes_text && types.size() == 1) return true;
  const auto may_be = [&](const char* type) { return !takes_text || accepts(types, type); };
  const std::string_view text = trimmed(begin.substr(0, kEnough));
  if (text.empty()) return false;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // JSON may begin with one
  if (kByteOrderMark.starts_with(text) || text.starts_with(kByteOrderMark)) return false;
  const char first = text[0];
  if (first == '{') return !may_be("object");
  if (first == '[') return !may_be("array");
  if (first == '"') return takes_text;
  const auto may_become = [&](const char* type, std::initializer_list<std::string_view> words) {
    return may_be(type) && std::any_of(words.begin(), words.end(), [&](auto word) { return word.starts_with(text); });
  };
  if (may_become("boolean", {"true", "false", "True", "False"}) || may_become("null", {"null", "None"})) return false;
  const bool may_be_number = may_be("number") || may_be("integer");
  return !may_be_number || text.find_first_not_of("+-.0123456789eE") != std::string_view::npos;
}

namespace {

std::optional<ToolCall> read_call(const Json& json) {
  const Json* name = member(json, "name");
  if (!name || !name->is_string()) return std::nullopt;
  ToolCall call{"", name->get<std::string>(), "{}"};
  const Json* arguments = member(json, "arguments");
  if (!arguments) arguments = member(json, "parameters");
  if (!arguments || arguments->is_null()) return call;
  if (arguments->is_string()) {
    call.arguments_json = arguments->get<std::string>();
    return parse_lenient(call.arguments_json).is_object() ? std::optional(call) : std::nullopt;
  }
  if (!arguments->is_object()) return std::nullopt;
  call.arguments_json = to_text(*arguments);
  return call;
}

}  // namespace

std::optional<ToolCall> parse_json_call(std::string_view text, const std::string& name) {
  const Json json = parse_lenient(trimmed(text));
  if (!name.empty()) return json.is_object() ? std::optional(ToolCall{"", name, to_text(json)}) : std::nullopt;
  if (!json.is_array()) return read_call(json);
  return json.size() == 1 ? read_call(json[0]) : std::nullopt;
}

}  // namespace chimere::chat
