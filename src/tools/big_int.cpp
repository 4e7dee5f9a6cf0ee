#include "tools/big_int.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace chimere::tools {
namespace {

constexpr uint32_t kDigitsPerChunk = 9;
constexpr uint32_t kChunk = 1'000'000'000;  // the largest power of ten in a limb

}  // namespace

BigInt::BigInt(int64_t value) : is_negative_(value < 0) {
  uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  for (; size != 0; size >>= 32) limbs_.push_back(static_cast<uint32_t>(size));
}

void BigInt::trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) is_negative_ = false;
}

BigInt BigInt::from_digits(std::string_view digits) {
  BigInt number;
  for (size_t begin = 0; begin < digits.size(); begin += kDigitsPerChunk) {
    const std::string_view chunk = digits.substr(begin, kDigitsPerChunk);
    uint64_t scale = 1, carry = 0;
    for (const char digit : chunk) {
      scale *= 10;
      carry = carry * 10 + static_cast<uint64_t>(digit - '0');
    }
    for (uint32_t& limb : number.limbs_) {
      carry += limb * scale;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) number.limbs_.push_back(static_cast<uint32_t>(carry));
  }
  return number;
}

BigInt BigInt::power_of_ten(uint32_t exponent) { return power(BigInt(10), exponent); }

int64_t BigInt::small_or(int64_t otherwise) const {
  if (limbs_.empty()) return 0;
  if (limbs_.size() > 1 || limbs_[0] > INT32_MAX) return otherwise;
  return is_negative_ ? -static_cast<int64_t>(limbs_[0]) : static_cast<int64_t>(limbs_[0]);
}

uint32_t BigInt::divide_by_limb(Limbs& limbs, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs.size(); i-- > 0;) {
    rest = rest << 32 | limbs[i];
    limbs[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
  return static_cast<uint32_t>(rest);
}

std::string BigInt::to_digits() const {
  if (limbs_.empty()) return "0";
  std::string reversed;
  for (Limbs rest = limbs_; !rest.empty();) {
    uint32_t chunk = divide_by_limb(rest, kChunk);
    for (uint32_t i = 0; i < kDigitsPerChunk && (chunk != 0 || !rest.empty()); ++i, chunk /= 10) {
      reversed += static_cast<char>('0' + chunk % 10);
    }
  }
  if (is_negative_) reversed += '-';
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

size_t BigInt::n_bits() const {
  return limbs_.empty() ? 0 : limbs_.size() * 32 - static_cast<size_t>(std::countl_zero(limbs_.back()));
}

size_t BigInt::n_digits() const {
  return n_bits() * 30103 / 100000 + 1;  // log10(2), rounded up
}

int BigInt::compare_sizes(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

BigInt::Limbs BigInt::add_sizes(const Limbs& a, const Limbs& b) {
  const Limbs& longer = a.size() < b.size() ? b : a;
  const Limbs& shorter = a.size() < b.size() ? a : b;
  Limbs sum = longer;
  uint64_t carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    carry += uint64_t{sum[i]} + (i < shorter.size() ? shorter[i] : 0);
    sum[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  if (carry != 0) sum.push_back(static_cast<uint32_t>(carry));
  return sum;
}

BigInt::Limbs BigInt::subtract_sizes(const Limbs& a, const Limbs& b) {
  Limbs rest = a;
  int64_t borrow = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    borrow += int64_t{rest[i]} - (i < b.size() ? int64_t{b[i]} : 0);
    rest[i] = static_cast<uint32_t>(borrow);
    borrow >>= 32;
  }
  return rest;
}

// Schoolbook division (Knuth, The Art of Computer Programming, volume 2, algorithm D): each digit of the quotient is
// guessed from the leading digits, at most two too large, and corrected.
std::pair<BigInt::Limbs, BigInt::Limbs> BigInt::divide_sizes(const Limbs& a, const Limbs& b) {
  CHECK(!b.empty());
  if (compare_sizes(a, b) < 0) return {Limbs{}, a};
  if (b.size() == 1) {
    Limbs quotient = a;
    const uint32_t rest = divide_by_limb(quotient, b[0]);
    return {quotient, rest != 0 ? Limbs{rest} : Limbs{}};
  }
  // Scaled so that the divisor's leading bit is set, which is what makes the guesses good.
  const int shift = std::countl_zero(b.back());
  const auto shifted = [shift](const Limbs& limbs) {
    Limbs out(limbs.size() + 1);
    for (size_t i = 0; i < limbs.size(); ++i) {
      const uint64_t wide = uint64_t{limbs[i]} << shift;
      out[i] |= static_cast<uint32_t>(wide);
      out[i + 1] = static_cast<uint32_t>(wide >> 32);
    }
    return out;
  };
  Limbs rest = shifted(a);
  Limbs divisor = shifted(b);
  divisor.pop_back();
  const size_t n = divisor.size();
  Limbs quotient(rest.size() - n);
  for (size_t j = quotient.size(); j-- > 0;) {
    const uint64_t head = uint64_t{rest[j + n]} << 32 | rest[j + n - 1];
    uint64_t guess = head / divisor[n - 1];
    uint64_t left = head % divisor[n - 1];
    while (guess >> 32 != 0 || guess * divisor[n - 2] > (left << 32 | rest[j + n - 2])) {
      --guess;
      left += divisor[n - 1];
      if (left >> 32 != 0) break;
    }
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (size_t i = 0; i <= n; ++i) {
      carry += i < n ? guess * divisor[i] : 0;
      borrow += int64_t{rest[i + j]} - static_cast<int64_t>(carry & 0xFFFFFFFF);
      rest[i + j] = static_cast<uint32_t>(borrow);
      borrow >>= 32;
      carry >>= 32;
    }
    if (borrow < 0) {  // still one too large: add the divisor back
      --guess;
      uint64_t back = 0;
      for (size_t i = 0; i <= n; ++i) {
        back += uint64_t{rest[i + j]} + (i < n ? divisor[i] : 0);
        rest[i + j] = static_cast<uint32_t>(back);
        back >>= 32;
      }
    }
    quotient[j] = static_cast<uint32_t>(guess);
  }
  rest.resize(n + 1);
  for (size_t i = 0; i < n; ++i) {
    rest[i] = static_cast<uint32_t>((uint64_t{rest[i + 1]} << 32 | rest[i]) >> shift);
  }
  rest.resize(n);
  return {quotient, rest};
}

BigInt BigInt::operator-() const {
  BigInt negated = *this;
  negated.is_negative_ = !is_negative_ && !is_zero();
  return negated;
}

BigInt operator+(const BigInt& a, const BigInt& b) {
  BigInt sum;
  if (a.is_negative_ == b.is_negative_) {
    sum.limbs_ = BigInt::add_sizes(a.limbs_, b.limbs_);
    sum.is_negative_ = a.is_negative_;
  } else if (BigInt::compare_sizes(a.limbs_, b.limbs_) >= 0) {
    sum.limbs_ = BigInt::subtract_sizes(a.limbs_, b.limbs_);
    sum.is_negative_ = a.is_negative_;
  } else {
    sum.limbs_ = BigInt::subtract_sizes(b.limbs_, a.limbs_);
    sum.is_negative_ = b.is_negative_;
  }
  sum.trim();
  return sum;
}

BigInt operator*(const BigInt& a, const BigInt& b) {
  BigInt product;
  product.limbs_.resize(a.limbs_.size() + b.limbs_.size());
  product.is_negative_ = a.is_negative_ != b.is_negative_;
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size(); ++j) {
      carry += uint64_t{a.limbs_[i]} * b.limbs_[j] + product.limbs_[i + j];
      product.limbs_[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    product.limbs_[i + b.limbs_.size()] = static_cast<uint32_t>(carry);
  }
  product.trim();
  return product;
}

std::strong_ordering operator<=>(const BigInt& a, const BigInt& b) {
  if (a.is_negative_ != b.is_negative_) return b.is_negative_ <=> a.is_negative_;
  const int order = BigInt::compare_sizes(a.limbs_, b.limbs_);
  return (a.is_negative_ ? -order : order) <=> 0;
}

BigInt::Division BigInt::divide(const BigInt& divisor) const {
  auto [quotient, remainder] = divide_sizes(limbs_, divisor.limbs_);
  Division division;
  division.quotient.limbs_ = std::move(quotient);
  division.quotient.is_negative_ = is_negative_ != divisor.is_negative_;
  division.quotient.trim();
  division.remainder.limbs_ = std::move(remainder);
  division.remainder.is_negative_ = is_negative_;
  division.remainder.trim();
  if (!division.remainder.is_zero() && is_negative_ != divisor.is_negative_) {
    division.quotient = division.quotient - BigInt(1);
    division.remainder = division.remainder + divisor;
  }
  return division;
}

BigInt greatest_common_divisor(BigInt a, BigInt b) {
  a = a.abs();
  b = b.abs();
  while (!b.is_zero()) {
    BigInt rest = a.divide(b).remainder;
    a = std::move(b);
    b = std::move(rest);
  }
  return a;
}

BigInt power(const BigInt& base, uint32_t exponent) {
  BigInt result(1);
  BigInt square = base;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = result * square;
    if (exponent > 1) square = square * square;
  }
  return result;
}

// Newton's iteration from above: it falls until it has arrived.
BigInt floor_root(const BigInt& x, uint32_t n) {
  if (x.is_zero() || n == 1) return x;
  BigInt guess = BigInt::power_of_ten(static_cast<uint32_t>(x.n_digits() / n + 1));
  for (;;) {
    const BigInt step = x.divide(power(guess, n - 1)).quotient;
    const BigInt next = (BigInt(static_cast<int64_t>(n) - 1) * guess + step).divide(BigInt(n)).quotient;
    if (next >= guess) return guess;
    guess = next;
  }
}

}  // namespace chimere::tools
