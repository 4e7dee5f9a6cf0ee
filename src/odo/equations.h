// equations.h  The equations that a text states, "68 - 12 = 56", computed again: the cheapest judge of a step is arithmetic.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::odo {

struct Equation {
  std::string text;  // "68 - 12 = 56"
  bool holds = false;
  size_t result_at = 0, result_bytes = 0;  // where the text has the number on the right
  std::string right_result;                // of one that does not hold: what it is, where digits can say it
};

// Those with numbers alone, at least one operation on the left and one number on the right, in the order of the text; at most 64.
// Left out is what might be meant otherwise: letters (x + 2 = 5), rounded results (10 / 3 = 3.33), sums that go on (= 5 + 1).
std::vector<Equation> equations_in(std::string_view text);

// The text with the right result wherever an equation does not hold; the same text where all do, or where none can be said.
std::string with_right_results(std::string_view text);

// Its numbers, without the commas of thousands.
std::vector<std::string> numbers_in(std::string_view text);

}  // namespace chimere::odo
