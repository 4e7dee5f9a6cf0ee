// expression.h  Arithmetic as people and models write it, to its exact value.
//
// + - * / // % ^ ! and parentheses; × · ÷ − √ ² ³ and x between numbers; plus, minus, times, divided by, in French, too; 1,234,567.89 and 1 234 567; 15% of 80; one
// comparison. Every step is exact; only roots that have no end are rounded, and then the answer says so.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace chimere::tools {

inline constexpr size_t kMaxExpressionBytes = 4096;
inline constexpr int kMaxExpressionDepth = 128;   // parentheses, signs and powers inside each other
inline constexpr size_t kMaxNumberDigits = 5000;  // of a numerator or denominator on the way
inline constexpr size_t kMaxShownDigits = 1000;   // larger answers are shown rounded

struct Evaluation {
  std::string text;  // "220", "true", "0.333333333333333 (rounded; exactly 1/3)"
  bool is_rounded = false;
};

// Errors say at which character. `is_cancelled` is asked between steps, of which none takes more than milliseconds.
Result<Evaluation> evaluate(
    std::string_view expression, const std::function<bool()>& is_cancelled = [] { return false; });

}  // namespace chimere::tools
