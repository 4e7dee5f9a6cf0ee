// call_grammar.h  What dialects write the grammars of their calls with. For .cpp files of this folder.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"
#include "grammar/json_text.h"
#include "text/json.h"
#include "tokenizer/tokenizer.h"

namespace chimere::chat {

struct DeclaredTool {
  std::string name;
  Json parameters;  // null: the tool takes none
};

class CallGrammar {
 public:
  CallGrammar(const Tokenizer& tokenizer, grammar::Grammar& grammar)
      : g(grammar), json(grammar), tokenizer_(tokenizer) {}

  bool has_token(std::string_view text) const { return tokenizer_.find_token(text) >= 0; }
  // Words that a vocabulary has as one token are written as that token, which is what the model learnt.
  grammar::ExprId word(std::string_view text);
  Result<grammar::ExprId> arguments(const DeclaredTool& tool);
  // {"name": NAME, KEY: {...}}
  Result<grammar::ExprId> json_call(const DeclaredTool& tool, const std::string& key);
  // <tool_call>, the call on lines of its own, </tool_call>
  grammar::ExprId tagged(grammar::ExprId call);

  grammar::Grammar& g;
  grammar::JsonText json;

 private:
  const Tokenizer& tokenizer_;
};

// Calls one after the other, a line break between them.
grammar::ExprId calls_on_lines(grammar::ExprId call, int most, CallGrammar& grammar);

// Of the default dialect.
Result<grammar::ExprId> hermes_call(const DeclaredTool& tool, CallGrammar& grammar);

}  // namespace chimere::chat
