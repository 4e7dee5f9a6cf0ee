// big_int.h  Integers of any size: what the calculator counts with.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace chimere::tools {

class BigInt {
 public:
  BigInt() = default;
  BigInt(int64_t value);
  // REQUIRES: one decimal digit or more, and nothing else
  static BigInt from_digits(std::string_view digits);
  static BigInt power_of_ten(uint32_t exponent);

  bool is_zero() const { return limbs_.empty(); }
  bool is_negative() const { return is_negative_; }
  bool is_odd() const { return !limbs_.empty() && (limbs_[0] & 1) != 0; }
  bool is_one() const { return !is_negative_ && limbs_.size() == 1 && limbs_[0] == 1; }
  size_t n_limbs() const { return limbs_.size(); }
  // The value where it fits into 31 bits, else `otherwise`.
  int64_t small_or(int64_t otherwise) const;
  std::string to_digits() const;  // with a sign where it is negative
  size_t n_bits() const;
  size_t n_digits() const;  // decimal ones, at most one more than there are

  BigInt operator-() const;
  BigInt abs() const { return is_negative_ ? -*this : *this; }
  friend BigInt operator+(const BigInt& a, const BigInt& b);
  friend BigInt operator-(const BigInt& a, const BigInt& b) { return a + -b; }
  friend BigInt operator*(const BigInt& a, const BigInt& b);
  friend bool operator==(const BigInt& a, const BigInt& b) = default;
  friend std::strong_ordering operator<=>(const BigInt& a, const BigInt& b);

  // Rounded towards minus infinity, so that the remainder has the divisor's sign. REQUIRES: divisor != 0
  struct Division;
  Division divide(const BigInt& divisor) const;

 private:
  using Limbs = std::vector<uint32_t>;
  static int compare_sizes(const Limbs& a, const Limbs& b);
  static Limbs add_sizes(const Limbs& a, const Limbs& b);
  static Limbs subtract_sizes(const Limbs& a, const Limbs& b);                  // REQUIRES: a >= b
  static std::pair<Limbs, Limbs> divide_sizes(const Limbs& a, const Limbs& b);  // REQUIRES: b is not empty
  static uint32_t divide_by_limb(Limbs& limbs, uint32_t divisor);               // in place; the remainder
  void trim();

  Limbs limbs_;               // base 2^32, the smallest first, no zeros at the end; empty is zero
  bool is_negative_ = false;  // never with zero
};

struct BigInt::Division {
  BigInt quotient;
  BigInt remainder;
};

// The largest that divides both; never negative.
BigInt greatest_common_divisor(BigInt a, BigInt b);

// The largest r with r^n <= x. REQUIRES: x >= 0, n >= 1
BigInt floor_root(const BigInt& x, uint32_t n);

// REQUIRES: the result fits into memory; callers limit it
BigInt power(const BigInt& base, uint32_t exponent);

}  // namespace chimere::tools
