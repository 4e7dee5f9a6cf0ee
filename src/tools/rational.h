// rational.h  Fractions of integers of any size: arithmetic without rounding.
#pragma once

#include <compare>
#include <string>

#include "tools/big_int.h"

namespace chimere::tools {

class Rational {
 public:
  Rational(BigInt integer = BigInt()) : numerator_(std::move(integer)), denominator_(1) {}
  // In lowest terms. REQUIRES: denominator != 0
  Rational(BigInt numerator, BigInt denominator);

  const BigInt& numerator() const { return numerator_; }
  const BigInt& denominator() const { return denominator_; }  // above zero
  bool is_integer() const { return denominator_.is_one(); }
  bool is_zero() const { return numerator_.is_zero(); }
  bool is_negative() const { return numerator_.is_negative(); }
  size_t n_limbs() const { return numerator_.n_limbs() + denominator_.n_limbs(); }
  BigInt floor() const { return numerator_.divide(denominator_).quotient; }
  BigInt round() const;  // halves go away from zero

  Rational operator-() const;
  friend Rational operator+(const Rational& a, const Rational& b);
  friend Rational operator-(const Rational& a, const Rational& b) { return a + -b; }
  friend Rational operator*(const Rational& a, const Rational& b);
  friend Rational operator/(const Rational& a, const Rational& b);  // REQUIRES: b != 0
  friend bool operator==(const Rational& a, const Rational& b) = default;
  friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

 private:
  BigInt numerator_;
  BigInt denominator_;
};

// All digits, where they end within `max_decimals` behind the point; else empty.
std::string exact_decimal(const Rational& number, uint32_t max_decimals);

// So many significant digits, the last one rounded; 1.5e+30 where plain digits would be many zeros.
std::string rounded_decimal(const Rational& number, uint32_t n_significant);

}  // namespace chimere::tools
