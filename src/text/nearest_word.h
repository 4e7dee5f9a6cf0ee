// nearest_word.h  "Did you mean": the word of a list that a misspelt one stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere {

// Letters to add, leave out, change, or exchange with their neighbour until `a` is `b`.
int letters_between(std::string_view a, std::string_view b);

// Empty when none is near: a third of its letters may differ.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace chimere
