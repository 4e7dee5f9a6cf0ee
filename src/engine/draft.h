// draft.h  What a request has of drafts: its sources, how often they were right, and the guesses of the step under way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/draft_model.h"
#include "speculative/acceptance.h"
#include "speculative/mode.h"
#include "speculative/repeats.h"

namespace chimere::engine {

// What the model's draft pass has seen of a sequence, and the hidden states that it has not. Position p goes through the
// pass with the trunk's state of p - 1; of the first that was not computed here, zeros stand for it.
struct Following {
  bool is_on = false;
  int32_t n_seen = 0;  // positions; when guesses were made, all of the sequence and the token behind it
  std::vector<float>
      hidden;  // [.., d_model]: of positions n_seen - 1, n_seen, ... to the last one, which is always there
};

struct Draft {
  speculative::Mode mode = speculative::Mode::off;
  speculative::Repeats repeats;
  std::unique_ptr<speculative::DraftSource> own;  // that the request brought; null: none
  speculative::Acceptance acceptance{64};
  Following following;
  Companion companion;
  // With automatic, guesses of the next draft at most: what a request of many tokens finds out costs one of few dearly. It
  // doubles with what was right, and falls to what was right before the first that was not. At zero, guesses that cost
  // nothing are only compared, until two in a row were right; of others there is one at least.
  int most = 0;
  int n_in_a_row = 0;  // guesses that were right, computed or compared

  // Whether guesses that cost something are the draft pass's; else they are the draft model's or the drafter's.
  bool passes() const { return following.is_on && !companion.is_on; }

  // Of the step under way. Guess i is of the token that is drawn from row i; the first `depth` of them are rows of the
  // batch themselves, behind the last token. Those behind, which cost nothing, are only compared with what was drawn.
  std::vector<speculative::Guess> guesses;
  std::optional<speculative::Guess> passed_over;  // the first one of a source that seemed worse; only compared, too
  int depth = 0;
  bool from_pass = false;  // the draft model or the draft pass makes the guesses, once their number is known
  size_t n_compared = 0;   // guesses, with tokens that were taken
  int n_ahead = 0;         // tokens of the sequence behind the row that is drawn from

  // Of the drafter, when it last guessed what was not tried: only compared, with the tokens that come.
  std::vector<speculative::Guess> probe;
  size_t n_probed = 0;  // of these, with tokens that were taken
};

}  // namespace chimere::engine
