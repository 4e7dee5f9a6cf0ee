// plan.h  How many guesses of each answer go into the next step.
#pragma once

#include <span>
#include <vector>

#include "speculative/step_costs.h"

namespace chimere::speculative {

// The chances of an answer's guesses, each given that those before it were taken.
using Chances = std::vector<float>;

// The depths with the most expected tokens per second: argmax of (answers + chances of the rows that are added) / (step
// of so many rows + opening each draft + going back from those that fail). Zero for all of them where nothing is gained.
// `n_rows`: rows of the step without drafts, one of each answer among them. `most_rows`: of the step with them.
std::vector<int> plan_depths(const StepCosts& costs, int n_rows, int most_rows, std::span<const Chances> chances);

}  // namespace chimere::speculative
