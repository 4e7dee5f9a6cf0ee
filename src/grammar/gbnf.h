// gbnf.h  Grammars in GBNF, the dialect of llama.cpp.
//
//   root   ::= greeting " " name "."        # a rule; `root` is the whole text
//   greeting ::= "Hi" | "Hello"
//   name   ::= [A-Z] [a-z]{1,20}
//
// Understood: "texts" with \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH, [classes] with ranges and ^, `.` for any
// character, (groups), * + ? {n} {n,} {n,m}, |, rules over several lines behind ::= and | and inside groups, comments
// with #. A rule may call itself, but not before it has read something.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"

namespace chimere::grammar {

// A call of the rule `root`. The names of the text are its own: rules that the grammar has already are not met.
Result<ExprId> parse_gbnf(std::string_view text, Grammar& grammar);

}  // namespace chimere::grammar
