// lexer.h  Template source -> tokens, with the whitespace rules of trim_blocks and lstrip_blocks applied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace chimere::jinja {

enum class TokenKind : uint8_t {
  data,
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,  // text is the operator
  eof,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // data, name, operator, or the unescaped string
  int64_t integer = 0;
  double real = 0;
};

Result<std::vector<Token>> tokenize(std::string_view source);
Error template_error(int line, const std::string& what);

}  // namespace chimere::jinja
