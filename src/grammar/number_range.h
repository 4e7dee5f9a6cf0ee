// number_range.h  Numbers between two bounds, as grammar expressions.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "grammar/expression.h"

namespace chimere::grammar {

struct Bound {
  std::string decimal;  // as JSON writes it, without an exponent
  bool is_exclusive = false;
};

// Without an exponent and with at most 18 (integers) or 15 and 15 digits. A range that is empty matches nothing.
ExprId integer_between(Grammar& grammar, const std::optional<Bound>& low, const std::optional<Bound>& high);
ExprId number_between(Grammar& grammar, const std::optional<Bound>& low, const std::optional<Bound>& high);

}  // namespace chimere::grammar
