// scores.h  What an answer is worth, 1 to 5, without a person: exact checks where there are some, else a model's judgement.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/journal.h"

namespace chimere::improve {

struct Scored {
  int score = 0;
  std::string scorer;  // "sum", "json", "judge"
  std::string reason;
};

// Sums of the question are computed again and looked for in the answer; an answer that is JSON, or was asked to be, must be
// JSON; arguments of tool calls must be objects. nullopt: nothing here can be checked exactly.
std::optional<Scored> check_exactly(const store::KeptAnswer& kept);

// Whether a number stands in a text, as a number of its own: 42 in "42.", "= 42", "1,042" for 1042, but not in "421".
bool tells_number(std::string_view text, std::string_view number);

}  // namespace chimere::improve
