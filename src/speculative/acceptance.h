// acceptance.h  How often guesses of each kind were right, lately.
#pragma once

#include <array>
#include <cstdint>

#include "speculative/draft_source.h"

namespace chimere::speculative {

// Counts of tried and taken guesses that fade: of about the last `memory` of each kind. A request's own are few, so they
// are read together with those of all requests, and those with what is usual before anything was tried.
class Acceptance {
 public:
  explicit Acceptance(int memory = 128) : memory_(memory) {}

  void learn(Kind kind, bool was_taken);
  // The chance that such a guess is taken. `wider`: what is known beyond this request; null: what is usual.
  float chance(Kind kind, const Acceptance* wider = nullptr) const;

 private:
  struct Count {
    float tried = 0, taken = 0;
  };

  int memory_;
  std::array<Count, kKinds> counts_{};
};

}  // namespace chimere::speculative
