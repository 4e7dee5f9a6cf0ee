// tool_schema.cpp  Reading JSON schemas for parameter types.
#include "chat/tool_schema.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace chimere::chat {
namespace {

using nlohmann::ordered_json;

constexpr int kMaxSchemaDepth = 16;

// Brackets open at once, outside of strings. Writing JSON recurses, so what is read must be shallow.
bool is_too_deep(std::string_view text) {
  constexpr int kMaxDepth = 100;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (++depth > kMaxDepth) return true;
    } else if (!in_string && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

ordered_json parse_lenient(std::string_view text) {
  if (is_too_deep(text)) return ordered_json(ordered_json::value_t::discarded);
  return ordered_json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

std::string type_of(const ordered_json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_array()) return "array";
  return "object";
}

const ordered_json* member(const ordered_json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

// "#/$defs/name" within the parameters' schema.
const ordered_json* resolve_reference(const ordered_json& root, const std::string& reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const ordered_json* node = &root;
  for (size_t begin = 2; begin <= reference.size();) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    node = member(*node, reference.substr(begin, end - begin).c_str());
    if (!node) return nullptr;
    begin = end + 1;
  }
  return node;
}

// False when the schema does not restrict the type.
bool collect_types(const ordered_json& schema, const ordered_json& root, int depth, JsonTypes& types) {
  if (depth > kMaxSchemaDepth) return false;
  if (const auto* reference = member(schema, "$ref"); reference && reference->is_string()) {
    const ordered_json* target = resolve_reference(root, reference->get<std::string>());
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

std::map<std::string, std::map<std::string, JsonTypes>> declared_parameters(const std::vector<Tool>& tools) {
  std::map<std::string, std::map<std::string, JsonTypes>> result;
  for (const Tool& tool : tools) {
    const ordered_json json = parse_lenient(tool.json);
    const ordered_json* function = member(json, "function");
    if (!function) function = &json;
    const ordered_json* name = member(*function, "name");
    if (!name || !name->is_string() || name->get<std::string>().empty()) continue;
    auto& parameters = result[name->get<std::string>()];
    const ordered_json* schema = member(*function, "parameters");
    const ordered_json* properties = schema ? member(*schema, "properties") : nullptr;
    if (!properties || !properties->is_object()) continue;
    for (const auto& [key, property] : properties->items()) {
      JsonTypes types;
      if (!collect_types(property, *schema, 0, types)) types.clear();
      parameters[key] = std::move(types);
    }
  }
  return result;
}

std::string json_quoted(std::string_view text) {
  return ordered_json(std::string(text)).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string json_of_argument(std::string_view raw, const JsonTypes& types) {
  const bool only_string = types.size() == 1 && types.count("string");
  if (only_string) return json_quoted(raw);
  const std::string_view text = trimmed(raw);
  // Templates show booleans in Python's spelling, and models repeat what they saw.
  if (types.count("boolean") && (text == "True" || text == "False")) return text == "True" ? "true" : "false";
  if (types.count("null") && text == "None") return "null";
  const ordered_json json = parse_lenient(text);
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

std::string compact(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool read_call(const ordered_json& json, JsonCall& call) {
  const ordered_json* name = member(json, "name");
  if (!name || !name->is_string()) return false;
  call.name = name->get<std::string>();
  const ordered_json* arguments = member(json, "arguments");
  if (!arguments) arguments = member(json, "parameters");
  if (!arguments || arguments->is_null()) {
    call.arguments_json = "{}";
    return true;
  }
  if (arguments->is_string()) {
    call.arguments_json = arguments->get<std::string>();
    return parse_lenient(call.arguments_json).is_object();
  }
  if (!arguments->is_object()) return false;
  call.arguments_json = compact(*arguments);
  return true;
}

}  // namespace

bool parse_json_call(std::string_view text, JsonCall& call) { return read_call(parse_lenient(trimmed(text)), call); }

bool parse_json_calls(std::string_view text, const std::string& name, std::vector<JsonCall>& calls) {
  const ordered_json json = parse_lenient(trimmed(text));
  if (!name.empty()) {
    if (!json.is_object()) return false;
    calls.push_back({name, compact(json)});
    return true;
  }
  if (!json.is_array()) return read_call(json, calls.emplace_back());
  for (const ordered_json& item : json) {
    if (!read_call(item, calls.emplace_back())) return false;
  }
  return !calls.empty();
}

}  // namespace chimere::chat
