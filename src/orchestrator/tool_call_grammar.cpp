#include "orchestrator/tool_call_grammar.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "chat/bare_calls.h"
#include "chat/markers.h"
#include "grammar/formats.h"
#include "grammar/json_text.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

namespace chimere::orchestrator {
namespace {

using chat::ToolFormat;
using grammar::ExprId;
using grammar::Grammar;
using Json = nlohmann::ordered_json;

struct Declared {
  std::string name;
  Json parameters;  // null: the tool takes none
};

Result<std::vector<Declared>> read(const std::vector<chat::Tool>& tools, const std::string& only) {
  std::vector<Declared> declared;
  for (const chat::Tool& tool : tools) {
    const Json json = Json::parse(tool.json, nullptr, false);
    const bool has_name = json.is_object() && json.contains("function") && json["function"].is_object() &&
                          json["function"].contains("name") && json["function"]["name"].is_string();
    if (!has_name) return Error{Code::invalid_argument, "tools: expected a function with a name"};
    const Json& function = json["function"];
    Declared entry{function["name"].get<std::string>(), nullptr};
    if (!only.empty() && entry.name != only) continue;
    if (function.contains("parameters") && !function["parameters"].empty()) entry.parameters = function["parameters"];
    declared.push_back(std::move(entry));
  }
  if (declared.empty()) return Error{Code::invalid_argument, "tool_choice: there is no tool " + only};
  return declared;
}

class CallWriter {
 public:
  CallWriter(const ToolCallForm& form, const Tokenizer& tokenizer, Grammar& grammar)
      : form_(form), tokenizer_(tokenizer), g_(grammar), json_(grammar) {}

  Result<ExprId> all(const std::vector<Declared>& tools) {
    std::vector<ExprId> calls;
    for (const Declared& tool : tools) {
      auto call = one(tool);
      if (!call) return Error{call.error().code, "tool " + tool.name + ": " + call.error().message};
      calls.push_back(*call);
    }
    const ExprId any = g_.choice(std::move(calls));
    const int most = form_.allows_several ? kMaxToolCalls - 1 : 0;
    switch (form_.format) {
      case ToolFormat::llama3: return any;  // the form has no place for a second one
      case ToolFormat::mistral:
        if (names_calls()) return g_.repeat(any, 1, most + 1);
        return g_.sequence({marker(chat::kToolCalls),
                            json_.brackets(g_.sequence({any, g_.repeat(g_.sequence({json_.comma(), any}), 0, most)}))});
      case ToolFormat::none:
      case ToolFormat::hermes:
      case ToolFormat::xml: break;
    }
    return g_.sequence({any, g_.repeat(g_.sequence({g_.bytes("\n"), any}), 0, most)});
  }

 private:
  // The newer of Mistral's forms has a token between name and arguments.
  bool names_calls() const { return tokenizer_.find_token("[ARGS]") >= 0; }

  // Words that a vocabulary has as one token are written as that token, which is what the model learnt.
  ExprId marker(std::string_view text) {
    const int32_t id = tokenizer_.find_token(text);
    const bool is_word = id >= 0 && (tokenizer_.token_type(id) == TokenType::control ||
                                     tokenizer_.token_type(id) == TokenType::user_defined);
    return is_word ? g_.token(id) : g_.bytes(std::string(text));
  }

  Result<ExprId> one(const Declared& tool) {
    if (form_.format == ToolFormat::xml) {
      TRY_ASSIGN(const ExprId body, xml_function(tool));
      return g_.sequence({marker(chat::kToolCallOpen), g_.bytes("\n"), body, g_.bytes("\n"), marker("</tool_call>")});
    }
    ExprId arguments = g_.bytes("{}");
    if (!tool.parameters.is_null()) {
      TRY_ASSIGN(arguments, grammar::parse_schema(tool.parameters.dump(), g_));
    }
    if (form_.format == ToolFormat::mistral && names_calls()) {
      return g_.sequence({marker(chat::kToolCalls), g_.bytes(tool.name), marker("[ARGS]"), arguments});
    }
    const char* key = form_.format == ToolFormat::llama3 ? "\"parameters\"" : "\"arguments\"";
    const ExprId call =
        g_.sequence({g_.bytes("{\"name\""), json_.colon(), g_.bytes(Json(tool.name).dump() + ","),
                     g_.optional(g_.bytes(" ")), g_.bytes(key), json_.colon(), arguments, g_.bytes("}")});
    if (form_.format == ToolFormat::llama3 || form_.format == ToolFormat::mistral) return call;
    return g_.sequence({marker(chat::kToolCallOpen), g_.bytes("\n"), call, g_.bytes("\n"), marker("</tool_call>")});
  }

  Result<ExprId> xml_function(const Declared& tool) {
    std::vector<grammar::Field> fields;
    const Json& schema = tool.parameters;
    if (!schema.is_null()) TRY(check_parameters(schema));
    if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object()) {
      for (const auto& [name, property] : schema["properties"].items()) {
        TRY_ASSIGN(const ExprId value, xml_value(schema, name, property));
        const ExprId parameter =
            g_.sequence({g_.bytes("<parameter=" + name + ">\n"), value, g_.bytes("</parameter>\n")});
        const bool is_required =
            schema.contains("required") && schema["required"].is_array() &&
            std::find(schema["required"].begin(), schema["required"].end(), Json(name)) != schema["required"].end();
        fields.push_back({parameter, is_required});
      }
    }
    return g_.sequence({g_.bytes("<function=" + tool.name + ">\n"),
                        g_.fields(std::move(fields), g_.nothing(), std::nullopt), g_.bytes("</function>")});
  }

  // Parameters are written one by one, so that they must be declared one by one. That the schema can be read at all is
  // found out by reading it.
  static Status check_parameters(const Json& schema) {
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
  Result<ExprId> xml_value(const Json& schema, const std::string& name, const Json& property) {
    const bool is_text = property.is_object() && property.contains("type") && property["type"] == Json("string");
    const auto on_line = [&](ExprId value) { return g_.sequence({value, g_.bytes("\n")}); };
    if (!is_text) {
      std::string place = "#/properties/";
      for (const char c : name) place += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      TRY_ASSIGN(const ExprId value, grammar::parse_schema_at(schema.dump(), place, g_));
      return on_line(value);
    }
    if (property.contains("enum") || property.contains("const")) {
      std::vector<ExprId> ways;
      const Json values = property.contains("enum") ? property["enum"] : Json::array({property["const"]});
      for (const Json& value : values) {
        if (value.is_string()) ways.push_back(g_.bytes(value.get<std::string>()));
      }
      return on_line(g_.choice(std::move(ways)));
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
      TRY_ASSIGN(const ExprId value, grammar::parse_regex(pattern, g_, options));
      return on_line(value);
    }
    if (property.contains("minLength") || property.contains("maxLength")) {
      const int min = property.value("minLength", 0), max = property.value("maxLength", grammar::kUnbounded);
      return on_line(g_.repeat(g_.chars(grammar::CharSet::of("<").inverted()), min, max));
    }
    return g_.without("</parameter>");
  }

  const ToolCallForm& form_;
  const Tokenizer& tokenizer_;
  Grammar& g_;
  grammar::JsonText json_;
};

}  // namespace

std::string_view tool_call_opening(ToolFormat format) {
  if (format == ToolFormat::llama3) return {};
  return format == ToolFormat::mistral ? chat::kToolCalls : chat::kToolCallOpen;
}

Result<ExprId> tool_calls(const std::vector<chat::Tool>& tools, const ToolCallForm& form, const Tokenizer& tokenizer,
                          Grammar& grammar) {
  TRY_ASSIGN(const std::vector<Declared> declared, read(tools, form.only_tool));
  return CallWriter(form, tokenizer, grammar).all(declared);
}

}  // namespace chimere::orchestrator
