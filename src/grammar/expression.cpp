#include "grammar/expression.h"

namespace chimere::grammar {

std::string token_code(std::int32_t id) {
  return {'\xFF', static_cast<char>(id >> 16), static_cast<char>(id >> 8), static_cast<char>(id)};
}

ExprId Grammar::add(Expr expr) {
  exprs_.push_back(std::move(expr));
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Grammar::bytes(std::string text) {
  Expr e{};
  e.kind = Expr::Kind::bytes;
  e.bytes = std::move(text);
  return add(std::move(e));
}

ExprId Grammar::chars(CharSet set) {
  Expr e{};
  e.kind = Expr::Kind::chars;
  e.chars = std::move(set);
  return add(std::move(e));
}

ExprId Grammar::without(std::string mark) {
  Expr e{};
  e.kind = Expr::Kind::without;
  e.bytes = std::move(mark);
  return add(std::move(e));
}

ExprId Grammar::sequence(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  Expr e{};
  e.kind = Expr::Kind::sequence;
  e.parts = std::move(parts);
  return add(std::move(e));
}

ExprId Grammar::choice(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  Expr e{};
  e.kind = Expr::Kind::choice;
  e.parts = std::move(parts);
  return add(std::move(e));
}

ExprId Grammar::repeat(ExprId part, int min, int max) {
  if (min == 1 && max == 1) return part;
  Expr e{};
  e.kind = Expr::Kind::repeat;
  e.parts = {part};
  e.min = min;
  e.max = max;
  return add(std::move(e));
}

ExprId Grammar::call(RuleId rule) {
  Expr e{};
  e.kind = Expr::Kind::call;
  e.rule = rule;
  return add(std::move(e));
}

ExprId Grammar::fields(std::vector<Field> fields, ExprId separator, std::optional<ExprId> rest) {
  Expr e{};
  e.kind = Expr::Kind::fields;
  e.fields = std::move(fields);
  e.parts = {separator};
  if (rest) e.parts.push_back(*rest);
  return add(std::move(e));
}

RuleId Grammar::add_rule(std::string name) {
  rules_.push_back({std::move(name), std::nullopt});
  return static_cast<RuleId>(rules_.size() - 1);
}

Status Grammar::check_size() const {
  if (exprs_.size() <= kMaxExprs) return Ok{};
  return Error{Code::invalid_argument,
               "the grammar is too large: expected at most " + std::to_string(kMaxExprs) + " expressions"};
}

}  // namespace chimere::grammar
