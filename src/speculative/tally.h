// tally.h  Guesses that were computed, and those of them that became tokens, by source and by their place in the draft.
#pragma once

#include <array>
#include <cstdint>

#include "speculative/draft_source.h"

namespace chimere::speculative {

enum class Source { forced, text, own, mtp, engram, draft_model, dflash };
inline constexpr int kSources = 7;
inline constexpr int kPlaces = 16;  // of a draft: guess 0, 1, ...; what is beyond the last counts there

const char* name(Source source);  // "forced", "ngram", "own", "mtp", "engram", "draft", "dflash": as modes have them
Source source_of(Kind kind);

class Tally {
 public:
  struct Count {
    uint64_t tried = 0, taken = 0;
  };

  void tried(Kind kind, int place) { ++at(kind, place).tried; }
  void taken(Kind kind, int place) { ++at(kind, place).taken; }
  const std::array<Count, kPlaces>& of(Source source) const { return counts_[static_cast<size_t>(source)]; }
  Count total(Source source) const;

 private:
  Count& at(Kind kind, int place) {
    return counts_[static_cast<size_t>(source_of(kind))][static_cast<size_t>(place < kPlaces ? place : kPlaces - 1)];
  }

  std::array<std::array<Count, kPlaces>, kSources> counts_{};
};

}  // namespace chimere::speculative
