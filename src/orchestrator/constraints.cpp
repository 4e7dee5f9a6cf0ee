#include "orchestrator/constraints.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/gbnf.h"
#include "grammar/recogniser.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

namespace chimere::orchestrator {
namespace {

using grammar::ExprId;
using grammar::Grammar;

// The first mask is made here, where the request waits anyway, unless it takes so long that others would wait too.
constexpr int64_t kFirstMaskSteps = 1'000'000;

Status check_one(const AnswerForm& form) {
  const int n = form.json_object + !form.json_schema.empty() + !form.grammar.empty() + !form.regex.empty();
  if (n <= 1) return Ok{};
  return Error{Code::invalid_argument,
               "expected one of response_format, grammar and regex, found " + std::to_string(n)};
}

Result<ExprId> expression_of(const AnswerForm& form, Grammar& grammar) {
  if (form.json_object) return grammar::any_object(grammar);
  if (!form.json_schema.empty()) return grammar::parse_schema(form.json_schema, grammar);
  if (!form.grammar.empty()) return grammar::parse_gbnf(form.grammar, grammar);
  return grammar::parse_regex(form.regex, grammar);
}

// Texts of any content in a row, told apart by their lengths.
void add_to_key(std::string& key, const std::string& text) { key += std::to_string(text.size()) + ":" + text; }

std::string key_of(const AnswerForm& form) {
  std::string key(1, form.json_object ? 'o' : '-');
  for (const std::string* text : {&form.json_schema, &form.grammar, &form.regex}) add_to_key(key, *text);
  return key;
}

}  // namespace

Result<bool> fits_form(const AnswerForm& form, std::string_view text) {
  TRY(check_one(form));
  if (form.is_free()) return true;
  Grammar grammar;
  TRY_ASSIGN(const ExprId root, expression_of(form, grammar));
  grammar.root = grammar.add_rule("the answer");
  grammar.define(grammar.root, root);
  TRY_ASSIGN(const grammar::Automaton automaton, grammar::compile(grammar));
  grammar::Recogniser recogniser(automaton);
  grammar::PlaceSet at, next;
  recogniser.start(at);
  for (const char c : text) {
    recogniser.step(at, static_cast<unsigned char>(c), next);
    std::swap(at, next);
    if (!at.is_alive()) return false;
  }
  return at.may_end;
}

Constraints::Constraints(const Tokenizer& tokenizer, int32_t n_rows)
    : tokenizer_(tokenizer), vocabulary_(std::make_shared<const grammar::Vocabulary>(tokenizer, n_rows)) {}

template <class Build>
Result<std::shared_ptr<const TokenConstraint>> Constraints::kept(std::string key, Build build) {
  const auto known = std::find_if(made_.begin(), made_.end(), [&](const auto& entry) { return entry.first == key; });
  if (known != made_.end()) {
    std::rotate(made_.begin(), known, known + 1);
    return made_.front().second;
  }
  Grammar grammar;
  TRY_ASSIGN(const ExprId root, build(grammar));
  grammar.root = grammar.add_rule("the answer");
  grammar.define(grammar.root, root);
  TRY_ASSIGN(std::shared_ptr<const grammar::TokenGrammar> compiled,
             grammar::TokenGrammar::create(grammar, vocabulary_));
  auto constraint = std::make_shared<grammar::GrammarConstraint>(std::move(compiled));
  constraint->prepare(kFirstMaskSteps);
  made_.emplace_front(std::move(key), std::move(constraint));
  if (made_.size() > kKept) made_.pop_back();
  return made_.front().second;
}

Result<Constraints::Made> Constraints::of_chat(const ChatRequest& request, const chat::Dialect& dialect,
                                               const Lead& lead) {
  TRY(check_one(request.form));
  const bool has_tools = !request.tools.empty() && request.tool_choice != ToolChoice::none;
  const bool must_call =
      has_tools && (request.tool_choice == ToolChoice::required || request.tool_choice == ToolChoice::named);
  const std::string opening(dialect.may_lack_marker ? "" : dialect.marker);
  // Of calls that begin with JSON alone nobody can say where text ends and the first of them begins.
  const bool is_limited = !request.parallel_tool_calls || request.only_declared_tools;
  const bool limits_calls = has_tools && is_limited && !opening.empty();
  if (request.form.is_free() && !must_call && !limits_calls) return Made{};

  chat::ToolCallForm calls{&dialect, request.tool_choice == ToolChoice::named ? request.tool_name : "",
                           request.parallel_tool_calls};
  std::string key = "chat " + std::string(dialect.name);
  key += lead.blank_lines ? "b" : "-";
  key += must_call ? "m" : "-";
  key += request.parallel_tool_calls ? "p" : "-";
  key += key_of(request.form);
  add_to_key(key, std::string(lead.thought_close));
  add_to_key(key, calls.only_tool);
  if (has_tools) {
    for (const chat::Tool& tool : request.tools) add_to_key(key, tool.json);
  }
  auto build = [&](Grammar& grammar) -> Result<ExprId> {
    std::vector<ExprId> ways;
    if (has_tools) {
      TRY_ASSIGN(const ExprId call, chat::tool_calls(request.tools, calls, tokenizer_, grammar));
      ways.push_back(call);
    }
    if (!must_call && !request.form.is_free()) {
      TRY_ASSIGN(const ExprId form, expression_of(request.form, grammar));
      ways.push_back(form);
    } else if (!must_call) {
      ways = {grammar.sequence({grammar.without(opening), grammar.optional(ways[0])})};
    }
    const ExprId answer = grammar.choice(std::move(ways));
    const ExprId blank_lines = grammar.repeat(grammar.bytes("\n"), 0, 2);
    if (!lead.thought_close.empty()) {
      const std::string close(lead.thought_close);
      return grammar.sequence({grammar.without(close), grammar.bytes(close), blank_lines, answer});
    }
    return lead.blank_lines ? grammar.sequence({blank_lines, answer}) : answer;
  };
  Made made;
  made.allows_calls = has_tools;
  made.is_bound = must_call || !request.form.is_free();
  made.completes = !has_tools;
  TRY_ASSIGN(made.constraint, kept(std::move(key), build));
  return Result<Made>{std::move(made)};
}

Result<Constraints::Made> Constraints::of_completion(const CompletionRequest& request) {
  TRY(check_one(request.form));
  if (request.form.is_free()) return Made{};
  Made made;
  made.is_bound = made.completes = true;
  TRY_ASSIGN(made.constraint, kept("text" + key_of(request.form),
                                   [&](Grammar& grammar) { return expression_of(request.form, grammar); }));
  return Result<Made>{std::move(made)};
}

}  // namespace chimere::orchestrator
