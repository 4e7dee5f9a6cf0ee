// acceptance.h  How often guesses of each kind were right, lately.
#pragma once

#include <array>
#include <cstdint>

#include "speculative/draft_source.h"

namespace chimere::speculative {

// Counts of tried and taken guesses that fade: of about the last `memory` of each kind. A request's own are few, so they
// are read together with those of requests like it, these with those of all, and those with what is usual before
// anything was tried.
class Acceptance {
 public:
  // `wider`: what is known beyond this; null: what is usual. It has to outlive this.
  explicit Acceptance(int memory = 128, const Acceptance* wider = nullptr) : memory_(memory), wider_(wider) {}

  void stand_on(const Acceptance* wider) { wider_ = wider; }
  void learn(Kind kind, bool was_taken);
  float tried(Kind kind) const { return counts_[kind].tried; }
  // The chance that such a guess is taken.
  float chance(Kind kind) const;
  // The same at least, but for one time in six: less by the standard error of what was counted. A draft that fails costs
  // more than one that is not tried, and a few tries that were lucky are no reason for the next.
  float cautious_chance(Kind kind) const;

 private:
  struct Count {
    float tried = 0, taken = 0;
  };

  int memory_;
  const Acceptance* wider_;
  std::array<Count, kKinds> counts_{};
};

// What requests of one kind lately gave. They differ more from others than from each other: what is held to a form repeats
// its keys, and what is drawn at a temperature is not the likeliest token.
struct Experience {
  Acceptance acceptance{512};
  double answer_tokens = 64;  // of an answer, on average
  // Requests that the draft pass could have followed, and the draft model accompanied, and did not.
  uint64_t n_not_followed = 0, n_not_accompanied = 0;

  void ended(int n_tokens) { answer_tokens += (n_tokens - answer_tokens) / 8; }
};

}  // namespace chimere::speculative
