// plan.h  How many guesses of each answer go into the next step.
#pragma once

#include <span>
#include <vector>

#include "speculative/step_costs.h"

namespace chimere::speculative {

// The chances of an answer's guesses, each given that those before it were taken.
using Chances = std::vector<float>;

// Guesses of the model's draft pass or of a draft model cost time themselves: guess i of all such answers is one pass
// over a row of each, the first with a row of what was taken since the last (some of them, one on average). From the
// second on a draft model has rows that may be taken back, which costs as much as its StepCosts say. A DFlash drafter makes
// all guesses of an answer, a block, in the pass of the first.
struct DraftPasses {
  std::vector<const StepCosts*> costs;   // [answers]: of passes by their rows; null: its guesses cost nothing
  const StepCosts* of_blocks = nullptr;  // those of them that are by blocks, with one guess of each
  double block_guess = 0;                // seconds that each guess of a block behind the first costs
};

// The depths with the most expected tokens per second: argmax of (answers + chances of the rows that are added) / (step
// of so many rows + opening each draft + going back from those that fail + passes). Zero for all of them where nothing
// is gained.
// `gain`, where it is not null, is told how many times as many tokens a second that is; 1: nothing is gained.
// `n_rows`: rows of the step without drafts, one of each answer among them. `most_rows`: of the step with them.
std::vector<int> plan_depths(const StepCosts& costs, int n_rows, int most_rows, std::span<const Chances> chances,
                             const DraftPasses* passes = nullptr, double* gain = nullptr);

// Whether there is anything to look for at this number of rows: whether guesses that are as sure as any ever are, and
// cost nothing to make, would gain so much that plan_depths() tried them. `most_each`: guesses of one answer, at most.
bool could_pay(const StepCosts& costs, int n_answers, int n_rows, int most_rows, int most_each);

}  // namespace chimere::speculative
