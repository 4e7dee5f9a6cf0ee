#include "grammar/json_text.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace chimere::grammar {
namespace {

CharSet unescaped() {
  CharSet set(0x20, kLastChar);
  return set.without(CharSet::of("\"\\"));
}

CharSet both(const CharSet& a, const CharSet& b) { return a.without(b.inverted()); }

CharSet hex() {
  CharSet set('0', '9');
  set.add('a', 'f');
  set.add('A', 'F');
  return set;
}

// Ten levels of four blanks. Deeper structures are written with less than a model may like.
constexpr int kMaxIndent = 40;

// Characters that have a short escape, and its letter.
constexpr std::pair<char, char> kEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                              {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

}  // namespace

template <class Make>
ExprId JsonText::shared(std::optional<RuleId>& rule, const char* name, Make make) {
  if (!rule) {
    rule = grammar_.add_rule(name);
    grammar_.define(*rule, make());
  }
  return grammar_.call(*rule);
}

ExprId JsonText::gap() {
  return shared(gap_, "JSON gap", [&] {
    const ExprId indent = grammar_.repeat(grammar_.chars(CharSet::of(" \t")), 0, kMaxIndent);
    return grammar_.choice(
        {grammar_.nothing(), grammar_.bytes(" "), grammar_.sequence({grammar_.bytes("\n"), indent})});
  });
}

ExprId JsonText::comma() { return grammar_.sequence({grammar_.bytes(","), gap()}); }

ExprId JsonText::colon() { return grammar_.sequence({grammar_.bytes(":"), grammar_.optional(grammar_.bytes(" "))}); }

ExprId JsonText::quoted(ExprId inner) { return grammar_.sequence({grammar_.bytes("\""), inner, grammar_.bytes("\"")}); }

ExprId JsonText::braces(ExprId inner) {
  return grammar_.sequence({grammar_.bytes("{"), gap(), inner, gap(), grammar_.bytes("}")});
}

ExprId JsonText::brackets(ExprId inner) {
  return grammar_.sequence({grammar_.bytes("["), gap(), inner, gap(), grammar_.bytes("]")});
}

// Half of a surrogate pair alone is no character, so that \ud800 to \udfff come in pairs.
ExprId JsonText::any_char() {
  if (any_char_) return *any_char_;
  Grammar& g = grammar_;
  const ExprId digit = g.chars(hex());
  const ExprId d = g.chars(CharSet::of("dD"));
  const ExprId two = g.sequence({digit, digit});
  const ExprId basic = g.choice({g.sequence({g.chars(hex().without(CharSet::of("dD"))), digit, two}),
                                 g.sequence({d, g.chars(CharSet('0', '7')), two})});
  const ExprId high = g.sequence({d, g.chars(CharSet::of("89abAB")), two});
  const ExprId low = g.sequence({g.bytes("\\u"), d, g.chars(CharSet::of("cdefCDEF")), two});
  const ExprId coded = g.sequence({g.bytes("u"), g.choice({basic, g.sequence({high, low})})});
  const ExprId escape = g.sequence({g.bytes("\\"), g.choice({g.chars(CharSet::of("\"\\/bfnrt")), coded})});
  any_char_ = g.choice({g.chars(unescaped()), escape});
  return *any_char_;
}

ExprId JsonText::string_char(Grammar& grammar, const CharSet& set) {
  std::vector<ExprId> ways;
  if (CharSet raw = both(set, unescaped()); !raw.empty()) ways.push_back(grammar.chars(std::move(raw)));
  for (const auto& [c, letter] : kEscapes) {
    if (set.contains(static_cast<unsigned char>(c))) ways.push_back(grammar.bytes(std::string("\\") + letter));
  }
  return grammar.choice(std::move(ways));
}

ExprId JsonText::string() {
  return shared(string_, "JSON string", [&] { return quoted(grammar_.repeat(any_char(), 0, kUnbounded)); });
}

ExprId JsonText::string(int min_chars, int max_chars) {
  if (min_chars == 0 && max_chars == kUnbounded) return string();
  return quoted(grammar_.repeat(any_char(), min_chars, max_chars));
}

ExprId JsonText::integer() {
  return shared(integer_, "JSON integer", [&] {
    Grammar& g = grammar_;
    const ExprId more = g.repeat(g.chars(CharSet('0', '9')), 0, 17);
    return g.sequence(
        {g.optional(g.bytes("-")), g.choice({g.bytes("0"), g.sequence({g.chars(CharSet('1', '9')), more})})});
  });
}

ExprId JsonText::number() {
  return shared(number_, "JSON number", [&] {
    Grammar& g = grammar_;
    const ExprId digit = g.chars(CharSet('0', '9'));
    const ExprId whole = g.choice({g.bytes("0"), g.sequence({g.chars(CharSet('1', '9')), g.repeat(digit, 0, 14)})});
    const ExprId fraction = g.sequence({g.bytes("."), g.repeat(digit, 1, 15)});
    const ExprId exponent =
        g.sequence({g.chars(CharSet::of("eE")), g.optional(g.chars(CharSet::of("+-"))), g.repeat(digit, 1, 2)});
    return g.sequence({g.optional(g.bytes("-")), whole, g.optional(fraction), g.optional(exponent)});
  });
}

ExprId JsonText::boolean() { return grammar_.choice({grammar_.bytes("true"), grammar_.bytes("false")}); }

ExprId JsonText::value() {
  if (!value_) {
    value_ = grammar_.add_rule("JSON value");
    grammar_.define(*value_, grammar_.choice({object(), array(), string(), number(), boolean(), null()}));
  }
  return grammar_.call(*value_);
}

ExprId JsonText::object() {
  if (!object_) {
    object_ = grammar_.add_rule("JSON object");
    const ExprId member = grammar_.sequence({string(), colon(), value()});
    grammar_.define(*object_, braces(grammar_.fields({}, comma(), member)));
  }
  return grammar_.call(*object_);
}

ExprId JsonText::array() {
  if (!array_) {
    array_ = grammar_.add_rule("JSON array");
    grammar_.define(*array_, brackets(grammar_.fields({}, comma(), value())));
  }
  return grammar_.call(*array_);
}

ExprId JsonText::other_key(const std::vector<std::string>& names) {
  std::vector<std::u32string> plain;
  for (const std::string& name : names) {
    std::u32string chars;
    for (size_t pos = 0; pos < name.size();) {
      const char32_t c = next_char(name, pos);
      // Keys without escapes can not be equal to a name that needs one.
      if (c == kInvalidChar || !unescaped().contains(c)) {
        chars.clear();
        break;
      }
      chars.push_back(c);
    }
    if (!chars.empty() || name.empty()) plain.push_back(std::move(chars));
  }
  return quoted(key_beside(plain, 0));
}

// Texts that differ from all names, which agree in their first `pos` characters: shorter or longer than one that ends
// here, or different from here on, or from one of the next characters on.
ExprId JsonText::key_beside(const std::vector<std::u32string>& names, size_t pos) {
  const ExprId rest = grammar_.repeat(grammar_.chars(unescaped()), 0, kUnbounded);
  if (names.empty()) return rest;
  CharSet next;
  std::map<char32_t, std::vector<std::u32string>> by_next;
  bool ends_here = false;
  for (const std::u32string& name : names) {
    if (name.size() == pos) {
      ends_here = true;
      continue;
    }
    next.add(name[pos], name[pos]);
    by_next[name[pos]].push_back(name);
  }
  std::vector<ExprId> ways;
  if (!ends_here) ways.push_back(grammar_.nothing());
  ways.push_back(grammar_.sequence({grammar_.chars(unescaped().without(next)), rest}));
  for (const auto& [c, longer] : by_next) {
    ways.push_back(grammar_.sequence({grammar_.chars(CharSet(c, c)), key_beside(longer, pos + 1)}));
  }
  return grammar_.choice(std::move(ways));
}

}  // namespace chimere::grammar
