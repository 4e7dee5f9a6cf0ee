// expression.h  What JSON schemas, GBNF grammars and regular expressions are turned into: rules made of expressions.
//
// A Grammar is an arena. Front ends build expressions bottom-up and define rules; compile() (automaton.h) makes
// something that runs of it. Expressions are shared freely: they never change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/char_set.h"

namespace chimere::grammar {

using ExprId = std::uint32_t;
using RuleId = std::uint32_t;

inline constexpr int kUnbounded = -1;
// Far beyond what people write, and small enough that nothing of this size costs noticeable time.
inline constexpr size_t kMaxTextBytes = 256 << 10;  // of a schema, grammar or regular expression
inline constexpr size_t kMaxExprs = 200'000;
inline constexpr int kMaxRepeat = 1'000'000;
inline constexpr int kMaxNesting = 100;

// One place of a list whose places may be left out, in their order, with a separator between those that are there.
struct Field {
  ExprId expr;
  bool required;
};

struct Expr {
  enum class Kind { bytes, chars, without, sequence, choice, repeat, call, fields };
  Kind kind;
  std::string bytes;          // bytes; without: the text that must not be there
  CharSet chars;              // chars
  std::vector<ExprId> parts;  // sequence, choice; repeat: one; fields: separator, then perhaps the rest
  int min = 0, max = 0;       // repeat; max may be kUnbounded
  RuleId rule = 0;            // call
  std::vector<Field> fields;  // fields
};

// How a control token is written where tokens are bytes: 0xFF begins no UTF-8, so that only a grammar that asks for
// this very token matches it.
std::string token_code(std::int32_t id);

class Grammar {
 public:
  ExprId bytes(std::string text);
  ExprId token(std::int32_t id) { return bytes(token_code(id)); }
  ExprId chars(CharSet set);
  // Any text, also none, that does not contain `mark`, which is ASCII and not empty.
  ExprId without(std::string mark);
  ExprId sequence(std::vector<ExprId> parts);
  ExprId choice(std::vector<ExprId> parts);
  ExprId nothing() { return bytes(""); }
  ExprId repeat(ExprId part, int min, int max);
  ExprId optional(ExprId part) { return repeat(part, 0, 1); }
  ExprId call(RuleId rule);
  // The given fields in their order, then `rest`, which may come any number of times.
  ExprId fields(std::vector<Field> fields, ExprId separator, std::optional<ExprId> rest);

  RuleId add_rule(std::string name);
  void define(RuleId rule, ExprId expr) { rules_[rule].expr = expr; }

  // Says what is too large, once it is: building may stop there.
  Status check_size() const;

  const Expr& expr(ExprId id) const { return exprs_[id]; }
  size_t n_rules() const { return rules_.size(); }
  const std::string& rule_name(RuleId rule) const { return rules_[rule].name; }
  std::optional<ExprId> definition(RuleId rule) const { return rules_[rule].expr; }

  RuleId root = 0;

 private:
  struct Rule {
    std::string name;
    std::optional<ExprId> expr;
  };
  ExprId add(Expr expr);

  std::vector<Expr> exprs_;
  std::vector<Rule> rules_;
};

}  // namespace chimere::grammar
