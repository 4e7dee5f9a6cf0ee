// allocate.h  One option for each item, the sum of values smallest, the sum of costs within a limit.
//
// That is the multiple-choice knapsack. Items are tensors and options their types; for a size asked the value is the
// predicted loss and the cost bytes, for a loss allowed the value is bytes read a token and the cost the loss.
//
// Exact: a price on cost (Lagrange) gives a bound L below every solution, and a good solution U above the best. An option
// whose reduced value alone exceeds U - L is in no better solution and falls away; over what is left runs a dynamic
// programme whose states are exact sums, not cells of a grid, so that no granularity of bytes has to be chosen. States are
// dropped when another is better in both sums, or when bound plus what they have lost already reaches U.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace chimere::quantizer {

struct Option {
  double value;
  double cost;  // not negative
};

struct Allocation {
  std::vector<size_t> chosen;  // [items]
  double value = 0;
  double cost = 0;
  double bound = 0;    // no solution has a smaller value
  bool proven = true;  // this is the smallest; false when states had to be thinned out for lack of memory
};

using Items = std::span<const std::vector<Option>>;

// Fails, with the smallest possible cost, where no choice is within the limit. REQUIRES: no item without options.
Result<Allocation> allocate(Items items, double limit, size_t max_states = size_t{1} << 25);

// To compare with: upgrades by the best drop of value per cost, one step at a time, until nothing fits.
Result<Allocation> allocate_greedy(Items items, double limit);
// To compare with: 128 allocations bred over 200 generations, repaired to the limit, the best one filled up greedily.
Result<Allocation> allocate_by_evolution(Items items, double limit, uint64_t seed);

}  // namespace chimere::quantizer
