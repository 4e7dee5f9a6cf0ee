#include "speculative/engram_guesses.h"

#include "engram/longest_match.h"

namespace chimere::speculative {

static_assert(kShortestEngram == engram::kMinOrder && kLongestEngram == engram::kMaxOrder);

// Short keys are tried as well: how often what follows them is right is counted by their length.
void EngramGuesses::propose(std::span<const int32_t> tokens, int most, std::vector<Guess>& guesses) {
  const engram::DraftOptions options{.max_tokens = most, .min_order = kShortestEngram};
  for (const engram::Expected& next : engram::longest_match(tables_, tokens, options)) {
    guesses.push_back({next.token, engram_kind(next.order)});
  }
}

}  // namespace chimere::speculative
