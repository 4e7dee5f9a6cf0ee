// qwen_xml.cpp  Qwen3-Coder, Qwen3.5 and Nemotron 3: calls as tags, whose values are text or JSON.
//
//   <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
#include <algorithm>
#include <optional>
#include <vector>

#include "chat/dialects/call_grammar.h"
#include "chat/dialects/tagged_calls.h"
#include "grammar/formats.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

namespace chimere::chat {
namespace {

using grammar::ExprId;
using grammar::Grammar;

bool is_qwen_xml(std::string_view source) {
  return source.find("<function=") != std::string_view::npos && source.find("<parameter=") != std::string_view::npos;
}

// Parameters are written one by one, so that they must be declared one by one. That the schema can be read at all is
// found out by reading it.
Status check_parameters(const Json& schema) {
  Grammar unused;
  TRY(grammar::parse_schema(schema.dump(), unused));
  for (const char* keyword : {"$ref", "allOf", "anyOf", "oneOf", "enum", "const"}) {
    if (!schema.contains(keyword)) continue;
    return Error{Code::unsupported, std::string("parameters: `") + keyword +
                                        "` is not supported at their top by this model's form of tool calls"};
  }
  if (!schema.contains("required")) return Ok{};
  for (const Json& name : schema["required"]) {
    if (schema.contains("properties") && schema["properties"].contains(name.get<std::string>())) continue;
    return Error{Code::invalid_argument, "parameters: " + name.dump() + " is required but not declared"};
  }
  return Ok{};
}

// Strings stand there as they are, everything else as JSON. A line ends both.
Result<ExprId> xml_value(const Json& schema, const std::string& name, const Json& property, Grammar& g) {
  const bool is_text = property.is_object() && property.contains("type") && property["type"] == Json("string");
  const auto on_line = [&](ExprId value) { return g.sequence({value, g.bytes("\n")}); };
  if (!is_text) {
    std::string place = "#/properties/";
    for (const char c : name) place += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    TRY_ASSIGN(const ExprId value, grammar::parse_schema_at(schema.dump(), place, g));
    return on_line(value);
  }
  if (property.contains("enum") || property.contains("const")) {
    std::vector<ExprId> ways;
    const Json values = property.contains("enum") ? property["enum"] : Json::array({property["const"]});
    for (const Json& value : values) {
      if (value.is_string()) ways.push_back(g.bytes(value.get<std::string>()));
    }
    return on_line(g.choice(std::move(ways)));
  }
  std::string pattern;
  grammar::RegexOptions options;
  if (property.contains("pattern")) {
    pattern = property["pattern"].get<std::string>();
    options.is_search = true;
  } else if (property.contains("format")) {
    pattern = grammar::format_pattern(property["format"].get<std::string>()).value_or("");
  }
  if (!pattern.empty()) {
    TRY_ASSIGN(const ExprId value, grammar::parse_regex(pattern, g, options));
    return on_line(value);
  }
  if (property.contains("minLength") || property.contains("maxLength")) {
    const int min = property.value("minLength", 0), max = property.value("maxLength", grammar::kUnbounded);
    return on_line(g.repeat(g.chars(grammar::CharSet::of("<").inverted()), min, max));
  }
  return g.without("</parameter>");
}

Result<ExprId> qwen_xml_call(const DeclaredTool& tool, CallGrammar& grammar) {
  Grammar& g = grammar.g;
  std::vector<grammar::Field> fields;
  const Json& schema = tool.parameters;
  if (!schema.is_null()) TRY(check_parameters(schema));
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object()) {
    for (const auto& [name, property] : schema["properties"].items()) {
      TRY_ASSIGN(const ExprId value, xml_value(schema, name, property, g));
      const ExprId parameter = g.sequence({g.bytes("<parameter=" + name + ">\n"), value, g.bytes("</parameter>\n")});
      const bool is_required =
          schema.contains("required") && schema["required"].is_array() &&
          std::find(schema["required"].begin(), schema["required"].end(), Json(name)) != schema["required"].end();
      fields.push_back({parameter, is_required});
    }
  }
  return grammar.tagged(g.sequence({g.bytes("<function=" + tool.name + ">\n"),
                                    g.fields(std::move(fields), g.nothing(), std::nullopt), g.bytes("</function>")}));
}

}  // namespace

extern const Dialect kQwenXml = {.name = "qwen-xml",
                                 .is_shown_by = is_qwen_xml,
                                 .marker = kToolCallOpen,
                                 .may_lack_marker = false,
                                 .is_framed = false,
                                 .words = kTaggedCallWords,
                                 .make_reader = make_tagged_reader,
                                 .call = qwen_xml_call,
                                 .calls = calls_on_lines};

}  // namespace chimere::chat
