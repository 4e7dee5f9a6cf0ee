// equations.h  The equations that a text states, "68 - 12 = 56", computed again: the cheapest judge of a step is arithmetic.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::odo {

struct Equation {
  std::string text;  // "68 - 12 = 56"
  bool holds = false;
};

// Those with numbers alone, at least one operation on the left and one number on the right, in the order of the text; at most 64.
// Left out is what might be meant otherwise: letters (x + 2 = 5), rounded results (10 / 3 = 3.33), sums that go on (= 5 + 1).
std::vector<Equation> equations_in(std::string_view text);

// Its numbers, without the commas of thousands.
std::vector<std::string> numbers_in(std::string_view text);

}  // namespace chimere::odo
