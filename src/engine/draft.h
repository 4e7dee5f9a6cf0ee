// draft.h  What a request has of drafts: its sources, how often they were right, and the guesses of the step under way.
#pragma once

#include <memory>
#include <vector>

#include "speculative/acceptance.h"
#include "speculative/mode.h"
#include "speculative/repeats.h"

namespace chimere::engine {

struct Draft {
  speculative::Mode mode = speculative::Mode::off;
  speculative::Repeats repeats;
  std::unique_ptr<speculative::DraftSource> own;  // that the request brought; null: none
  speculative::Acceptance acceptance{64};

  // Of the step under way. Guess i is of the token that is drawn from row i; the first `depth` of them are rows of the
  // batch themselves, behind the last token. Those behind, which cost nothing, are only compared with what was drawn.
  std::vector<speculative::Guess> guesses;
  int depth = 0;
  size_t n_compared = 0;  // guesses, with tokens that were taken
  int n_ahead = 0;        // tokens of the sequence behind the row that is drawn from
};

}  // namespace chimere::engine
