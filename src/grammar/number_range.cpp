#include "grammar/number_range.h"

#include <algorithm>
#include <vector>

namespace chimere::grammar {
namespace {

constexpr size_t kWholeDigits = 15, kFractionDigits = 15, kIntegerDigits = 18;

// The size of a number, without its sign.
struct Size {
  std::string whole;     // no leading zeros, "0" alone
  std::string fraction;  // no trailing zeros
  bool is_exclusive = false;
};

struct Signed {
  bool is_negative = false;
  Size size;
  bool is_zero() const { return size.whole == "0" && size.fraction.empty(); }
};

Signed parse(const Bound& bound) {
  Signed value;
  std::string text = bound.decimal;
  if (text.starts_with('-')) {
    value.is_negative = true;
    text.erase(0, 1);
  }
  const size_t point = std::min(text.find('.'), text.size());
  value.size.whole = text.substr(0, point);
  value.size.fraction = point < text.size() ? text.substr(point + 1) : "";
  while (value.size.fraction.ends_with('0')) value.size.fraction.pop_back();
  const size_t zeros = std::min(value.size.whole.find_first_not_of('0'), value.size.whole.size());
  value.size.whole.erase(0, zeros);
  if (value.size.whole.empty()) value.size.whole = "0";
  value.size.is_exclusive = bound.is_exclusive;
  if (value.is_zero()) value.is_negative = false;
  return value;
}

int compare(const std::string& a, const std::string& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

std::string plus_one(std::string digits) {
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i]++ != '9') return digits;
    digits[i] = '0';
  }
  return "1" + digits;
}

std::string minus_one(std::string digits) {  // of a number above 0
  for (size_t i = digits.size(); i-- > 0;) {
    if (digits[i]-- != '0') break;
    digits[i] = '9';
  }
  if (digits.size() > 1 && digits[0] == '0') digits.erase(0, 1);
  return digits;
}

class Ranges {
 public:
  explicit Ranges(Grammar& grammar) : g_(grammar) {}

  ExprId never() { return g_.chars(CharSet()); }

  // Whole numbers from low to high, both included.
  ExprId wholes(const std::string& low, const std::string& high) {
    if (compare(low, high) > 0) return never();
    std::vector<ExprId> ways;
    for (size_t n = low.size(); n <= high.size(); ++n) {
      const std::string from = n == low.size() ? low : "1" + std::string(n - 1, '0');
      const std::string to = n == high.size() ? high : std::string(n, '9');
      ways.push_back(same_length(from, to, 0, true, true));
    }
    return g_.choice(std::move(ways));
  }

  // Sizes of numbers that are no integers alone.
  ExprId decimals(const Size& low, const Size& high) {
    const int order = compare(low.whole, high.whole);
    if (order > 0) return never();
    if (order == 0) return g_.sequence({g_.bytes(low.whole), fraction(low, high, true, true)});
    std::vector<ExprId> ways{g_.sequence({g_.bytes(low.whole), fraction(low, high, true, false)}),
                             g_.sequence({g_.bytes(high.whole), fraction(low, high, false, true)})};
    const std::string first = plus_one(low.whole), last = minus_one(high.whole);
    if (compare(first, last) <= 0) {
      ways.push_back(g_.sequence({wholes(first, last), fraction(low, high, false, false)}));
    }
    return g_.choice(std::move(ways));
  }

 private:
  ExprId digit(char from, char to) {
    return g_.chars(CharSet(static_cast<unsigned char>(from), static_cast<unsigned char>(to)));
  }

  // The digits from `i` on; what came before equals the low bound, the high one, or lies between.
  ExprId same_length(const std::string& low, const std::string& high, size_t i, bool at_low, bool at_high) {
    if (!at_low && !at_high) {
      const auto left = static_cast<int>(low.size() - i);
      return g_.repeat(digit('0', '9'), left, left);
    }
    if (i == low.size()) return g_.nothing();
    const char from = at_low ? low[i] : '0', to = at_high ? high[i] : '9';
    if (from > to) return never();
    if (from == to) return g_.sequence({digit(from, to), same_length(low, high, i + 1, at_low, at_high)});
    std::vector<ExprId> ways{g_.sequence({digit(from, from), same_length(low, high, i + 1, at_low, false)}),
                             g_.sequence({digit(to, to), same_length(low, high, i + 1, false, at_high)})};
    if (to - from > 1) {
      ways.push_back(g_.sequence({digit(static_cast<char>(from + 1), static_cast<char>(to - 1)),
                                  same_length(low, high, i + 1, false, false)}));
    }
    return g_.choice(std::move(ways));
  }

  ExprId fraction(const Size& low, const Size& high, bool at_low, bool at_high) {
    std::vector<ExprId> ways{g_.sequence({g_.bytes("."), fraction_digits(low, high, 0, at_low, at_high)})};
    if (may_end(low, high, 0, at_low, at_high)) ways.push_back(g_.nothing());
    return g_.choice(std::move(ways));
  }

  static bool may_end(const Size& low, const Size& high, size_t i, bool at_low, bool at_high) {
    if (at_low && (i < low.fraction.size() || low.is_exclusive)) return false;
    return !(at_high && i >= high.fraction.size() && high.is_exclusive);
  }

  // At least one digit, from place `i` on.
  ExprId fraction_digits(const Size& low, const Size& high, size_t i, bool at_low, bool at_high) {
    const auto left = static_cast<int>(kFractionDigits - i);
    if (at_low && i >= low.fraction.size() && !low.is_exclusive) at_low = false;
    if (left == 0) return never();
    if (!at_low && !at_high) return g_.repeat(digit('0', '9'), 1, left);
    if (at_high && i >= high.fraction.size() && high.is_exclusive) return never();
    const char from = at_low && i < low.fraction.size() ? low.fraction[i] : '0';
    const char to = !at_high ? '9' : i < high.fraction.size() ? high.fraction[i] : '0';
    std::vector<ExprId> ways;
    for (char c = from; c <= to; ++c) {
      const bool low_next = at_low && c == from, high_next = at_high && c == to;
      std::vector<ExprId> after;
      if (may_end(low, high, i + 1, low_next, high_next)) after.push_back(g_.nothing());
      if (left > 1) after.push_back(fraction_digits(low, high, i + 1, low_next, high_next));
      if (!after.empty()) ways.push_back(g_.sequence({digit(c, c), g_.choice(std::move(after))}));
    }
    return g_.choice(std::move(ways));
  }

  Grammar& g_;
};

// The bounds as whole numbers that belong to the range.
Signed rounded(Signed value, bool is_low) {
  const bool has_fraction = !value.size.fraction.empty();
  const bool outwards = value.is_negative != is_low;  // away from zero, to come into the range
  if (has_fraction || value.size.is_exclusive) {
    if (outwards) {
      value.size.whole = plus_one(value.size.whole);
    } else if (!has_fraction) {
      // An exclusive -5 below becomes -4; an exclusive 0 turns to the other sign.
      if (value.size.whole == "0") {
        value.is_negative = !is_low;
        value.size.whole = "1";
      } else {
        value.size.whole = minus_one(value.size.whole);
      }
    }
  }
  value.size.fraction.clear();
  value.size.is_exclusive = false;
  return value;
}

}  // namespace

ExprId integer_between(Grammar& grammar, const std::optional<Bound>& low, const std::optional<Bound>& high) {
  Ranges ranges(grammar);
  const std::string largest(kIntegerDigits, '9');
  const Signed from = low ? rounded(parse(*low), true) : Signed{true, {largest, "", false}};
  const Signed to = high ? rounded(parse(*high), false) : Signed{false, {largest, "", false}};
  std::vector<ExprId> ways;
  if (!to.is_negative) ways.push_back(ranges.wholes(from.is_negative ? "0" : from.size.whole, to.size.whole));
  if (from.is_negative) {
    ways.push_back(
        grammar.sequence({grammar.bytes("-"), ranges.wholes(to.is_negative ? to.size.whole : "1", from.size.whole)}));
  }
  return ways.empty() ? ranges.never() : grammar.choice(std::move(ways));
}

ExprId number_between(Grammar& grammar, const std::optional<Bound>& low, const std::optional<Bound>& high) {
  Ranges ranges(grammar);
  const Size largest{std::string(kWholeDigits, '9'), std::string(kFractionDigits, '9'), false};
  const Signed from = low ? parse(*low) : Signed{true, largest};
  const Signed to = high ? parse(*high) : Signed{false, largest};
  std::vector<ExprId> ways;
  if (!to.is_negative) {
    ways.push_back(ranges.decimals(from.is_negative ? Size{"0", "", false} : from.size, to.size));
  }
  if (from.is_negative) {
    ways.push_back(grammar.sequence(
        {grammar.bytes("-"), ranges.decimals(to.is_negative ? to.size : Size{"0", "", true}, from.size)}));
  }
  return ways.empty() ? ranges.never() : grammar.choice(std::move(ways));
}

}  // namespace chimere::grammar
