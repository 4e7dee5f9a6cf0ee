// parser.cpp  Statements; the expression half is in expression_parser.cpp.
#include "jinja/parser.h"

#include "jinja/expression_parser.h"
#include "jinja/lexer.h"
#include "jinja/scopes.h"

namespace chimere::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<Program> run() {
    Program program;
    TRY_ASSIGN(program.body, parse_body({}));
    program.names = take_names();
    return Result<Program>{std::move(program)};
  }

 private:
  // Statements up to a `{% word` out of `ends`, or to the end of the template when `ends` is empty. Stops at the word.
  Result<Body> parse_body(std::initializer_list<std::string_view> ends) {
    Body body;
    std::unique_ptr<OutputStmt> output;
    const auto flush = [&] {
      if (output) body.push_back(std::move(output));
    };
    const auto output_here = [&]() -> OutputStmt& {
      if (!output) output = std::make_unique<OutputStmt>(current().line);
      return *output;
    };
    while (true) {
      switch (current().kind) {
        case TokenKind::eof: {
          flush();
          if (ends.size() == 0) return Result<Body>{std::move(body)};
          std::string expected;
          for (const auto end : ends) expected += (expected.empty() ? "" : " or ") + std::string(end);
          return error("unexpected end of template, expected " + expected);
        }
        case TokenKind::data:
          output_here().parts.push_back(
              std::make_unique<ConstantExpr>(Value::string(current().text, false), current().line));
          next();
          break;
        case TokenKind::variable_begin: {
          next();
          TRY_ASSIGN(ExprPtr expr, parse_tuple());
          output_here().parts.push_back(std::move(expr));
          TRY(expect(TokenKind::variable_end, "end of print statement"));
          break;
        }
        case TokenKind::block_begin: {
          flush();
          next();
          for (const auto end : ends) {
            if (at_name(end)) return Result<Body>{std::move(body)};
          }
          if (current().kind != TokenKind::name) return error("tag name expected");
          TRY(enter());
          TRY_ASSIGN(StmtPtr stmt, parse_statement());
          leave();
          body.push_back(std::move(stmt));
          TRY(expect(TokenKind::block_end, "end of statement block"));
          break;
        }
        default: return error("unexpected token");
      }
    }
  }

  // `[:] %} body {% end`, with the end word left as the current token.
  Result<Body> parse_block_body(std::initializer_list<std::string_view> ends) {
    skip_op(":");
    TRY(expect(TokenKind::block_end, "end of statement block"));
    return parse_body(ends);
  }

  Result<Body> parse_block_to(std::string_view end) {
    TRY_ASSIGN(Body body, parse_block_body({end}));
    next();
    return Result<Body>{std::move(body)};
  }

  // A body compiled as its own function: `break` cannot leave it.
  Result<Body> parse_function_to(std::string_view end) {
    const int outer_loops = std::exchange(n_loops_, 0);
    TRY_ASSIGN(Body body, parse_block_to(end));
    n_loops_ = outer_loops;
    return Result<Body>{std::move(body)};
  }

  Result<StmtPtr> parse_statement() {
    const std::string tag = current().text;
    const int line = current().line;
    next();
    if (tag == "for") return parse_for(line);
    if (tag == "if") return parse_if(line);
    if (tag == "set") return parse_set(line);
    if (tag == "macro") return parse_macro(line);
    if (tag == "call") return parse_call_block(line);
    if (tag == "filter") return parse_filter_block(line);
    if (tag == "with") return parse_with(line);
    if (tag == "print") return parse_print(line);
    if (tag == "generation") {
      auto stmt = std::make_unique<GenerationStmt>(line);
      TRY_ASSIGN(stmt->body, parse_function_to("endgeneration"));
      return StmtPtr(std::move(stmt));
    }
    if (tag == "break" || tag == "continue") {
      if (n_loops_ == 0) return error_at(line, "'" + tag + "' outside of a loop");
      return std::make_unique<Stmt>(tag == "break" ? StmtKind::break_ : StmtKind::continue_, line);
    }
    for (const std::string_view known : {"include", "import", "from", "extends", "block", "autoescape"}) {
      if (tag == known) return error_at(line, "tag '" + tag + "' is not supported in chat templates");
    }
    return error_at(line, "unknown tag '" + tag + "'");
  }

  Result<StmtPtr> parse_for(int line) {
    auto stmt = std::make_unique<ForStmt>(line);
    TRY_ASSIGN(stmt->target, parse_target("in"));
    TRY(expect_name("in"));
    TRY_ASSIGN(stmt->iterable, parse_tuple(false, "recursive"));
    if (skip_name("if")) {
      TRY_ASSIGN(stmt->condition, parse_expression());
    }
    stmt->recursive = skip_name("recursive");
    ++n_loops_;
    TRY_ASSIGN(stmt->body, parse_block_body({"endfor", "else"}));
    --n_loops_;
    const bool has_else = at_name("else");
    next();
    if (has_else) {
      TRY_ASSIGN(stmt->otherwise, parse_block_to("endfor"));
    }
    return StmtPtr(std::move(stmt));
  }

  Result<StmtPtr> parse_if(int line) {
    auto stmt = std::make_unique<IfStmt>(line);
    while (true) {
      TRY_ASSIGN(ExprPtr condition, parse_tuple(false));
      TRY_ASSIGN(Body body, parse_block_body({"elif", "else", "endif"}));
      stmt->branches.emplace_back(std::move(condition), std::move(body));
      if (skip_name("elif")) continue;
      const bool has_else = at_name("else");
      next();
      if (has_else) {
        TRY_ASSIGN(stmt->otherwise, parse_block_to("endif"));
      }
      return StmtPtr(std::move(stmt));
    }
  }

  Result<StmtPtr> parse_set(int line) {
    Target target;
    if (peek().kind == TokenKind::op && peek().text == ".") {
      if (current().kind != TokenKind::name) return error("expected a name to assign to");
      target.line = current().line;
      target.name = intern(current().text);
      next();
      next();
      if (current().kind != TokenKind::name) return error("expected an attribute name after '.'");
      target.attribute = current().text;
      next();
    } else {
      TRY_ASSIGN(target, parse_target(""));
    }
    if (skip_op("=")) {
      auto stmt = std::make_unique<SetStmt>(line);
      stmt->target = std::move(target);
      TRY_ASSIGN(stmt->value, parse_tuple());
      return StmtPtr(std::move(stmt));
    }
    auto stmt = std::make_unique<SetBlockStmt>(line);
    stmt->target = std::move(target);
    if (at_op("|")) {
      TRY_ASSIGN(stmt->filter, parse_filters(nullptr));
    }
    TRY_ASSIGN(stmt->body, parse_block_to("endset"));
    return StmtPtr(std::move(stmt));
  }

  Status parse_signature(MacroStmt& macro) {
    TRY(expect_op("("));
    while (!at_op(")")) {
      if (!macro.parameters.empty()) TRY(expect_op(","));
      if (current().kind != TokenKind::name) return error("expected a parameter name");
      macro.parameters.push_back(intern(current().text));
      next();
      if (skip_op("=")) {
        TRY_ASSIGN(ExprPtr value, parse_expression());
        macro.defaults.push_back(std::move(value));
      } else if (!macro.defaults.empty()) {
        return error("parameter without default after one with a default");
      }
    }
    return expect_op(")");
  }

  Result<StmtPtr> parse_macro(int line) {
    auto stmt = std::make_unique<MacroStmt>(line);
    if (current().kind != TokenKind::name) return error("expected the name of the macro");
    stmt->name = intern(current().text);
    next();
    TRY(parse_signature(*stmt));
    TRY_ASSIGN(stmt->body, parse_function_to("endmacro"));
    return StmtPtr(std::move(stmt));
  }

  Result<StmtPtr> parse_call_block(int line) {
    auto stmt = std::make_unique<CallBlockStmt>(line);
    stmt->caller = std::make_unique<MacroStmt>(line);
    stmt->caller->name = intern("caller");
    if (at_op("(")) TRY(parse_signature(*stmt->caller));
    TRY_ASSIGN(stmt->call, parse_expression());
    if (stmt->call->kind != ExprKind::call) return error_at(line, "expected a call after 'call'");
    TRY_ASSIGN(stmt->caller->body, parse_function_to("endcall"));
    return StmtPtr(std::move(stmt));
  }

  Result<StmtPtr> parse_filter_block(int line) {
    auto stmt = std::make_unique<FilterBlockStmt>(line);
    TRY_ASSIGN(stmt->filter, parse_filters(nullptr, true));
    TRY_ASSIGN(stmt->body, parse_block_to("endfilter"));
    return StmtPtr(std::move(stmt));
  }

  Result<StmtPtr> parse_with(int line) {
    auto stmt = std::make_unique<WithStmt>(line);
    while (current().kind != TokenKind::block_end) {
      if (!stmt->bindings.empty()) TRY(expect_op(","));
      TRY_ASSIGN(Target target, parse_target(""));
      TRY(expect_op("="));
      TRY_ASSIGN(ExprPtr value, parse_expression());
      stmt->bindings.emplace_back(std::move(target), std::move(value));
    }
    TRY_ASSIGN(stmt->body, parse_block_to("endwith"));
    return StmtPtr(std::move(stmt));
  }

  Result<StmtPtr> parse_print(int line) {
    auto stmt = std::make_unique<OutputStmt>(line);
    while (current().kind != TokenKind::block_end) {
      if (!stmt->parts.empty()) TRY(expect_op(","));
      TRY_ASSIGN(ExprPtr part, parse_expression());
      stmt->parts.push_back(std::move(part));
    }
    return StmtPtr(std::move(stmt));
  }

  int n_loops_ = 0;  // loops of the current function that `break` could leave
};

}  // namespace

Result<Program> parse(std::string_view source, const ParseLimits& limits) {
  if (source.size() > limits.max_template_bytes) {
    return Error{Code::exhausted, "chat template has " + std::to_string(source.size()) + " bytes, at most " +
                                      std::to_string(limits.max_template_bytes) + " are accepted"};
  }
  TRY_ASSIGN(std::vector<Token> tokens, tokenize(source));
  TRY_ASSIGN(Program program, Parser(std::move(tokens), limits).run());
  TRY(plan_scopes(program));
  return Result<Program>{std::move(program)};
}

}  // namespace chimere::jinja
