// repeats.h  Guesses from the text itself: where its last tokens stood before, the same may follow again.
//
// Tool calls, JSON, edits of code and quotes repeat what the prompt or the answer has. The place with the longest equal
// past is found by hash chains, as compressors do it:
//
//   heads_[hash of 3 tokens] -> the last place behind such tokens -> before_[place], the place before it -> ...
//
// A table has no keys: places are compared with the text, of which the sequence has the only copy. A chain is followed
// for kMaxPlaces, and a place that was right is kept while it goes on being right, so a token costs a constant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "speculative/draft_source.h"

namespace chimere::speculative {

inline constexpr int kMinMatch = 2;   // a shorter one is chance
inline constexpr int kMaxMatch = 64;  // longer ones are all as sure

// The kind of a guess behind `length` equal tokens: 2, 3, 4, 5-6, 7-8, 9-12, 13-20, 21-32, more.
Kind repeat_kind(int length);

class Repeats final : public DraftSource {
 public:
  std::unique_ptr<DraftSource> clone() const override { return std::make_unique<Repeats>(*this); }
  void propose(std::span<const int32_t> tokens, int most, std::vector<Guess>& guesses) override;

  // Of the tokens of the last propose(); 0: none.
  int match_length() const { return place_ > 0 ? length_ : 0; }
  uint64_t size_bytes() const { return (heads_.size() + pairs_.size() + before_.size()) * sizeof(int32_t); }

 private:
  void follow(std::span<const int32_t> tokens);
  void find(std::span<const int32_t> text);
  void insert(std::span<const int32_t> text);
  void grow(std::span<const int32_t> tokens);

  // Places are numbers of tokens before them; 0: none.
  std::vector<int32_t> heads_, pairs_;  // by the hash of the last 3 and the last 2 tokens; as many, a power of two
  std::vector<int32_t> before_;         // [place]: the place before it with the same hash of 3 tokens
  int32_t n_known_ = 0;                 // tokens that were taken in
  int32_t place_ = 0;                   // what stands behind it is the guess
  int length_ = 0;                      // of what is equal before it
};

}  // namespace chimere::speculative
