// regex.h  Regular expressions, as a subset of ECMAScript's that has a byte automaton.
//
// Understood: characters, `.`, classes with ranges and negation, \d \w \s and their opposites, \t \n \r \f \v \0 \xHH
// \uHHHH \u{H...}, escaped punctuation, groups (plain, (?:...), named), |, * + ? {n} {n,} {n,m} (lazy ones match the
// same texts), ^ and $ at the ends of the whole or of its alternatives. Refused, with their place: look-around, back
// references, \b, \p, flags, anchors elsewhere.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "grammar/expression.h"

namespace chimere::grammar {

struct RegexOptions {
  // Texts that contain a match fit, as `pattern` of JSON schemas has it; otherwise the whole text must match.
  bool is_search = false;
  // How one character is written; by default as itself. Strings of JSON escape some.
  std::function<ExprId(Grammar&, const CharSet&)> write;
};

Result<ExprId> parse_regex(std::string_view text, Grammar& grammar, const RegexOptions& options = {});

}  // namespace chimere::grammar
