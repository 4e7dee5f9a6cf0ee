// draft_times.h  What drafts cost and what they saved, in seconds that the engine's thread worked.
#pragma once

namespace chimere::speculative {

// Of an answer, or of all: the steps in which it got tokens.
struct DraftTimes {
  double steps = 0;  // they took, with what was looked for and guessed beside them
  double spent = 0;  // of that: looking for guesses, making them and going back, measured; their rows, by StepCosts
  double saved = 0;  // what the guesses that were right would have taken as steps of their own, by StepCosts

  double share() const { return steps > 0 ? spent / steps : 0; }
  // How many times as fast tokens came as they would have without drafts, as far as the costs of steps tell.
  double gain() const { return steps > 0 ? (steps - spent + saved) / steps : 1; }
  void add(const DraftTimes& more) {
    steps += more.steps;
    spent += more.spent;
    saved += more.saved;
  }
};

}  // namespace chimere::speculative
