// sums.h  Sums that a question asks for, read without a model: "What is (123 + 456) * 7?", "combien font 12,5 × 8 ?",
// "234 times 17 minus 5", "quel est le produit de 12 et 7".
//
// Rather none than one that nobody asked for: a sum is read only where words ask for it or where it is the whole
// message, and only if it ends with the sentence. Dates, versions, telephone numbers, ranges, sizes, fractions in prose and
// code are none; sums_test.cpp has a list of both kinds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace chimere::odo {

inline constexpr size_t kMaxSummedBytes = 2048;  // a longer message is a text, whatever it asks for
inline constexpr size_t kMaxSums = 4;

// Expressions as the calculator reads them (tools/expression.h), each with at least one operation on two numbers.
std::vector<std::string> sums_in(std::string_view message);

}  // namespace chimere::odo
