// expression_parser.h  The token cursor and the expression grammar, shared by the statement parser.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "jinja/ast.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"

namespace chimere::jinja {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const ParseLimits& limits)
      : tokens_(std::move(tokens)), limits_(limits) {}

 protected:
  const Token& current() const { return tokens_[pos_]; }
  const Token& peek() const { return tokens_[pos_ + 1 < tokens_.size() ? pos_ + 1 : pos_]; }
  void next() {
    if (pos_ + 1 < tokens_.size()) ++pos_;
  }
  bool at_name(std::string_view name) const { return current().kind == TokenKind::name && current().text == name; }
  bool at_op(std::string_view op) const { return current().kind == TokenKind::op && current().text == op; }
  bool skip_name(std::string_view name);
  bool skip_op(std::string_view op);
  Status expect(TokenKind kind, const char* what);
  Status expect_name(std::string_view name);
  Status expect_op(std::string_view op);
  Error error(const std::string& what) const { return template_error(current().line, what + found()); }
  static Error error_at(int line, const std::string& what) { return template_error(line, what); }

  // Nesting is bounded because parsing, evaluating and destroying all recurse.
  Status enter();
  void leave() { --depth_; }

  NameId intern(const std::string& name);
  std::vector<std::string> take_names() { return std::move(names_); }

  Result<ExprPtr> parse_expression();
  // An expression or, with commas, a tuple. `stop` names a word that ends it.
  Result<ExprPtr> parse_tuple(bool with_conditional = true, std::string_view stop = "", bool in_parentheses = false);
  // `|a|b` after an operand; the operand is null for filter blocks.
  Result<ExprPtr> parse_filters(ExprPtr operand, bool first_without_pipe = false);
  Result<Target> parse_target(std::string_view stop);

 private:
  std::string found() const;
  Result<ExprPtr> parse_or();
  Result<ExprPtr> parse_and();
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_compare();
  Result<ExprPtr> parse_sum();
  Result<ExprPtr> parse_concat();
  Result<ExprPtr> parse_product();
  Result<ExprPtr> parse_power();
  Result<ExprPtr> parse_unary(bool with_filters = true);
  Result<ExprPtr> parse_primary();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  Result<ExprPtr> parse_postfix(ExprPtr node);
  Result<ExprPtr> parse_filters_and_tests(ExprPtr node);
  Result<ExprPtr> parse_subscript(ExprPtr node);
  Result<ExprPtr> parse_call(ExprPtr node);
  Result<ExprPtr> parse_test(ExprPtr node);
  Status parse_arguments(Arguments& args, int& height);
  Result<ExprPtr> with_height(ExprPtr node, int child_height) const;
  Result<ExprPtr> binary(ExprPtr left, ExprPtr right, BinaryOp op, int line) const;

  std::vector<Token> tokens_;
  ParseLimits limits_;
  size_t pos_ = 0;
  int depth_ = 0;
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> name_ids_;
};

}  // namespace chimere::jinja
