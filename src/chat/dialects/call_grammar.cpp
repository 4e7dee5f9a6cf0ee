#include "chat/dialects/call_grammar.h"

#include <utility>
#include <vector>

#include "chat/dialects/dialect.h"
#include "chat/markers.h"
#include "grammar/schema.h"

namespace chimere::chat {
namespace {

using grammar::ExprId;

Result<std::vector<DeclaredTool>> read_declared(const std::vector<Tool>& tools, const std::string& only) {
  std::vector<DeclaredTool> declared;
  for (const Tool& tool : tools) {
    const auto json = parse_json(tool.json);
    const bool has_name = json && json->is_object() && json->contains("function") && (*json)["function"].is_object() &&
                          (*json)["function"].contains("name") && (*json)["function"]["name"].is_string();
    if (!has_name) return Error{Code::invalid_argument, "tools: expected a function with a name"};
    const Json& function = (*json)["function"];
    DeclaredTool entry{function["name"].get<std::string>(), nullptr};
    if (!only.empty() && entry.name != only) continue;
    if (function.contains("parameters") && !function["parameters"].empty()) entry.parameters = function["parameters"];
    declared.push_back(std::move(entry));
  }
  if (declared.empty()) return Error{Code::invalid_argument, "tool_choice: there is no tool " + only};
  return declared;
}

}  // namespace

ExprId CallGrammar::word(std::string_view text) {
  const int32_t id = tokenizer_.find_token(text);
  const bool is_word = id >= 0 && (tokenizer_.token_type(id) == TokenType::control ||
                                   tokenizer_.token_type(id) == TokenType::user_defined);
  return is_word ? g.token(id) : g.bytes(std::string(text));
}

Result<ExprId> CallGrammar::arguments(const DeclaredTool& tool) {
  if (tool.parameters.is_null()) return g.bytes("{}");
  return grammar::parse_schema(tool.parameters.dump(), g);
}

Result<ExprId> CallGrammar::json_call(const DeclaredTool& tool, const std::string& key) {
  TRY_ASSIGN(const ExprId inner, arguments(tool));
  return g.sequence({g.bytes("{\"name\""), json.colon(), g.bytes(Json(tool.name).dump() + ","),
                     g.optional(g.bytes(" ")), g.bytes("\"" + key + "\""), json.colon(), inner, g.bytes("}")});
}

ExprId CallGrammar::tagged(ExprId call) {
  return g.sequence({word(kToolCallOpen), g.bytes("\n"), call, g.bytes("\n"), word(kToolCallClose)});
}

ExprId calls_on_lines(ExprId call, int most, CallGrammar& grammar) {
  grammar::Grammar& g = grammar.g;
  return g.sequence({call, g.repeat(g.sequence({g.bytes("\n"), call}), 0, most - 1)});
}

Result<ExprId> tool_calls(const std::vector<Tool>& tools, const ToolCallForm& form, const Tokenizer& tokenizer,
                          grammar::Grammar& grammar) {
  TRY_ASSIGN(const std::vector<DeclaredTool> declared, read_declared(tools, form.only_tool));
  CallGrammar written(tokenizer, grammar);
  std::vector<ExprId> calls;
  for (const DeclaredTool& tool : declared) {
    auto call = form.dialect->call(tool, written);
    if (!call) return Error{call.error().code, "tool " + tool.name + ": " + call.error().message};
    calls.push_back(*call);
  }
  return form.dialect->calls(grammar.choice(std::move(calls)), form.allows_several ? kMaxToolCalls : 1, written);
}

}  // namespace chimere::chat
