// engram_guesses.h  Guesses from a request's Engram tables: what followed the longest n-gram that they know.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engram/ngram_source.h"
#include "speculative/draft_source.h"

namespace chimere::speculative {

class EngramGuesses final : public DraftSource {
 public:
  using Tables = std::vector<std::shared_ptr<const engram::NgramSource>>;

  // Of tables that know keys of the same length, the first speaks.
  explicit EngramGuesses(Tables tables) : tables_(std::move(tables)) {}
  std::unique_ptr<DraftSource> clone() const override { return std::make_unique<EngramGuesses>(*this); }
  void propose(std::span<const int32_t> tokens, int most, std::vector<Guess>& guesses) override;

 private:
  Tables tables_;
};

}  // namespace chimere::speculative
