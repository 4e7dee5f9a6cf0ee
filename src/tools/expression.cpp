#include "tools/expression.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "text/utf8.h"
#include "tools/rational.h"

namespace chimere::tools {
namespace {

constexpr uint32_t kRootDigits = 40;      // significant digits of a root that has no end
constexpr uint32_t kShownDigits = 15;     // of an answer that is rounded
constexpr uint32_t kMaxDecimals = 40;     // behind the point of an answer that is not
constexpr size_t kMaxFractionChars = 60;  // longer ones are not shown beside their rounded value
constexpr int64_t kMaxRootDegree = 64;
constexpr size_t kMaxArguments = 256;
// In products of limbs: about a second in all, however the expression spends it.
constexpr uint64_t kMaxWork = 200'000'000;

struct Value {
  Rational number;
  bool is_rounded = false;
  bool is_percent = false;  // written as one, or a sum of such
};

constexpr std::array<const char*, 15> kFunctions = {"sqrt", "cbrt", "abs", "min", "max",       "round", "floor", "ceil",
                                                    "gcd",  "lcm",  "mod", "pow", "factorial", "sum",   "mean"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Operators as questions have them, which small models copy.
constexpr std::array<std::string_view, 2> kMinusWords = {"minus", "moins"};
constexpr std::array<std::string_view, 4> kTimesWords = {"times", "multiplied by", "fois", "multiplié par"};
constexpr std::array<std::string_view, 3> kDividedWords = {"divided by", "over", "divisé par"};

class Evaluator {
 public:
  Evaluator(std::string_view text, const std::function<bool()>& is_cancelled)
      : text_(text), is_cancelled_(is_cancelled) {}

  Result<Evaluation> run() {
    TRY_ASSIGN(const Value left, sum());
    skip_spaces();
    const size_t at = pos_;
    const std::string_view comparison = take_comparison();
    if (comparison.empty()) {
      if (pos_ < text_.size()) return unexpected("an operator or the end");
      return shown(left);
    }
    skip_spaces();
    if (comparison == "=" && pos_ == text_.size()) return shown(left);  // "2 + 2 =", as on a pocket calculator
    TRY_ASSIGN(const Value right, sum());
    skip_spaces();
    if (pos_ < text_.size()) return unexpected("an operator or the end");
    if (left.is_rounded || right.is_rounded) {
      return error_at(at, "a rounded root cannot be compared exactly; compare the squares");
    }
    const auto order = left.number <=> right.number;
    const bool is_true = comparison == "<"    ? order < 0
                         : comparison == "<=" ? order <= 0
                         : comparison == ">"  ? order > 0
                         : comparison == ">=" ? order >= 0
                         : comparison == "!=" ? order != 0
                                              : order == 0;
    return Evaluation{is_true ? "true" : "false", false};
  }

 private:
  // Words about the text.

  Error error_at(size_t pos, const std::string& what) const {
    size_t n_chars = 1;
    for (size_t i = 0; i < pos && i < text_.size(); ++n_chars) i += decode_at(text_, i).n_bytes;
    return Error{Code::invalid_argument, "at character " + std::to_string(n_chars) + ": " + what};
  }
  Error unexpected(const std::string& expected) const {
    if (pos_ >= text_.size()) return error_at(pos_, "expected " + expected + ", found the end");
    const size_t n = decode_at(text_, pos_).n_bytes;
    return error_at(pos_, "expected " + expected + ", found '" + std::string(text_.substr(pos_, n)) + "'");
  }

  char32_t peek(size_t pos) const { return pos < text_.size() ? decode_at(text_, pos).value : U'\0'; }
  char at(size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }

  static bool is_space(char32_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xA0 || c == 0x2009 || c == 0x202F;
  }
  void skip_spaces() {
    while (pos_ < text_.size() && is_space(peek(pos_))) pos_ += decode_at(text_, pos_).n_bytes;
  }
  bool take(std::string_view word) {
    if (text_.substr(pos_, word.size()) != word) return false;
    pos_ += word.size();
    return true;
  }
  bool take_any(std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return take(word); });
  }
  bool is_word_at(size_t pos, std::string_view word) const {
    return text_.substr(pos, word.size()) == word && !is_letter(at(pos + word.size()));
  }
  bool take_word(std::string_view word) {
    if (!is_word_at(pos_, word)) return false;
    pos_ += word.size();
    return true;
  }
  template <size_t kN>
  bool take_any_word(const std::array<std::string_view, kN>& words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return take_word(word); });
  }
  std::string_view take_comparison() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSigns = {{{"<=", "<="},
                                                                                              {">=", ">="},
                                                                                              {"==", "=="},
                                                                                              {"!=", "!="},
                                                                                              {"≤", "<="},
                                                                                              {"≥", ">="},
                                                                                              {"≠", "!="},
                                                                                              {"<", "<"},
                                                                                              {">", ">"},
                                                                                              {"=", "="}}};
    for (const auto& [written, meant] : kSigns) {
      if (take(written)) return meant;
    }
    return "";
  }

  // Values: nothing grows beyond the limits, and nothing goes on for ever.

  Status spend(uint64_t work) {
    work_ += work + 1;
    if (work_ > kMaxWork) return Error{Code::exhausted, "the expression takes too long: its numbers are too large"};
    if (is_cancelled_()) return Error{Code::cancelled, "the calculation was cancelled"};
    return Ok{};
  }
  Status spend_on(const Rational& a, const Rational& b) {
    const uint64_t n = a.n_limbs() + b.n_limbs();
    return spend(n * n);
  }
  Result<Value> checked(Value value, size_t at) const {
    if (std::max(value.number.numerator().n_digits(), value.number.denominator().n_digits()) > kMaxNumberDigits + 1) {
      return too_large(at);
    }
    return value;
  }
  Error too_large(size_t at) const {
    return error_at(at, "the number has more than " + std::to_string(kMaxNumberDigits) + " digits");
  }
  // REQUIRES: `make` needs no more than a gcd of its operands
  template <class Make>
  Result<Value> combine(const Value& a, const Value& b, size_t at, Make make) {
    TRY(spend_on(a.number, b.number));
    return checked(Value{make(a.number, b.number), a.is_rounded || b.is_rounded}, at);
  }

  Result<Value> add(const Value& a, const Value& b, bool is_minus, size_t at) {
    if (a.is_percent != b.is_percent && !(b.is_percent && a.number == Rational(BigInt(1)))) {
      return error_at(at, "a percentage beside a number can be read in two ways; write 200 * (1 + 10%) or 200 + 0.1");
    }
    TRY_ASSIGN(Value sum,
               combine(a, b, at, [&](const Rational& x, const Rational& y) { return is_minus ? x - y : x + y; }));
    sum.is_percent = a.is_percent && b.is_percent;
    return sum;
  }
  Result<Value> multiply(const Value& a, const Value& b, size_t at) {
    return combine(a, b, at, [](const Rational& x, const Rational& y) { return x * y; });
  }
  Result<Value> divide(const Value& a, const Value& b, size_t at) {
    if (b.number.is_zero()) return error_at(at, "division by zero");
    return combine(a, b, at, [](const Rational& x, const Rational& y) { return x / y; });
  }
  Result<Value> floor_divide(const Value& a, const Value& b, size_t at) {
    TRY_ASSIGN(const Value quotient, divide(a, b, at));
    return Value{Rational(quotient.number.floor()), quotient.is_rounded};
  }
  Result<Value> modulo(const Value& a, const Value& b, size_t at) {
    TRY_ASSIGN(const Value quotient, floor_divide(a, b, at));
    return combine(a, b, at, [&](const Rational& x, const Rational& y) { return x - y * quotient.number; });
  }

  Result<Value> raise(const Value& base, const Value& exponent, size_t at) {
    const Rational& by = exponent.number;
    const int64_t times = by.numerator().abs().small_or(-1);
    const int64_t degree = by.denominator().small_or(-1);
    if (exponent.is_rounded || times < 0 || degree < 0 || degree > kMaxRootDegree) {
      return error_at(at, "expected an exponent that is an integer or a fraction with a denominator up to " +
                              std::to_string(kMaxRootDegree));
    }
    if (base.number.is_zero() && by.is_negative()) return error_at(at, "division by zero: zero to a negative power");
    const Rational one{BigInt(1)};
    if (base.number == one || times == 0) return Value{one, base.is_rounded};
    // Zero, one and minus one do not grow, however often they are multiplied.
    const bool is_unit = base.number.is_integer() && base.number.numerator().abs().small_or(2) <= 1;
    const auto n = static_cast<uint32_t>(is_unit ? 2 - times % 2 : times);
    const uint64_t n_bits = std::max(base.number.numerator().n_bits(), base.number.denominator().n_bits());
    if (!is_unit && (n_bits - 1) * n > kMaxNumberDigits * 10 / 3) return too_large(at);  // 3.32 bits a digit
    TRY(spend(n_bits * n / 32 * (n_bits * n / 32)));
    Value raised{Rational(power(base.number.numerator(), n), power(base.number.denominator(), n)), base.is_rounded};
    if (by.is_negative()) raised.number = one / raised.number;
    TRY_ASSIGN(raised, checked(std::move(raised), at));
    return degree == 1 ? Result<Value>(std::move(raised)) : root(raised, static_cast<uint32_t>(degree), at);
  }

  Result<Value> root(const Value& value, uint32_t degree, size_t at) {
    const bool is_negative = value.number.is_negative();
    if (is_negative && degree % 2 == 0) return error_at(at, "the root of a negative number");
    const BigInt size = value.number.numerator().abs();
    const BigInt& below = value.number.denominator();
    const uint64_t n = value.number.n_limbs() + degree * 8;
    TRY(spend(n * n * degree));
    const auto signed_value = [&](Rational number, bool is_rounded) {
      return Value{is_negative ? -number : std::move(number), is_rounded || value.is_rounded};
    };
    const BigInt top = floor_root(size, degree), bottom = floor_root(below, degree);
    if (power(top, degree) == size && power(bottom, degree) == below) return signed_value({top, bottom}, false);
    // The integer root of the number times 10^(degree * shift) has the digits that are wanted.
    const int64_t missing =
        kRootDigits +
        (static_cast<int64_t>(below.n_digits()) - static_cast<int64_t>(size.n_digits())) / static_cast<int64_t>(degree);
    const auto shift = static_cast<uint32_t>(std::max<int64_t>(missing, 0));
    const BigInt scaled = (size * BigInt::power_of_ten(shift * degree)).divide(below).quotient;
    return signed_value({floor_root(scaled, degree), BigInt::power_of_ten(shift)}, true);
  }

  Result<Value> factorial(const Value& value, size_t at) {
    const int64_t n = value.number.is_integer() ? value.number.numerator().small_or(INT32_MAX) : -1;
    if (n < 0 || value.is_rounded) return error_at(at, "the factorial of a number that is no integer from 0 on");
    BigInt product(1);
    for (int64_t i = 2; i <= n; ++i) {
      TRY(spend(product.n_limbs()));
      product = product * BigInt(i);
      if (product.n_digits() > kMaxNumberDigits + 1) return too_large(at);
    }
    return Value{Rational(std::move(product))};
  }

  // The grammar, from the weakest binding to the strongest.

  Result<Value> sum() {
    if (++depth_ > kMaxExpressionDepth) {
      return error_at(pos_, "more than " + std::to_string(kMaxExpressionDepth) + " levels inside each other");
    }
    TRY_ASSIGN(Value left, product());
    for (;;) {
      skip_spaces();
      const size_t at = pos_;
      const bool is_plus = take("+") || take_word("plus");
      if (!is_plus && !take_any({"-", "−", "–"}) && !take_any_word(kMinusWords)) break;
      TRY_ASSIGN(const Value right, product());
      TRY_ASSIGN(left, add(left, right, !is_plus, at));
    }
    --depth_;
    return left;
  }

  bool take_times(const Value& left) {
    if (at(pos_) == '*' && at(pos_ + 1) == '*') return false;  // a power, where none can stand
    if (take_any({"*", "×", "·", "⋅", "∗"})) return true;
    if ((at(pos_) == 'x' || at(pos_) == 'X') && !is_letter(at(pos_ + 1))) return ++pos_, true;
    if (take_any_word(kTimesWords)) return true;
    return left.is_percent && take_word("of");
  }

  Result<Value> product() {
    TRY_ASSIGN(Value left, signed_power());
    for (;;) {
      skip_spaces();
      const size_t at = pos_;
      if (take("//")) {
        TRY_ASSIGN(const Value right, signed_power());
        TRY_ASSIGN(left, floor_divide(left, right, at));
      } else if (take_any({"/", "÷", "∕", "⁄"}) || take_any_word(kDividedWords)) {
        TRY_ASSIGN(const Value right, signed_power());
        TRY_ASSIGN(left, divide(left, right, at));
      } else if (take("%") || take_word("mod")) {
        TRY_ASSIGN(const Value right, signed_power());
        TRY_ASSIGN(left, modulo(left, right, at));
      } else if (take_times(left)) {
        TRY_ASSIGN(const Value right, signed_power());
        TRY_ASSIGN(left, multiply(left, right, at));
      } else {
        return left;
      }
    }
  }

  // A sign binds less than a power: -2^2 is -4.
  Result<Value> signed_power() {
    if (++depth_ > kMaxExpressionDepth) {
      return error_at(pos_, "more than " + std::to_string(kMaxExpressionDepth) + " levels inside each other");
    }
    skip_spaces();
    const size_t at = pos_;
    Value value;
    if (take_any({"-", "−", "–"})) {
      TRY_ASSIGN(value, signed_power());
      value.number = -value.number;
    } else if (take("+")) {
      TRY_ASSIGN(value, signed_power());
    } else if (take("√")) {
      TRY_ASSIGN(const Value of, signed_power());
      TRY_ASSIGN(value, root(of, 2, at));
    } else {
      TRY_ASSIGN(value, postfix());
      skip_spaces();
      const size_t sign = pos_;
      if (take("**") || take("^")) {
        TRY_ASSIGN(const Value exponent, signed_power());
        TRY_ASSIGN(value, raise(value, exponent, sign));
      }
    }
    --depth_;
    return value;
  }

  // A % is a percentage where no operand follows, else the remainder of a division.
  bool is_percent_sign() const {
    size_t next = pos_ + 1;
    while (next < text_.size() && is_space(peek(next))) next += decode_at(text_, next).n_bytes;
    const char c = at(next);
    if (is_digit(c) || c == '.' || c == '(' || text_.substr(next, 3) == "√") return false;
    if (!is_letter(c)) return true;
    if ((c == 'x' || c == 'X') && !is_letter(at(next + 1))) return true;
    const auto stands_here = [&](std::string_view word) { return is_word_at(next, word); };
    return stands_here("of") || stands_here("plus") ||
           std::any_of(kMinusWords.begin(), kMinusWords.end(), stands_here) ||
           std::any_of(kTimesWords.begin(), kTimesWords.end(), stands_here) ||
           std::any_of(kDividedWords.begin(), kDividedWords.end(), stands_here);
  }

  Result<Value> postfix() {
    TRY_ASSIGN(Value value, primary());
    for (;;) {
      skip_spaces();
      const size_t sign = pos_;
      if (at(pos_) == '!' && at(pos_ + 1) != '=') {
        ++pos_;
        TRY_ASSIGN(value, factorial(value, sign));
      } else if (at(pos_) == '%' && is_percent_sign()) {
        ++pos_;
        TRY_ASSIGN(value, divide(value, Value{Rational(BigInt(100))}, sign));
        value.is_percent = true;
      } else if (const bool is_square = take("²"); is_square || take("³")) {
        TRY_ASSIGN(value, raise(value, Value{Rational(BigInt(is_square ? 2 : 3))}, sign));
      } else {
        return value;
      }
    }
  }

  Result<Value> primary() {
    skip_spaces();
    const char c = at(pos_);
    if (is_digit(c) || (c == '.' && is_digit(at(pos_ + 1)))) return number();
    if (c == '(') {
      ++pos_;
      const bool was_in_call = std::exchange(is_in_call_, false);
      TRY_ASSIGN(Value value, sum());
      is_in_call_ = was_in_call;
      skip_spaces();
      if (!take(")")) return unexpected("')'");
      return value;
    }
    if (is_letter(c)) return call();
    return unexpected("a number, a function or '('");
  }

  // Bytes of the separator of thousands at `pos`, 0 where there is none: three digits follow it, and no fourth.
  size_t separator_at(size_t pos) const {
    const char32_t c = peek(pos);
    if (c == '_') return is_digit(at(pos + 1)) ? 1 : 0;
    const bool can_separate =
        (c == ',' && !is_in_call_) || c == '\'' || c == 0x2019 || c == ' ' || c == 0xA0 || c == 0x2009 || c == 0x202F;
    if (!can_separate) return 0;
    const size_t n = decode_at(text_, pos).n_bytes;
    const bool is_group =
        is_digit(at(pos + n)) && is_digit(at(pos + n + 1)) && is_digit(at(pos + n + 2)) && !is_digit(at(pos + n + 3));
    return is_group ? n : 0;
  }

  Result<Value> number() {
    const size_t begin = pos_;
    std::string digits;
    const auto take_digits = [&] {
      while (is_digit(at(pos_))) digits += text_[pos_++];
    };
    take_digits();
    const char32_t separator = peek(pos_);
    if (separator == '_' || digits.size() <= 3) {
      while (peek(pos_) == separator && !digits.empty()) {
        const size_t n = separator_at(pos_);
        if (n == 0) break;
        pos_ += n;
        take_digits();
      }
    }
    if (is_in_call_ && begin > 0 && text_[begin - 1] == ',' && digits.size() == 3 && digits[0] == '0') {
      return error_at(begin, "a comma between arguments, or between thousands? Write numbers here without separators");
    }
    if (at(pos_) == ',' && !is_in_call_) {
      return error_at(pos_, "a comma that no three digits follow; decimals are written with a point");
    }
    size_t n_decimals = 0;
    if (at(pos_) == '.') {
      ++pos_;
      const size_t before = digits.size();
      take_digits();
      n_decimals = digits.size() - before;
    }
    int64_t exponent = 0;
    const bool has_sign = at(pos_ + 1) == '+' || at(pos_ + 1) == '-';
    if ((at(pos_) == 'e' || at(pos_) == 'E') && is_digit(at(pos_ + (has_sign ? 2 : 1)))) {
      const bool is_negative = at(pos_ + 1) == '-';
      for (pos_ += has_sign ? 2 : 1; is_digit(at(pos_)); ++pos_) {
        exponent = std::min<int64_t>(exponent * 10 + (text_[pos_] - '0'), kMaxNumberDigits + 1);
      }
      if (is_negative) exponent = -exponent;
    }
    exponent -= static_cast<int64_t>(n_decimals);
    if (digits.size() + static_cast<size_t>(exponent < 0 ? -exponent : exponent) > kMaxNumberDigits)
      return too_large(begin);
    const BigInt whole = BigInt::from_digits(digits);
    const BigInt scale = BigInt::power_of_ten(static_cast<uint32_t>(exponent < 0 ? -exponent : exponent));
    TRY(spend(uint64_t{scale.n_limbs()} * (whole.n_limbs() + scale.n_limbs())));
    return Value{exponent < 0 ? Rational(whole, scale) : Rational(whole * scale)};
  }

  Result<Value> call() {
    const size_t begin = pos_;
    while (is_letter(at(pos_)) || is_digit(at(pos_)) || at(pos_) == '_' || at(pos_) == '.') ++pos_;
    std::string name(text_.substr(begin, pos_ - begin));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return is_letter(c) ? static_cast<char>(c | 0x20) : c; });
    if (name.starts_with("math.")) name.erase(0, 5);
    if (std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end()) {
      std::string known;
      for (const char* function : kFunctions) known += (known.empty() ? "" : ", ") + std::string(function);
      return error_at(begin, "unknown name '" + name.substr(0, 64) + "'; there are " + known);
    }
    skip_spaces();
    if (!take("(")) return unexpected("'(' behind " + name);
    const bool was_in_call = std::exchange(is_in_call_, true);
    std::vector<Value> arguments;
    do {
      if (arguments.size() == kMaxArguments)
        return error_at(pos_, "more than " + std::to_string(kMaxArguments) + " arguments");
      TRY_ASSIGN(Value argument, sum());
      arguments.push_back(std::move(argument));
      skip_spaces();
    } while (take_any({",", ";"}));
    is_in_call_ = was_in_call;
    if (!take(")")) return unexpected("',' or ')'");
    return apply(name, arguments, begin);
  }

  Result<Value> apply(const std::string& name, const std::vector<Value>& arguments, size_t at) {
    const auto takes = [&](size_t least, size_t most) -> Status {
      if (arguments.size() >= least && arguments.size() <= most) return Ok{};
      const std::string wanted =
          least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
      return error_at(at, name + " takes " + wanted + " argument" + (most == 1 ? "" : "s") + ", found " +
                              std::to_string(arguments.size()));
    };
    const Value& first = arguments[0];
    if (name == "min" || name == "max") {
      const Value* best = &first;
      for (const Value& value : arguments) {
        TRY(spend_on(value.number, best->number));
        if (name == "min" ? value.number < best->number : value.number > best->number) best = &value;
      }
      return *best;
    }
    if (name == "gcd" || name == "lcm") return common(name == "gcd", arguments, at);
    if (name == "sum" || name == "mean") {
      Value total;
      for (const Value& value : arguments) {
        TRY_ASSIGN(total, combine(total, value, at, [](const Rational& x, const Rational& y) { return x + y; }));
      }
      return name == "sum" ? Result<Value>(total)
                           : divide(total, Value{Rational(BigInt(static_cast<int64_t>(arguments.size())))}, at);
    }
    if (name == "mod" || name == "pow") {
      TRY(takes(2, 2));
      return name == "mod" ? modulo(first, arguments[1], at) : raise(first, arguments[1], at);
    }
    if (name == "round") {
      TRY(takes(1, 2));
      return rounded(first, arguments.size() == 2 ? arguments[1] : Value{}, at);
    }
    TRY(takes(1, 1));
    TRY(spend_on(first.number, first.number));
    if (name == "sqrt") return root(first, 2, at);
    if (name == "cbrt") return root(first, 3, at);
    if (name == "factorial") return factorial(first, at);
    if (name == "floor") return Value{Rational(first.number.floor()), first.is_rounded};
    if (name == "ceil") return Value{Rational(-(-first.number).floor()), first.is_rounded};
    return Value{first.number.is_negative() ? -first.number : first.number, first.is_rounded};  // abs
  }

  Result<Value> common(bool is_divisor, const std::vector<Value>& arguments, size_t at) {
    BigInt result = is_divisor ? BigInt() : BigInt(1);
    for (const Value& value : arguments) {
      if (!value.number.is_integer() || value.is_rounded) {
        return error_at(at, std::string(is_divisor ? "gcd" : "lcm") + " takes integers");
      }
      const BigInt& number = value.number.numerator();
      TRY(spend_on(value.number, Rational(result)));
      if (!is_divisor && number.is_zero()) return Value{};
      const BigInt divisor = greatest_common_divisor(result, number);
      result = is_divisor ? divisor : (result * number.abs()).divide(divisor).quotient;
      if (result.n_digits() > kMaxNumberDigits + 1) return too_large(at);
    }
    return Value{Rational(std::move(result))};
  }

  Result<Value> rounded(const Value& value, const Value& decimals, size_t at) {
    const int64_t n = decimals.number.is_integer() ? decimals.number.numerator().small_or(INT32_MAX) : INT32_MAX;
    if (n < -static_cast<int64_t>(kMaxNumberDigits) || n > static_cast<int64_t>(kMaxNumberDigits)) {
      return error_at(at, "round takes an integer number of decimals");
    }
    const Rational scale(BigInt::power_of_ten(static_cast<uint32_t>(n < 0 ? -n : n)));
    TRY(spend_on(value.number, scale));
    if (n >= 0) return checked(Value{Rational((value.number * scale).round()) / scale, value.is_rounded}, at);
    return checked(Value{Rational((value.number / scale).round()) * scale, value.is_rounded}, at);
  }

  Result<Evaluation> shown(const Value& value) {
    TRY(spend_on(value.number, value.number));
    if (!value.is_rounded) {
      std::string exact = exact_decimal(value.number, kMaxDecimals);
      if (!exact.empty() && exact.size() <= kMaxShownDigits) return Evaluation{std::move(exact), false};
    }
    std::string text = rounded_decimal(value.number, kShownDigits) + " (rounded";
    if (value.number.is_integer() && !value.is_rounded) {
      text += "; the exact number has " + std::to_string(value.number.numerator().abs().to_digits().size()) + " digits";
    } else if (!value.is_rounded) {
      const std::string fraction = value.number.numerator().to_digits() + "/" + value.number.denominator().to_digits();
      if (fraction.size() <= kMaxFractionChars) text += "; exactly " + fraction;
    }
    return Evaluation{text + ")", true};
  }

  std::string_view text_;
  const std::function<bool()>& is_cancelled_;
  size_t pos_ = 0;
  int depth_ = 0;
  uint64_t work_ = 0;
  bool is_in_call_ = false;  // a comma separates arguments, not thousands
};

}  // namespace

Result<Evaluation> evaluate(std::string_view expression, const std::function<bool()>& is_cancelled) {
  if (expression.size() > kMaxExpressionBytes) {
    return Error{Code::invalid_argument, "expected an expression of at most " + std::to_string(kMaxExpressionBytes) +
                                             " bytes, found " + std::to_string(expression.size())};
  }
  return Evaluator(expression, is_cancelled).run();
}

}  // namespace chimere::tools
