// parser.h  Tokens -> syntax tree.
#pragma once

#include <string_view>

#include "base/result.h"
#include "jinja/ast.h"

namespace chimere::jinja {

struct ParseLimits {
  size_t max_template_bytes = 1 << 20;
  int max_depth = 100;        // nested brackets and blocks
  int max_expr_height = 200;  // operators chained in one expression
};

// Parses, checks filter and test names, and plans the scopes.
Result<Program> parse(std::string_view source, const ParseLimits& limits);

}  // namespace chimere::jinja
