// json_text.h  The pieces of JSON as grammar expressions.
//
// Of all ways to write a document these are offered: between the parts of objects and arrays nothing, one space, or a
// new line with up to 40 blanks; numbers of a length that every reader understands; strings with any escapes. What is
// left out (a million blanks, numbers of a thousand digits) no client misses, and a weak model would get lost in it.
#pragma once

#include <optional>
#include <string_view>

#include "grammar/expression.h"

namespace chimere::grammar {

class JsonText {
 public:
  explicit JsonText(Grammar& grammar) : grammar_(grammar) {}

  ExprId value();
  ExprId object();
  ExprId array();
  ExprId string();
  ExprId string(int min_chars, int max_chars);
  ExprId integer();
  ExprId number();
  ExprId boolean();
  ExprId null() { return grammar_.bytes("null"); }

  ExprId gap();    // behind an opening bracket and before a closing one
  ExprId comma();  // with the gap behind it
  ExprId colon();
  // One character of a string: any of the set, escaped where it must be.
  static ExprId string_char(Grammar& grammar, const CharSet& set);
  // The string around something made of string_char().
  ExprId quoted(ExprId inner);
  // A key of an object that is none of the given ones, without escapes.
  ExprId other_key(const std::vector<std::string>& names);
  // {...} and [...] around their inner part.
  ExprId braces(ExprId inner);
  ExprId brackets(ExprId inner);

 private:
  template <class Make>
  ExprId shared(std::optional<RuleId>& rule, const char* name, Make make);
  ExprId any_char();
  ExprId key_beside(const std::vector<std::u32string>& names, size_t pos);

  Grammar& grammar_;
  std::optional<RuleId> value_, object_, array_, string_, integer_, number_, gap_;
  std::optional<ExprId> any_char_;
};

}  // namespace chimere::grammar
