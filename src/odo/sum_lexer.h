// sum_lexer.h  A question as the words, numbers and signs of arithmetic that it has, for those who look for sums in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::odo {

struct SumToken {
  enum class Kind {
    number,  // as the calculator reads it: digits and at most one point
    sign,    // + - * / ^ % ² ³ √ =
    open,    // (
    close,   // )
    word,    // small letters; also what looks like a number and is none: 10km, v1.2-3, 007, 1.2.3, code
    stop,    // . ? ! , ; : and the end of a line
  };
  Kind kind = Kind::word;
  std::string text;
  bool touches_left = false;   // what is before it is not a space
  bool touches_right = false;  // the same of what is behind it

  bool is_tight() const { return touches_left && touches_right; }
};

// In a French text a comma stands before decimals; in others only where no three digits follow. Text between backquotes
// is one word.
std::vector<SumToken> sum_tokens(std::string_view text, bool is_french);

}  // namespace chimere::odo
