// expression_parser.cpp  Expressions, loosest to tightest: conditional, or, and, not, compare, + -, ~, * / // %,
// **, unary, postfix, filters and tests. (`~` binds tighter than `+`, and `**` associates to the left, as in Jinja.)
#include "jinja/expression_parser.h"

#include <algorithm>

namespace chimere::jinja {
namespace {

int height_of(const ExprPtr& e) { return e ? e->height : 0; }

}  // namespace

bool ExpressionParser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_op(std::string_view op) {
  if (!at_op(op)) return false;
  next();
  return true;
}

Status ExpressionParser::expect(TokenKind kind, const char* what) {
  if (current().kind != kind) return error(std::string("expected ") + what);
  next();
  return Ok{};
}

Status ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) return error("expected '" + std::string(name) + "'");
  return Ok{};
}

Status ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) return error("expected '" + std::string(op) + "'");
  return Ok{};
}

std::string ExpressionParser::found() const {
  switch (current().kind) {
    case TokenKind::eof: return ", found the end of the template";
    case TokenKind::data: return ", found template text";
    case TokenKind::variable_begin: return ", found '{{'";
    case TokenKind::variable_end: return ", found '}}'";
    case TokenKind::block_begin: return ", found '{%'";
    case TokenKind::block_end: return ", found '%}'";
    case TokenKind::string: return ", found a string";
    default: return ", found '" + current().text.substr(0, 40) + "'";
  }
}

Status ExpressionParser::enter() {
  if (++depth_ > limits_.max_depth) {
    return template_error(current().line, "nested deeper than " + std::to_string(limits_.max_depth) + " levels");
  }
  return Ok{};
}

NameId ExpressionParser::intern(const std::string& name) {
  const auto [it, added] = name_ids_.emplace(name, static_cast<NameId>(names_.size()));
  if (added) names_.push_back(name);
  return it->second;
}

Result<ExprPtr> ExpressionParser::with_height(ExprPtr node, int child_height) const {
  node->height = child_height + 1;
  if (node->height > limits_.max_expr_height) {
    return template_error(
        node->line, "expression with more than " + std::to_string(limits_.max_expr_height) + " chained operators");
  }
  return Result<ExprPtr>{std::move(node)};
}

Result<ExprPtr> ExpressionParser::binary(ExprPtr left, ExprPtr right, BinaryOp op, int line) const {
  auto node = std::make_unique<BinaryExpr>(line);
  const int height = std::max(left->height, right->height);
  node->op = op;
  node->left = std::move(left);
  node->right = std::move(right);
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_expression() {
  TRY(enter());
  TRY_ASSIGN(ExprPtr node, parse_or());
  while (at_name("if")) {
    auto conditional = std::make_unique<ConditionalExpr>(current().line);
    next();
    TRY_ASSIGN(conditional->condition, parse_or());
    if (skip_name("else")) {
      TRY_ASSIGN(conditional->otherwise, parse_expression());
    }
    const int height = std::max({node->height, conditional->condition->height, height_of(conditional->otherwise)});
    conditional->then = std::move(node);
    TRY_ASSIGN(node, with_height(std::move(conditional), height));
  }
  leave();
  return Result<ExprPtr>{std::move(node)};
}

Result<ExprPtr> ExpressionParser::parse_or() {
  TRY_ASSIGN(ExprPtr left, parse_and());
  while (at_name("or")) {
    auto node = std::make_unique<LogicalExpr>(ExprKind::logical_or, current().line);
    next();
    TRY_ASSIGN(node->right, parse_and());
    const int height = std::max(left->height, node->right->height);
    node->left = std::move(left);
    TRY_ASSIGN(left, with_height(std::move(node), height));
  }
  return Result<ExprPtr>{std::move(left)};
}

Result<ExprPtr> ExpressionParser::parse_and() {
  TRY_ASSIGN(ExprPtr left, parse_not());
  while (at_name("and")) {
    auto node = std::make_unique<LogicalExpr>(ExprKind::logical_and, current().line);
    next();
    TRY_ASSIGN(node->right, parse_not());
    const int height = std::max(left->height, node->right->height);
    node->left = std::move(left);
    TRY_ASSIGN(left, with_height(std::move(node), height));
  }
  return Result<ExprPtr>{std::move(left)};
}

Result<ExprPtr> ExpressionParser::parse_not() {
  if (!at_name("not")) return parse_compare();
  auto node = std::make_unique<UnaryExpr>(ExprKind::logical_not, current().line);
  next();
  TRY(enter());
  TRY_ASSIGN(node->operand, parse_not());
  leave();
  const int height = node->operand->height;
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_compare() {
  const int line = current().line;
  TRY_ASSIGN(ExprPtr first, parse_sum());
  std::unique_ptr<CompareExpr> node;
  int height = first->height;
  while (true) {
    CompareOp op;
    if (skip_op("==")) {
      op = CompareOp::eq;
    } else if (skip_op("!=")) {
      op = CompareOp::ne;
    } else if (skip_op("<")) {
      op = CompareOp::lt;
    } else if (skip_op("<=")) {
      op = CompareOp::le;
    } else if (skip_op(">")) {
      op = CompareOp::gt;
    } else if (skip_op(">=")) {
      op = CompareOp::ge;
    } else if (skip_name("in")) {
      op = CompareOp::in;
    } else if (at_name("not") && peek().kind == TokenKind::name && peek().text == "in") {
      next();
      next();
      op = CompareOp::not_in;
    } else {
      break;
    }
    if (!node) node = std::make_unique<CompareExpr>(line);
    TRY_ASSIGN(ExprPtr operand, parse_sum());
    height = std::max(height, operand->height);
    node->rest.emplace_back(op, std::move(operand));
  }
  if (!node) return Result<ExprPtr>{std::move(first)};
  node->first = std::move(first);
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_sum() {
  TRY_ASSIGN(ExprPtr left, parse_concat());
  while (at_op("+") || at_op("-")) {
    const BinaryOp op = at_op("+") ? BinaryOp::add : BinaryOp::sub;
    const int line = current().line;
    next();
    TRY_ASSIGN(ExprPtr right, parse_concat());
    TRY_ASSIGN(left, binary(std::move(left), std::move(right), op, line));
  }
  return Result<ExprPtr>{std::move(left)};
}

Result<ExprPtr> ExpressionParser::parse_concat() {
  const int line = current().line;
  TRY_ASSIGN(ExprPtr first, parse_product());
  if (!at_op("~")) return Result<ExprPtr>{std::move(first)};
  auto node = std::make_unique<ConcatExpr>(line);
  int height = first->height;
  node->parts.push_back(std::move(first));
  while (skip_op("~")) {
    TRY_ASSIGN(ExprPtr part, parse_product());
    height = std::max(height, part->height);
    node->parts.push_back(std::move(part));
  }
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_product() {
  TRY_ASSIGN(ExprPtr left, parse_power());
  while (true) {
    BinaryOp op;
    if (at_op("*")) {
      op = BinaryOp::mul;
    } else if (at_op("/")) {
      op = BinaryOp::div;
    } else if (at_op("//")) {
      op = BinaryOp::floor_div;
    } else if (at_op("%")) {
      op = BinaryOp::mod;
    } else {
      return Result<ExprPtr>{std::move(left)};
    }
    const int line = current().line;
    next();
    TRY_ASSIGN(ExprPtr right, parse_power());
    TRY_ASSIGN(left, binary(std::move(left), std::move(right), op, line));
  }
}

Result<ExprPtr> ExpressionParser::parse_power() {
  TRY_ASSIGN(ExprPtr left, parse_unary());
  while (at_op("**")) {
    const int line = current().line;
    next();
    TRY_ASSIGN(ExprPtr right, parse_unary());
    TRY_ASSIGN(left, binary(std::move(left), std::move(right), BinaryOp::pow, line));
  }
  return Result<ExprPtr>{std::move(left)};
}

Result<ExprPtr> ExpressionParser::parse_unary(bool with_filters) {
  ExprPtr node;
  if (at_op("-") || at_op("+")) {
    auto unary = std::make_unique<UnaryExpr>(ExprKind::unary, current().line);
    unary->negate = at_op("-");
    next();
    TRY(enter());
    TRY_ASSIGN(unary->operand, parse_unary(false));
    leave();
    const int height = unary->operand->height;
    TRY_ASSIGN(node, with_height(std::move(unary), height));
  } else {
    TRY_ASSIGN(node, parse_primary());
  }
  TRY_ASSIGN(node, parse_postfix(std::move(node)));
  if (!with_filters) return Result<ExprPtr>{std::move(node)};
  return parse_filters_and_tests(std::move(node));
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const int line = current().line;
  const auto constant = [&](Value value) -> Result<ExprPtr> {
    next();
    return ExprPtr(std::make_unique<ConstantExpr>(std::move(value), line));
  };
  switch (current().kind) {
    case TokenKind::name: {
      const std::string& name = current().text;
      if (name == "true" || name == "True") return constant(Value(true));
      if (name == "false" || name == "False") return constant(Value(false));
      if (name == "none" || name == "None") return constant(Value());
      const NameId id = intern(name);
      next();
      return ExprPtr(std::make_unique<NameExpr>(id, line));
    }
    case TokenKind::string: {
      std::string text;
      for (; current().kind == TokenKind::string; next()) text += current().text;
      return ExprPtr(std::make_unique<ConstantExpr>(Value::string(std::move(text), false), line));
    }
    case TokenKind::integer: return constant(Value(current().integer));
    case TokenKind::real: return constant(Value(current().real));
    case TokenKind::op:
      if (skip_op("(")) {
        TRY_ASSIGN(ExprPtr node, parse_tuple(true, "", true));
        TRY(expect_op(")"));
        return Result<ExprPtr>{std::move(node)};
      }
      if (at_op("[")) return parse_list();
      if (at_op("{")) return parse_dict();
      break;
    default: break;
  }
  return error("expected an expression");
}

Result<ExprPtr> ExpressionParser::parse_tuple(bool with_conditional, std::string_view stop, bool in_parentheses) {
  const int line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  int height = 0;
  while (true) {
    if (!items.empty()) TRY(expect_op(","));
    if (current().kind == TokenKind::variable_end || current().kind == TokenKind::block_end || at_op(")") ||
        (!stop.empty() && at_name(stop))) {
      break;
    }
    Result<ExprPtr> item = with_conditional ? parse_expression() : parse_or();
    if (!item) return item;
    height = std::max(height, (*item)->height);
    items.push_back(std::move(*item));
    if (!at_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return Result<ExprPtr>{std::move(items.front())};
  if (!is_tuple && !in_parentheses) return error("expected an expression");
  auto node = std::make_unique<ListExpr>(ExprKind::tuple, line);
  node->items = std::move(items);
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_list() {
  auto node = std::make_unique<ListExpr>(ExprKind::list, current().line);
  int height = 0;
  TRY(expect_op("["));
  while (!at_op("]")) {
    if (!node->items.empty()) TRY(expect_op(","));
    if (at_op("]")) break;
    TRY_ASSIGN(ExprPtr item, parse_expression());
    height = std::max(height, item->height);
    node->items.push_back(std::move(item));
  }
  TRY(expect_op("]"));
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  auto node = std::make_unique<DictExpr>(current().line);
  int height = 0;
  TRY(expect_op("{"));
  while (!at_op("}")) {
    if (!node->entries.empty()) TRY(expect_op(","));
    if (at_op("}")) break;
    TRY_ASSIGN(ExprPtr key, parse_expression());
    TRY(expect_op(":"));
    TRY_ASSIGN(ExprPtr value, parse_expression());
    height = std::max({height, key->height, value->height});
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  TRY(expect_op("}"));
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    if (at_op(".") || at_op("[")) {
      TRY_ASSIGN(node, parse_subscript(std::move(node)));
    } else if (at_op("(")) {
      TRY_ASSIGN(node, parse_call(std::move(node)));
    } else {
      return Result<ExprPtr>{std::move(node)};
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_filters_and_tests(ExprPtr node) {
  while (true) {
    if (at_op("|")) {
      TRY_ASSIGN(node, parse_filters(std::move(node)));
    } else if (at_name("is")) {
      TRY_ASSIGN(node, parse_test(std::move(node)));
    } else if (at_op("(")) {
      TRY_ASSIGN(node, parse_call(std::move(node)));
    } else {
      return Result<ExprPtr>{std::move(node)};
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_subscript(ExprPtr object) {
  const int line = current().line;
  if (skip_op(".")) {
    const int height = object->height;
    if (current().kind == TokenKind::name) {
      auto node = std::make_unique<AttributeExpr>(line);
      node->object = std::move(object);
      node->name = current().text;
      next();
      return with_height(std::move(node), height);
    }
    if (current().kind != TokenKind::integer) return error("expected a name or a number after '.'");
    auto node = std::make_unique<ItemExpr>(line);
    node->object = std::move(object);
    node->index = std::make_unique<ConstantExpr>(Value(current().integer), line);
    next();
    return with_height(std::move(node), height);
  }
  TRY(expect_op("["));
  int height = object->height;
  std::vector<ExprPtr> parts;  // start, stop, step of a slice; null where left out
  bool is_slice = false;
  const auto at_end = [&] { return at_op("]") || at_op(","); };
  if (!at_op(":")) {
    TRY_ASSIGN(ExprPtr first, parse_expression());
    height = std::max(height, first->height);
    parts.push_back(std::move(first));
  } else {
    parts.push_back(nullptr);
  }
  while (parts.size() < 3 && skip_op(":")) {
    is_slice = true;
    if (at_op(":") || at_end()) {
      parts.push_back(nullptr);
      continue;
    }
    TRY_ASSIGN(ExprPtr part, parse_expression());
    height = std::max(height, part->height);
    parts.push_back(std::move(part));
  }
  if (is_slice) {
    TRY(expect_op("]"));
    auto node = std::make_unique<SliceExpr>(line);
    parts.resize(3);
    node->object = std::move(object);
    node->start = std::move(parts[0]);
    node->stop = std::move(parts[1]);
    node->step = std::move(parts[2]);
    return with_height(std::move(node), height);
  }
  auto node = std::make_unique<ItemExpr>(line);
  node->object = std::move(object);
  node->index = std::move(parts[0]);
  if (at_op(",")) {
    auto tuple = std::make_unique<ListExpr>(ExprKind::tuple, line);
    tuple->items.push_back(std::move(node->index));
    while (skip_op(",")) {
      TRY_ASSIGN(ExprPtr item, parse_expression());
      height = std::max(height, item->height);
      tuple->items.push_back(std::move(item));
    }
    node->index = std::move(tuple);
  }
  TRY(expect_op("]"));
  return with_height(std::move(node), height + 1);
}

Status ExpressionParser::parse_arguments(Arguments& args, int& height) {
  const int line = current().line;
  TRY(expect_op("("));
  bool needs_comma = false;
  while (!at_op(")")) {
    if (needs_comma) {
      TRY(expect_op(","));
      if (at_op(")")) break;
    }
    needs_comma = true;
    bool well_formed = true;
    ExprPtr* slot = nullptr;
    ExprPtr positional;
    std::string keyword;
    if (skip_op("*")) {
      well_formed = !args.star && !args.star_star;
      slot = &args.star;
    } else if (skip_op("**")) {
      well_formed = !args.star_star;
      slot = &args.star_star;
    } else if (current().kind == TokenKind::name && peek().kind == TokenKind::op && peek().text == "=") {
      well_formed = !args.star_star;
      keyword = current().text;
      next();
      next();
    } else {
      well_formed = !args.star && !args.star_star && args.keyword.empty();
      slot = &positional;
    }
    if (!well_formed) return error_at(line, "invalid order of arguments in a call");
    TRY_ASSIGN(ExprPtr value, parse_expression());
    height = std::max(height, value->height);
    if (!slot) {
      for (const auto& [name, other] : args.keyword) {
        if (name == keyword) return error_at(line, "keyword argument '" + keyword + "' repeated");
      }
      args.keyword.emplace_back(std::move(keyword), std::move(value));
    } else if (slot == &positional) {
      args.positional.push_back(std::move(value));
    } else {
      *slot = std::move(value);
    }
  }
  return expect_op(")");
}

Result<ExprPtr> ExpressionParser::parse_call(ExprPtr callee) {
  auto node = std::make_unique<CallExpr>(current().line);
  int height = callee->height;
  node->callee = std::move(callee);
  TRY(parse_arguments(node->args, height));
  return with_height(std::move(node), height);
}

Result<ExprPtr> ExpressionParser::parse_filters(ExprPtr operand, bool first_without_pipe) {
  while (at_op("|") || first_without_pipe) {
    if (!first_without_pipe) next();
    first_without_pipe = false;
    if (current().kind != TokenKind::name) return error("expected the name of a filter");
    auto node = std::make_unique<FilterExpr>(ExprKind::filter, current().line);
    node->name = current().text;
    next();
    while (skip_op(".")) {
      node->name += "." + current().text;
      TRY(expect(TokenKind::name, "the name of a filter"));
    }
    int height = height_of(operand);
    node->operand = std::move(operand);
    if (at_op("(")) TRY(parse_arguments(node->args, height));
    TRY_ASSIGN(operand, with_height(std::move(node), height));
  }
  return Result<ExprPtr>{std::move(operand)};
}

Result<ExprPtr> ExpressionParser::parse_test(ExprPtr operand) {
  next();
  const bool negated = skip_name("not");
  if (current().kind != TokenKind::name) return error("expected the name of a test");
  auto node = std::make_unique<FilterExpr>(ExprKind::test, current().line);
  node->name = current().text;
  next();
  while (skip_op(".")) {
    node->name += "." + current().text;
    TRY(expect(TokenKind::name, "the name of a test"));
  }
  int height = operand->height;
  node->operand = std::move(operand);
  const TokenKind kind = current().kind;
  if (at_op("(")) {
    TRY(parse_arguments(node->args, height));
  } else if ((kind == TokenKind::name || kind == TokenKind::string || kind == TokenKind::integer ||
              kind == TokenKind::real || at_op("[") || at_op("{")) &&
             !at_name("else") && !at_name("or") && !at_name("and")) {
    if (at_name("is")) return error("tests cannot be chained with 'is'");
    TRY_ASSIGN(ExprPtr arg, parse_primary());
    TRY_ASSIGN(arg, parse_postfix(std::move(arg)));
    height = std::max(height, arg->height);
    node->args.positional.push_back(std::move(arg));
  }
  const int line = node->line;
  TRY_ASSIGN(ExprPtr result, with_height(std::move(node), height));
  if (!negated) return Result<ExprPtr>{std::move(result)};
  auto negation = std::make_unique<UnaryExpr>(ExprKind::logical_not, line);
  height = result->height;
  negation->operand = std::move(result);
  return with_height(std::move(negation), height);
}

Result<Target> ExpressionParser::parse_target(std::string_view stop) {
  const auto single = [&]() -> Result<Target> {
    Target target;
    target.line = current().line;
    if (skip_op("(")) {
      TRY(enter());
      TRY_ASSIGN(target, parse_target(""));
      leave();
      TRY(expect_op(")"));
      return target;
    }
    if (current().kind != TokenKind::name) return error("expected a name to assign to");
    for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (at_name(constant)) return error("cannot assign to a constant");
    }
    target.name = intern(current().text);
    next();
    return target;
  };
  TRY_ASSIGN(Target first, single());
  if (!at_op(",")) return first;
  Target tuple;
  tuple.is_tuple = true;
  tuple.line = first.line;
  tuple.members.push_back(std::move(first));
  while (skip_op(",")) {
    if ((!stop.empty() && at_name(stop)) || at_op(")") || at_op("=") || current().kind == TokenKind::block_end) break;
    TRY_ASSIGN(Target member, single());
    tuple.members.push_back(std::move(member));
  }
  return tuple;
}

}  // namespace chimere::jinja
