#include "tools/rational.h"

#include "base/check.h"

namespace chimere::tools {
namespace {

void trim_decimals(std::string& digits) {
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
}

}  // namespace

Rational::Rational(BigInt numerator, BigInt denominator)
    : numerator_(std::move(numerator)), denominator_(std::move(denominator)) {
  CHECK(!denominator_.is_zero());
  if (denominator_.is_negative()) {
    numerator_ = -numerator_;
    denominator_ = -denominator_;
  }
  if (denominator_.is_one()) return;
  const BigInt common = greatest_common_divisor(numerator_, denominator_);
  if (common.is_one()) return;
  numerator_ = numerator_.divide(common).quotient;
  denominator_ = denominator_.divide(common).quotient;
}

BigInt Rational::round() const {
  const BigInt twice = denominator_ + denominator_;
  const BigInt size = (numerator_.abs() + numerator_.abs() + denominator_).divide(twice).quotient;
  return is_negative() ? -size : size;
}

Rational Rational::operator-() const {
  Rational negated = *this;
  negated.numerator_ = -numerator_;
  return negated;
}

Rational operator+(const Rational& a, const Rational& b) {
  if (a.is_integer() && b.is_integer()) return Rational(a.numerator_ + b.numerator_);
  return {a.numerator_ * b.denominator_ + b.numerator_ * a.denominator_, a.denominator_ * b.denominator_};
}

Rational operator*(const Rational& a, const Rational& b) {
  return {a.numerator_ * b.numerator_, a.denominator_ * b.denominator_};
}

Rational operator/(const Rational& a, const Rational& b) {
  return {a.numerator_ * b.denominator_, a.denominator_ * b.numerator_};
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  return a.numerator_ * b.denominator_ <=> b.numerator_ * a.denominator_;
}

std::string exact_decimal(const Rational& number, uint32_t max_decimals) {
  if (number.is_integer()) return number.numerator().to_digits();
  const auto scale = BigInt::power_of_ten(max_decimals).divide(number.denominator());
  if (!scale.remainder.is_zero()) return "";
  std::string digits = (number.numerator().abs() * scale.quotient).to_digits();
  if (digits.size() <= max_decimals) digits.insert(0, max_decimals + 1 - digits.size(), '0');
  digits.insert(digits.size() - max_decimals, ".");
  trim_decimals(digits);
  return (number.is_negative() ? "-" : "") + digits;
}

std::string rounded_decimal(const Rational& number, uint32_t n_significant) {
  if (number.is_zero()) return "0";
  const std::string sign = number.is_negative() ? "-" : "";
  const Rational size(number.numerator().abs(), number.denominator());
  // size = digits * 10^-shift; the first guess of the shift is wrong by two at most.
  int64_t shift = static_cast<int64_t>(n_significant) - static_cast<int64_t>(size.numerator().n_digits()) +
                  static_cast<int64_t>(size.denominator().n_digits()) + 1;
  std::string digits;
  for (;; --shift) {
    const auto ten = BigInt::power_of_ten(static_cast<uint32_t>(shift < 0 ? -shift : shift));
    digits = (shift < 0 ? Rational(size.numerator(), size.denominator() * ten)
                        : Rational(size.numerator() * ten, size.denominator()))
                 .round()
                 .to_digits();
    if (digits.size() <= n_significant) break;
  }
  const int64_t exponent = static_cast<int64_t>(digits.size()) - 1 - shift;  // of the first digit
  if (exponent > 20 || exponent < -7) {
    std::string mantissa = digits.substr(0, 1) + "." + digits.substr(1);
    trim_decimals(mantissa);
    return sign + mantissa + "e" + (exponent < 0 ? "" : "+") + std::to_string(exponent);
  }
  if (shift <= 0) return sign + digits + std::string(static_cast<size_t>(-shift), '0');
  if (exponent < 0) digits.insert(0, static_cast<size_t>(-exponent), '0');
  digits.insert(digits.size() - static_cast<size_t>(shift), ".");
  trim_decimals(digits);
  return sign + digits;
}

}  // namespace chimere::tools
